"""Elements that nobody has written: followed through every pure op, found where they are used."""

import numpy as np
import pytest

from blocknumba.errors import BlockNameError
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.interpreter.affine import Shadowed, dense
from blocknumba.tile_ir.interpreter.shadows import MISSING, run_through
from blocknumba.tile_ir.ir.builder import Builder
from blocknumba.tile_ir.ir.function import Value
from blocknumba.tile_ir.ir.opdef import ELEMENTWISE, OPS, PURE
from blocknumba.tile_ir.ir.types import TileType, dtype_of
from blocknumba.tile_ir.text.parser import parse

PROGRAMS = 3

# op, the shape and dtype of each operand, attributes
ADDED = ((("add", (0, 1), ()),), (2,))
ADDED_EACH = ((("add", (0, 2), ()), ("add", (1, 3), ())), (4, 5))
CASES = [
    ("add", [((4,), "int32")] * 2, {}),
    ("fma", [((4,), "float32")] * 3, {}),
    ("invert", [((4,), "bool")], {}),
    ("and", [((8,), "bool")] * 2, {}),
    ("or", [((8,), "bool")] * 2, {}),
    ("and", [((8,), "int32")] * 2, {}),
    ("select", [((8,), "bool"), ((8,), "int32"), ((8,), "int32")], {}),
    ("cast", [((8,), "int32")], {"dtype": "float32"}),
    ("splat", [((), "int32")], {"shape": (2, 4)}),
    ("broadcast", [((1, 4), "int32")], {"shape": (2, 4)}),
    ("reshape", [((2, 4), "int32")], {"shape": (4, 2)}),
    ("transpose", [((2, 4, 8), "int32")], {"axes": (2, 0, 1)}),
    ("join", [((2, 4), "int32")] * 2, {}),
    ("split", [((4, 2), "int32")], {}),
    ("flip", [((2, 4), "int32")], {"axis": 1}),
    ("extract", [((4, 8), "int32")], {"starts": (2, 4), "shape": (2, 4)}),
    ("reduce", [((4, 8), "int32")], {"axis": 1, "kind": "sum"}),
    ("reduce", [((4, 8), "int32")], {"axis": 0, "kind": "max"}),
    ("arg_reduce", [((4, 8), "int32")], {"axis": 0, "kind": "max"}),
    ("scan", [((4, 8), "int32")], {"axis": 1, "combination": ADDED}),
    ("scan", [((4, 8), "int32"), ((4, 8), "float32")],
     {"axis": 0, "combination": ADDED_EACH, "reverse": True}),
    ("reduce_with", [((4, 8), "int32")], {"axis": 1, "combination": ADDED}),
    ("reduce_with", [((4, 8), "int32"), ((4, 8), "float32")],
     {"axis": 0, "combination": ADDED_EACH}),
    ("gather", [((4, 8), "int32"), ((4, 2), "int32")], {"axis": 1}),
    ("histogram", [((4, 8), "int32")], {"bins": 4}),
    ("histogram", [((4, 8), "int32"), ((4, 8), "bool")], {"bins": 4}),
    ("sort", [((4, 8), "int32")], {"axis": 1, "kept": 8}),
    ("sort", [((4, 8), "int32"), ((4, 8), "int32")], {"axis": 0, "kept": 2}),
    ("dot", [((4, 8), "float32"), ((8, 2), "float32"), ((4, 2), "float32")], {}),
    ("dot", [((2, 4, 8), "float32"), ((2, 8, 2), "float32"), ((2, 4, 2), "float32")], {}),
]
CASE_NAMES = [f"{name}-{i}" for i, (name, *_) in enumerate(CASES)]


def made(name, operands, attributes):
    """An op on values that come from nowhere."""
    values = [Value(TileType(dtype_of(dtype), shape)) for shape, dtype in operands]
    return Builder(folding=False).make(OPS[name], values, (), "", None, attributes)


def some(random, shape, dtype):
    """Small random numbers of a dtype."""
    return random.integers(-4, 4, (PROGRAMS, *shape)).astype(dtype)


def marks(tile, like):
    """Which elements of a result are missing."""
    return tile.kinds == MISSING if isinstance(tile, Shadowed) else np.zeros(like.shape, bool)


def unwritten(missing, array):
    """An array of which some elements are missing."""
    return Shadowed(np.where(missing, MISSING, 0).astype(np.uint8), array)


def results_of(op, tiles):
    """The results of an op, as a tuple."""
    found = run_through(op, tiles, lambda *given: op.opdef.evaluate(*map(dense, given), **op.attrs))
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "operands", "attributes"), CASES, ids=CASE_NAMES)
def test_what_is_not_missing_does_not_depend_on_what_is(name, operands, attributes, seed):
    random = np.random.default_rng(seed)
    op = made(name, operands, attributes)
    arrays = [some(random, *operand) for operand in operands]
    others = [some(random, *operand) for operand in operands]
    masks = [random.random(array.shape) < 0.3 for array in arrays]

    one = results_of(op, [unwritten(m, a) for m, a in zip(masks, arrays)])
    other = results_of(op, [unwritten(m, np.where(m, b, a))
                            for m, a, b in zip(masks, arrays, others)])

    for x, y in zip(one, other, strict=True):
        given = ~np.broadcast_to(marks(x, dense(x)), dense(x).shape)
        np.testing.assert_array_equal(dense(x)[given], dense(y)[given])


@pytest.mark.parametrize(("name", "operands", "attributes"), CASES, ids=CASE_NAMES)
def test_every_missing_element_of_a_result_has_a_reason(name, operands, attributes):
    """With one missing element of one operand, the others of a moved tile are not missing."""
    random = np.random.default_rng(5)
    op = made(name, operands, attributes)
    arrays = [some(random, *operand) for operand in operands]
    masks = [np.zeros(array.shape, bool) for array in arrays]
    masks[0][(1,) + (0,) * len(operands[0][0])] = True

    results = results_of(op, [unwritten(m, a) for m, a in zip(masks, arrays)])

    programs = [marks(x, dense(x)).reshape(PROGRAMS, -1).any(axis=1) for x in results]
    assert not np.any(programs, axis=0)[[0, 2]].any()
    if name not in ("splat", "dot", "broadcast", "scan", "reduce_with", "gather", "histogram",
                    "sort"):
        assert sum(marks(x, dense(x)).sum() for x in results) <= 1


def test_every_pure_op_that_mixes_elements_has_a_case():
    mixing = {name for name, opdef in OPS.items()
              if opdef.has(PURE) and opdef.operands and not opdef.has(ELEMENTWISE)
              and opdef.infer.__module__.startswith("blocknumba.tile_ir.")
              and "views" not in opdef.infer.__module__}  # debug runs what they are lowered to

    assert mixing <= {name for name, *_ in CASES}


PARTIAL = """kernel partial(
  %out: ptr<int32> = pointer(out)
  %n: int32 = value(n)
  %m: int32 = value(m)
) {{
  %r = arange {{start=0, size=8}} : tile<8xint32>
  %ns = splat %n : tile<8xint32>
  %written = lt %r, %ns : tile<8xbool>
  %ms = splat %m : tile<8xint32>
  %mask = lt %r, %ms : tile<8xbool>
  %u = undefined {{zero=True}} : int32
  %e = splat %u : tile<8xint32>
  %v = select %written, %r, %e : tile<8xint32>
  %p = splat %out : tile<8xptr<int32>>
  %a = offset %p, %r : tile<8xptr<int32>>
  {use}
  return
}}"""
USES = {
    "store": "store %a, %v, %mask",
    "address": "%b = offset %p, %v : tile<8xptr<int32>>\n  store %b, %r, %mask",
    "load": "%b = offset %p, %v : tile<8xptr<int32>>\n  %x = load %b, %mask : tile<8xint32>",
    "other": "%not = invert %mask : tile<8xbool>\n  %x = load %a, %not, %v : tile<8xint32>\n"
             "  store %a, %x",
    "atomic": '%x = atomic_rmw %a, %v, %mask {kind="add"} : tile<8xint32>',
    "mask": "%four = gt %v, %ms : tile<8xbool>\n  %o = and %four, %mask : tile<8xbool>\n"
            "  store %a, %r, %o",
    "index": 'check_index %v, %ns, %mask {array="out", axis=0}',
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_elements_that_a_mask_leaves_out_need_not_be_written(use):
    run(parse(PARTIAL.format(use=use)), (1, 1, 1), {"out": np.zeros(8, np.int32), "n": 5, "m": 5},
        debug=True)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_elements_that_a_mask_lets_through_must_be_written(use):
    with pytest.raises(BlockNameError, match=r"element \(5,\) of .* is used, which nobody has"):
        run(parse(PARTIAL.format(use=use)), (2, 1, 1),
            {"out": np.zeros(8, np.int32), "n": 5, "m": 6}, debug=True)


def test_the_error_names_the_op_the_element_and_where_it_was_made():
    with pytest.raises(BlockNameError) as caught:
        run(parse(PARTIAL.format(use="store %a, %v")), (1, 1, 1),
            {"out": np.zeros(8, np.int32), "n": 2, "m": 0}, debug=True)

    assert caught.value.message == ("store: element (2,) of v is used, which nobody has written, "
                                    "in program (0, 0, 0)")
    assert caught.value.loc.line == 16
    assert caught.value.hint == "they are from bn.empty in line 11"


SUMMED = {
    "store": "store %out, %sum",
    "branch": "%c = gt %sum, %n : bool\n  if %c {\n    yield\n  } else {\n    yield\n  }",
    "bound": "for %n, %sum, %n (%i: int32) {\n    yield\n  }",
    "while": "loop () {\n    %c = lt %sum, %n : bool\n    continue_if %c\n  }",
    "assertion": '%c = gt %sum, %n : bool\n  assert %c {message=""}',
    "print": '%c = gt %sum, %n : bool\n  print %c {prefix=""}',
}


@pytest.mark.parametrize("use", SUMMED.values(), ids=SUMMED)
def test_a_sum_of_elements_that_are_not_all_written_must_not_be_used(use):
    text = PARTIAL.format(use='%sum = reduce %v {axis=0, kind="sum"} : int32\n  ' + use)
    arguments = {"out": np.zeros(8, np.int32), "n": 7, "m": 0}

    with pytest.raises(BlockNameError, match="is used, which is made of elements that nobody has"):
        run(parse(text), (1, 1, 1), arguments, debug=True)

    run(parse(text), (1, 1, 1), {**arguments, "n": 8}, debug=True)


def test_programs_that_diverge_keep_what_each_has_not_written():
    text = PARTIAL.format(use="""%pid = program_id {axis=0} : int32
  %c = lt %pid, %n : bool
  %w = if %c : tile<8xint32> {
    %s = add %r, %r : tile<8xint32>
    yield %s
  } else {
    yield %v
  }
  %eight = constant {value=8} : int32
  %row = mul %pid, %eight : int32
  %rows = splat %row : tile<8xint32>
  %b = offset %a, %rows : tile<8xptr<int32>>
  store %b, %w""")
    out = np.zeros((4, 8), np.int32)

    with pytest.raises(BlockNameError) as caught:
        run(parse(text), (4, 1, 1), {"out": out, "n": 3, "m": 0}, debug=True)

    assert caught.value.message == ("store: element (3,) of w is used, which nobody has written, "
                                    "in program (3, 0, 0)")


def test_without_debug_unwritten_elements_are_zero():
    out = np.full(8, -1, np.int32)

    run(parse(PARTIAL.format(use="store %a, %v")), (1, 1, 1), {"out": out, "n": 3, "m": 0})

    assert out.tolist() == [0, 1, 2, 0, 0, 0, 0, 0]
