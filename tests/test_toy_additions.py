"""Additions as CONTRIBUTING describes them: by registration, from outside of the package.

An op, a pass, an instruction, a target and an access are added, each with what it needs at every
stage; a kernel compiles with each, and runs on the interpreter and on the emulator.  Nothing that
is registered here is left behind.
"""

import numpy as np
import pytest
from emulated_gpu import launch

import blocknumba as bn

from blocknumba.__main__ import main
from blocknumba.emulator.decoding import Site, Step
from blocknumba.emulator.instructions import TABLE
from blocknumba.errors import BlockTypeError, BlockValueError, require
from blocknumba.gpu_layout.placement.rule import PLACEMENTS, Placement
from blocknumba.nvvm_lower.emitter import CODE, Emitter, Registers, code
from blocknumba.nvvm_lower.ops.memory import access_width
from blocknumba.nvvm_lower.ptx.arithmetic import permute
from blocknumba.nvvm_lower.ptx.assembly import Assembly
from blocknumba.nvvm_lower.services import global_memory
from blocknumba.nvvm_lower.target import KIB, TARGETS, Target
from blocknumba.tile_ir.folds.patterns import number
from blocknumba.tile_ir.ir.function import Function, Op
from blocknumba.tile_ir.ir.opdef import OPS, READS, elementwise, op
from blocknumba.tile_ir.ir.rebuild import rebuild
from blocknumba.tile_ir.ir.types import TileType, uint32
from blocknumba.tile_ir.ops.memory import load, require_access
from blocknumba.tile_ir.passes.contract import declared
from blocknumba.tile_ir.passes.pipeline import TILE_PASSES
from blocknumba.typing.function import function
from blocknumba.typing.functions.memory import access

pytest.importorskip("cuda.bindings.nvvm")

REGISTRIES = (OPS, PLACEMENTS, CODE, TABLE, TARGETS)
SIZE = 256


@pytest.fixture(autouse=True)
def registries():
    """Registries as they are, and again afterwards."""
    kept, passes = [dict(registry) for registry in REGISTRIES], tuple(TILE_PASSES)
    yield
    for registry, entries in zip(REGISTRIES, kept, strict=True):
        registry.clear()
        registry.update(entries)
    for pass_ in set(TILE_PASSES) - set(passes):
        TILE_PASSES.unregister(pass_)
    assert tuple(TILE_PASSES) == passes


def words(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 32, SIZE, np.uint32)


def results(kernel, *arguments, target="sm_90a", **constants):
    """What the interpreter and the emulated machine code store to an array, and the code."""
    made = []
    for run in (lambda out: kernel[1](*arguments, out, **constants, interpret=True),
                lambda out: launch(kernel, 1, (*arguments, out), constants, target=target)):
        out = np.full(SIZE, 0xDEADBEEF, np.uint32)
        compiled = run(out)
        made.append(out)
    return *made, compiled


# an op, with an instruction of its own ------------------------------------------------------------

# Source: PTX ISA, "dp2a": two halves of the first by the two low bytes of the second, and the third
DOT_OF_PAIRS = Assembly("dp2a.lo.u32.u32", "dp2a.lo.u32.u32 $0, $1, $2, $3;", ("i32",),
                        ("i32",) * 3, "dp2a")


def dot_of_pairs_in_numpy(x, y, total):
    low, high = (x & 0xFFFF) * (y & 0xFF), (x >> 16) * (y >> 8 & 0xFF)
    return (low + high + total).astype(np.uint32)


def register_op():
    """The function of the language; elementwise ops need no placement."""
    opdef = elementwise("dot_of_pairs", "x y total", dot_of_pairs_in_numpy, frozenset((uint32,)),
                        "The dot of two 16-bit and two 8-bit numbers, plus total, modulo 2**32.")

    @code(opdef)
    def _(emitter: Emitter, op: Op, *operands: Registers) -> Registers:
        return [emitter.assembly(DOT_OF_PAIRS, *registers)[0]
                for registers in zip(*operands, strict=True)]

    @function
    def dot_of_pairs(context, x, y, total):
        """x, y, total: uint32 tiles of one shape."""
        return context.emit(opdef, *(context.value(value) for value in (x, y, total)))

    return dot_of_pairs


def register_instruction():
    """The row of the emulator."""

    def decode(site: Site) -> Step:
        return site.compute(dot_of_pairs_in_numpy, "u32", ["u32"] * 3)

    TABLE["dp2a"] = decode


def kernel_of_op():
    dot_of_pairs = register_op()

    @bn.jit
    def kernel(x, y, out, N: bn.constexpr):
        i = bn.span(0, N)
        out[i] = dot_of_pairs(x[i], y[i], x[i])

    return kernel


def test_an_op_and_its_instruction_run_everywhere():
    kernel, x, y = kernel_of_op(), words(1), words(2)
    register_instruction()

    interpreted, emulated, compiled = results(kernel, x, y, N=SIZE)

    wide = ((x & 0xFFFF).astype(object) * (y & 0xFF) + (x >> 16).astype(object) * (y >> 8 & 0xFF)
            + x) % (1 << 32)
    np.testing.assert_array_equal(interpreted, wide.astype(np.uint32))
    np.testing.assert_array_equal(emulated, wide.astype(np.uint32))
    assert " = dot_of_pairs %" in compiled.tile_text()
    assert "dp2a.lo.u32.u32" in compiled.ptx
    assert "IDP.2A" in compiled.asm["sass"]


def test_the_op_refuses_what_its_type_rule_does_not_accept():
    kernel = kernel_of_op()
    x = np.zeros(SIZE, np.float32)

    with pytest.raises(BlockTypeError, match="dot_of_pairs: given float32, accepted uint32"):
        kernel[1](x, x, x, N=SIZE, interpret=True)


def test_without_its_row_the_emulator_says_that_it_does_not_know_the_instruction():
    kernel, x = kernel_of_op(), words(1)

    with pytest.raises(Exception, match="dp2a"):
        launch(kernel, 1, (x, x, x.copy()), {"N": SIZE})


# a pass -------------------------------------------------------------------------------------------

@declared(reads=("ops",), writes=("ops",))
def add_instead_of_double(fn: Function, _: object = None) -> Function:
    """Add integers to themselves where they are multiplied by 2."""

    def rewrite(rebuilder, op):
        if op.name != "mul" or number(op.y) != 2 or not op.x.type.dtype.is_integer:
            return None
        x = rebuilder[op.x]
        return (rebuilder.builder.emit(OPS["add"], x, x),)

    return rebuild(fn, rewrite)


@bn.jit
def doubled(x, out, N: bn.constexpr):
    i = bn.span(0, N)
    out[i] = x[i] * 2


def test_a_pass_runs_where_it_was_registered(capsys, tmp_path):
    x = words(3)
    before = bn.compile(doubled, ("u32[::1]",) * 2, {"N": SIZE}, target="sm_80").tile_text()
    assert " = mul " in before

    TILE_PASSES.register(add_instead_of_double, before="hoist_invariants")

    @bn.jit
    def doubled_again(x, out, N: bn.constexpr):
        i = bn.span(0, N)
        out[i] = x[i] * 2

    interpreted, emulated, compiled = results(doubled_again, x, N=SIZE)
    np.testing.assert_array_equal(interpreted, x + x)
    np.testing.assert_array_equal(emulated, x + x)
    assert " = mul " not in compiled.tile_text()

    file = tmp_path / "doubled.tile"
    file.write_text(before)
    assert main(["opt", str(file), "--passes", "add_instead_of_double,dce"]) == 0
    assert " = mul " not in capsys.readouterr().out


# a target -----------------------------------------------------------------------------------------

def test_a_target_is_a_row():
    with pytest.raises(BlockValueError, match="given 'sm_87', accepted sm_80"):
        bn.compile(doubled, ("u32[:]", "u32[:]"), {"N": SIZE}, target="sm_87")

    # Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
    TARGETS["sm_87"] = Target("sm_87", (8, 7), TARGETS["sm_86"].capabilities, 163 * KIB, 164 * KIB,
                              1536, 16)
    x = words(4)
    interpreted, emulated, compiled = results(doubled, x, target="sm_87", N=SIZE)

    np.testing.assert_array_equal(emulated, interpreted)
    assert ".target sm_87" in compiled.ptx
    assert Target.of_capability((8, 7)).name == "sm_87"
    assert Target.of_capability((8, 6)).name == "sm_86"


# an access ----------------------------------------------------------------------------------------

def register_access():
    """Type rule, execution, placement and code of a load of another byte order."""

    @op(READS)
    def load_swapped(pointer, mask=None, *, volatile=False) -> TileType:
        """The uint32 elements at pointer with their bytes reversed; where mask is false, 0."""
        require_access("load_swapped", pointer, mask)
        require(pointer.dtype.pointee == uint32, "load_swapped: given {}, accepted uint32", pointer)
        return pointer.of(uint32)

    @load_swapped.interpreted
    def _(machine, op, *operands):
        return load.execute(machine, op, *operands).byteswap()

    PLACEMENTS.enter(load_swapped, Placement())

    @code(load_swapped)
    def _(emitter: Emitter, op: Op, pointers: Registers, masks: Registers | None = None,
          ) -> Registers:
        count = len(pointers)
        loaded = global_memory.load(
            emitter, uint32, pointers, masks or global_memory.always(count),
            global_memory.zeros(uint32, count), access_width(emitter.axis_infos, op),
            global_memory.Hints())
        return [emitter.assembly(permute(3, 2, 1, 0), word, word)[0] for word in loaded]

    @function
    def load_swapped_(context, pointer, mask=None):
        """pointer: pointers, or `array.at[...]`, which has bounds of its own."""
        target, allowed = access(context, "load_swapped", pointer, mask)
        return context.emit(load_swapped, *(v for v in (target, allowed) if v is not None))

    return load_swapped_


def test_an_access_is_masked_wide_and_followed_to_its_array():
    load_swapped = register_access()

    @bn.jit
    def kernel(x, out, N: bn.constexpr):
        i = bn.span(0, N)
        out[i] = load_swapped(x.at[i])

    for count in (SIZE, SIZE - 100):
        x = words(5)[:count]
        interpreted, emulated, compiled = results(kernel, x, N=SIZE)

        expected = np.zeros(SIZE, np.uint32)
        expected[:count] = x.byteswap()
        np.testing.assert_array_equal(interpreted, expected)
        np.testing.assert_array_equal(emulated, expected)
        assert compiled.effects.read == {"x"} and compiled.effects.stored == {"out"}

    aligned = bn.compile(kernel, ("u32[::1]:16", "u32[::1]:16"), {"N": SIZE}, target="sm_90a",
                         num_warps=1)
    assert set(aligned.stats.loads) == {16}
