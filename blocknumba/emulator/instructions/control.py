"""Branches, calls and the end of a thread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blocknumba.emulator.cohort import Cohort, Return
from blocknumba.emulator.control_flow import EXIT
from blocknumba.emulator.decoding import Decoder, Site, Step
from blocknumba.emulator.errors import TrapError, UnknownInstructionError
from blocknumba.emulator.instructions.system_calls import SYSTEM_CALLS, system_call
from blocknumba.emulator.syntax import Group, Label, Symbol, Variable

ENDED = -1  # the pc of a cohort whose threads have all ended
_DEEPEST_CALL = 64  # local variables have one address each, so a function cannot call itself


def target_of(site: Site) -> int:
    """Program counter of a branch's target."""
    symbol = site.operands[0]
    label = symbol.target if isinstance(symbol, Symbol) else None
    if not isinstance(label, Label) or label.index < 0:
        raise site.refuse("given {}, accepted a label of this function", symbol)
    return site.pc_of(label)


def jump(site: Site) -> Step:
    """bra without a guard."""
    target, pc = target_of(site), site.pc

    def step(cohort: Cohort) -> bool:
        cohort.pc = target
        return target <= pc and _take_backward(cohort)
    return step


def _take_backward(cohort: Cohort) -> bool:
    """Count a branch backward; true when the cohort's turn is over."""
    cohort.split_off_absent()
    cohort.fuel -= 1
    return cohort.fuel < 0


def branch(site: Site) -> Step:
    """bra with a guard: lanes that disagree diverge until site.reconvergence."""
    instruction = site.instruction
    return conditional(site, target_of(site), instruction.inverted)


def conditional(site: Site, target: int, inverted: bool) -> Step:
    """A jump of the lanes whose guard holds."""
    guard = site.read(site.instruction.guard, "pred")
    pc, fall, reconvergence = site.pc, site.pc + 1, site.reconvergence
    backward = target <= pc

    def step(cohort: Cohort) -> bool:
        taken = cohort.by_lane(guard(cohort))
        if inverted:
            taken = ~taken
        if cohort.mask is None:
            jumping, present = int(np.count_nonzero(taken)), cohort.lanes
        else:
            taken = taken & cohort.mask
            jumping, present = int(np.count_nonzero(taken)), int(np.count_nonzero(cohort.mask))
        if jumping == 0:
            return False
        if jumping == present:
            cohort.pc = target
        else:
            other = ~taken if cohort.mask is None else cohort.mask & ~taken
            cohort.diverge(((target, taken), (fall, other)), reconvergence)
        return backward and _take_backward(cohort)
    return step


def jump_by_table(site: Site) -> Step:
    """brx.idx index, table: each lane to the label of its index."""
    read = site.read(site.operands[0], "u32")
    symbol = site.operands[1]
    label = symbol.target if isinstance(symbol, Symbol) else None
    if not isinstance(label, Label) or not label.targets:
        raise site.refuse("given {}, accepted a list of labels", symbol)
    pcs = np.array([site.pc_of(target) for target in label.targets])
    reconvergence = site.reconvergence

    def step(cohort: Cohort) -> None:
        index = cohort.by_lane(read(cohort))
        if (cohort.chosen(index) >= len(pcs)).any():
            raise TrapError(f"brx.idx: given the index {int(index.max())}, accepted 0 to "
                            f"{len(pcs) - 1}")
        targets = pcs[np.minimum(index, len(pcs) - 1)]
        branches = [(int(pc), (targets == pc) & cohort.active_lanes())
                    for pc in np.unique(cohort.chosen(targets))]
        if len(branches) == 1:
            cohort.pc = branches[0][0]
        else:
            cohort.diverge(branches, reconvergence)
    return step


def call(site: Site) -> Step:
    """call (results), function, (arguments): bytes go through variables of param space."""
    groups = [operand for operand in site.operands if isinstance(operand, Group)]
    name = next(operand.name for operand in site.operands if isinstance(operand, Symbol))
    callee = site.program.functions.get(name)
    if callee is None:
        return _call_system(site, name, groups)
    results = groups[0].items if callee.results else ()
    arguments = groups[-1].items if callee.parameters else ()
    entry, back = site.entries[name], site.pc + 1
    inbound = [(_variable(argument), parameter)
               for argument, parameter in zip(arguments, callee.parameters, strict=True)]
    outbound = tuple([(result, _variable(operand))
                      for operand, result in zip(results, callee.results, strict=True)])

    def step(cohort: Cohort) -> None:
        if len(cohort.calls) == _DEEPEST_CALL:
            raise UnknownInstructionError(f"call: {name} is recursive, accepted functions that "
                                          "are not")
        _copy(cohort, inbound)
        cohort.calls = (*cohort.calls, Return(back, cohort.reconvergence, outbound))
        cohort.reconvergence = EXIT
        cohort.pc = entry
    return step


def _call_system(site: Site, name: str, groups: Sequence[Group]) -> Step:
    """A call of a function that this module only declares."""
    results, arguments = groups[:-1], groups[-1:]
    variables = [[_variable(item) for group in side for item in group.items]
                 for side in (arguments, results)]
    step = system_call(name, site.pc, *variables)
    if step is None:
        raise site.refuse("given the function {}, accepted one that this module defines, {}", name,
                          ", ".join(SYSTEM_CALLS))
    return step


def leave(_: Site) -> Step:
    """The end of a device function, where all its lanes reconverge."""
    def step(cohort: Cohort) -> None:
        *outer, last = cohort.calls
        cohort.calls = tuple(outer)
        cohort.pc, cohort.reconvergence = last.pc, last.reconvergence
        _copy(cohort, last.results)
    return step


def _variable(operand: object) -> Variable:
    if isinstance(operand, Symbol) and isinstance(operand.target, Variable):
        return operand.target
    raise UnknownInstructionError(f"call: given {operand}, accepted a variable of param space")


def _copy(cohort: Cohort, pairs: Sequence[tuple[Variable, Variable]]) -> None:
    """Copy variables of local memory, in the active threads."""
    launch = cohort.launch
    threads = cohort.chosen(cohort.threads)[:, None] * launch.local_stride
    for source, target in pairs:
        octets = np.arange(min(source.size, target.size))
        source_at = threads + launch.layout.addresses[source] + octets
        target_at = threads + launch.layout.addresses[target] + octets
        for buffer in (launch.local, launch.local_written):
            if buffer is not None:
                buffer.data[target_at] = buffer.data[source_at]


def end(_: Site) -> Step:
    """exit, and ret from a kernel."""
    def step(cohort: Cohort) -> bool:
        if cohort.retire():
            return False
        cohort.pc = ENDED
        return True
    return step


def return_(site: Site) -> Step:
    """ret: jump to the function's end, where its lanes reconverge, or end the thread."""
    if site.function.is_kernel:
        return end(site)
    exit_pc = site.exit_pc

    def step(cohort: Cohort) -> None:
        cohort.pc = exit_pc
    return step


def trap(site: Site) -> Step:
    """trap and brkpt."""
    def step(cohort: Cohort) -> None:
        lane = int(np.flatnonzero(cohort.active_lanes())[0])
        raise TrapError(f"{site.opcode[0]}: executed by {cohort.launch.thread_name(cohort, lane)}")
    return step


def sleep(_: Site) -> Step:
    """nanosleep: another cohort's turn."""
    return lambda cohort: True


TABLE: dict[str, Decoder] = {
    "bra": jump, "brx": jump_by_table, "call": call, "ret": return_, "exit": end, "trap": trap,
    "brkpt": trap, "nanosleep": sleep,
}
