"""Quick code of a thread's elements together, and a cold branch where one of them needs more.

Code of one element with its rare cases is a branch by itself: the elements of a thread wait for
each other, and instructions are fetched around each rare case.  Here one test covers them all:

    test of all elements  ---->  quick code of all, interleaved  -->  results
                          `-->  cold: exact code of each, in a loop over the stack
"""

from __future__ import annotations

from collections.abc import Callable

from blocknumba.nvvm_lower.emitter import Registers
from blocknumba.nvvm_lower.llvm import FLOAT, I32, Body

MAX_TOGETHER = 32  # operands of one test: they stay in registers until the branch


def quick_if(body: Body, condition: str, quickly: Callable[[], Registers],
             exactly: Callable[[], Registers]) -> Registers:
    """float32 results of one of two ways, by a branch."""
    quick, cold, after = (body.new_label(hint) for hint in ("quick", "cold", "after"))
    body.branch_if(condition, quick, cold)
    ends = []
    for label, way in ((quick, quickly), (cold, exactly)):
        body.begin_block(label)
        with body.scope():
            ends.append((way(), body.block))
        body.branch(after)
    body.begin_block(after)
    results = []
    for values in zip(*(values for values, _ in ends), strict=True):
        phi = body.phi(FLOAT)
        for value, (_, block) in zip(values, ends, strict=True):
            phi.add(value, block)
        results.append(phi.name)
    return results


def one_by_one(body: Body, code: Callable[..., Registers], operands: list[Registers],
               results: int = 1) -> Registers:
    """code of each element, in a loop over the stack: it is long, and seldom executed.

    code: float32 operands -> float32 results.   The first results of all elements come first.
    """
    count = len(operands[0])
    varying = [values for values in operands if len(set(values)) > 1]
    columns = max(len(varying), results)
    array = f"[{columns * MAX_TOGETHER} x {FLOAT}]"
    stack = body.at_entry(f"alloca {array}, align 16")

    def place(column: int, index: str | int) -> str:
        at = f"{column * MAX_TOGETHER + index}" if isinstance(index, int) else body.binary(
            "add", I32, index, str(column * MAX_TOGETHER))
        return body.pure(f"getelementptr {array}, {array}* {stack}, i32 0, i32 {at}")

    for column, values in enumerate(varying):
        for index, value in enumerate(values):
            body.do(f"store {FLOAT} {value}, {FLOAT}* {place(column, index)}, align 4")
    again, done, before = body.new_label("again"), body.new_label("done"), body.block
    body.branch(again)
    body.begin_block(again)
    index = body.phi(I32)
    index.add("0", before)
    with body.scope():
        places = [place(column, index.name) for column in range(columns)]
        loaded = iter([body.assign(f"load {FLOAT}, {FLOAT}* {at}, align 4")
                       for at in places[:len(varying)]])
        made = code(*[values[0] if len(set(values)) == 1 else next(loaded)
                      for values in operands])
        for result, at in zip(made, places):
            body.do(f"store {FLOAT} {result}, {FLOAT}* {at}, align 4")
        following = body.binary("add", I32, index.name, "1")
        index.add(following, body.block)
        body.branch_if(body.compare("icmp slt", I32, following, str(count)), again, done,
                       body.module.unrolling(1))
    body.begin_block(done)
    return [body.assign(f"load {FLOAT}, {FLOAT}* {place(column, index)}, align 4")
            for column in range(results) for index in range(count)]
