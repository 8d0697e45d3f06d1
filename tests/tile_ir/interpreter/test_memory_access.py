"""Loads, stores and atomics of the interpreter on arrays of every kind."""

import ml_dtypes
import numpy as np
import pytest

from blocknumba.errors import BlockIndexError, BlockValueError
from blocknumba.tile_ir.interpreter import run
from blocknumba.tile_ir.text.parser import parse

COPY_2D = """kernel copy(
  %x: ptr<int32> = pointer(x)
  %out: ptr<int32> = pointer(out)
  %rows: int32 = extent(x, 0)
  %columns: int32 = extent(x, 1)
  %sr: int32 = stride(x, 0)
  %sc: int32 = stride(x, 1)
  %tr: int32 = stride(out, 0)
  %tc: int32 = stride(out, 1)
) {
  %size = constant {value=4} : int32
  %pr = program_id {axis=0} : int32
  %pc = program_id {axis=1} : int32
  %fr = mul %pr, %size : int32
  %fc = mul %pc, %size : int32
  %r = arange {start=0, size=4} : tile<4xint32>
  %r0 = splat %fr : tile<4xint32>
  %r1 = add %r0, %r : tile<4xint32>
  %r2 = reshape %r1 : tile<4x1xint32>
  %r3 = broadcast %r2 : tile<4x4xint32>
  %c0 = splat %fc : tile<4xint32>
  %c1 = add %c0, %r : tile<4xint32>
  %c2 = reshape %c1 : tile<1x4xint32>
  %c3 = broadcast %c2 : tile<4x4xint32>
  %n0 = splat %rows : tile<4x4xint32>
  %n1 = splat %columns : tile<4x4xint32>
  %m0 = lt %r3, %n0 : tile<4x4xbool>
  %m1 = lt %c3, %n1 : tile<4x4xbool>
  %m = and %m0, %m1 : tile<4x4xbool>
  %s0 = splat %sr : tile<4x4xint32>
  %s1 = splat %sc : tile<4x4xint32>
  %o0 = mul %r3, %s0 : tile<4x4xint32>
  %o1 = mul %c3, %s1 : tile<4x4xint32>
  %p0 = splat %x : tile<4x4xptr<int32>>
  %p1 = offset %p0, %o0 : tile<4x4xptr<int32>>
  %p2 = offset %p1, %o1 : tile<4x4xptr<int32>>
  %v = load %p2, %m : tile<4x4xint32>
  %t0 = splat %tr : tile<4x4xint32>
  %t1 = splat %tc : tile<4x4xint32>
  %u0 = mul %r3, %t0 : tile<4x4xint32>
  %u1 = mul %c3, %t1 : tile<4x4xint32>
  %q0 = splat %out : tile<4x4xptr<int32>>
  %q1 = offset %q0, %u0 : tile<4x4xptr<int32>>
  %q2 = offset %q1, %u1 : tile<4x4xptr<int32>>
  store %q2, %v, %m
  return
}"""


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (3, 9), (8, 8), (13, 6)])
@pytest.mark.parametrize("view", [
    lambda a: a, lambda a: a.T.copy().T, lambda a: a[::-1, ::-1], lambda a: a.repeat(2, 1)[:, ::2],
    lambda a: np.broadcast_to(a[:1], a.shape)], ids=["C", "F", "reversed", "strided", "repeated"])
def test_matrices_of_any_shape_and_strides_are_copied(shape, view, debug):
    x = view(np.arange(np.prod(shape), dtype=np.int32).reshape(shape) + 1)
    padded = np.zeros((shape[0] + 2, 3 * shape[1] + 2), np.int32)
    out = padded[1:-1, 1:-1:3][:shape[0], :shape[1]]
    grid = ((shape[0] + 3) // 4, (shape[1] + 3) // 4, 1)

    run(parse(COPY_2D), grid, {"x": x, "out": out}, debug=debug)

    np.testing.assert_array_equal(out, x)
    assert np.count_nonzero(padded) == np.count_nonzero(x)


GATHER = """kernel gather(
  %x: ptr<{dtype}> = pointer(x)
  %i: ptr<int32> = pointer(i)
  %out: ptr<{dtype}> = pointer(out)
  %n: int32 = extent(x, 0)
) {{
  %r = arange {{start=0, size=16}} : tile<16xint32>
  %pi = splat %i : tile<16xptr<int32>>
  %ai = offset %pi, %r : tile<16xptr<int32>>
  %k = load %ai : tile<16xint32>
  %zero = constant {{value=0}} : int32
  %z = splat %zero : tile<16xint32>
  %nn = splat %n : tile<16xint32>
  %low = le %z, %k : tile<16xbool>
  %high = lt %k, %nn : tile<16xbool>
  %m = and %low, %high : tile<16xbool>
  %px = splat %x : tile<16xptr<{dtype}>>
  %ax = offset %px, %k : tile<16xptr<{dtype}>>
  %v = load %ax, %m : tile<16x{dtype}>
  %po = splat %out : tile<16xptr<{dtype}>>
  %ao = offset %po, %r : tile<16xptr<{dtype}>>
  store %ao, %v
  return
}}"""


@pytest.mark.parametrize("dtype", ["float32", "bool", "uint64", "bfloat16", "float8_e5m2"])
def test_masked_gathers_read_nothing_outside(dtype):
    index = np.array([0, 3, -1, 5, 99, 2**31 - 1, -2**31, 4, *range(8)], np.int32)
    x = (np.arange(5) % 2 + 1).astype(getattr(ml_dtypes, dtype, dtype))
    out = np.zeros(16, x.dtype)

    run(parse(GATHER.format(dtype=dtype)), (1, 1, 1), {"x": x, "i": index, "out": out})

    expected = [x[k] if 0 <= k < 5 else x.dtype.type(0) for k in index]
    np.testing.assert_array_equal(out, np.array(expected, x.dtype))


def test_a_gather_from_an_empty_array_gives_zeros():
    out = np.ones(16, np.float32)

    run(parse(GATHER.format(dtype="float32")), (1, 1, 1),
        {"x": out[:0], "i": np.zeros(16, np.int32), "out": out})

    assert not out.any()


POINTERS = """kernel pointers(
  %x: ptr<int32> = pointer(x)
  %y: ptr<int32> = pointer(y)
  %out: ptr<int32> = pointer(out)
) {{
  %pid = program_id {{axis=0}} : int32
  %zero = constant {{value=0}} : int32
  %one = constant {{value=1}} : int32
  %four = constant {{value=4}} : int32
  %odd = and %pid, %one : int32
  %c = eq %odd, %one : bool
  %chosen = select %c, %y, %x : ptr<int32>
  %r = arange {{start=0, size=4}} : tile<4xint32>
  %fours = splat %four : tile<4xint32>
  %px = splat %chosen : tile<4xptr<int32>>
  %a = offset %px, %r : tile<4xptr<int32>>
  %none = splat %zero : tile<4xint32>
  %end, %sum = for %zero, %four, %one, %a, %none : {tiles} (%i: int32, {carried}) {{
    %v = load %p : tile<4xint32>
    %t = add %s, %v : tile<4xint32>
    %q = offset %p, %fours : tile<4xptr<int32>>
    yield %q, %t
  }}
  %first = mul %pid, %four : int32
  %po = offset %out, %first : ptr<int32>
  %qo = splat %po : tile<4xptr<int32>>
  %ro = offset %qo, %r : tile<4xptr<int32>>
  store %ro, %sum
  return
}}""".format(tiles="tile<4xptr<int32>>, tile<4xint32>",
           carried="%p: tile<4xptr<int32>>, %s: tile<4xint32>")


@pytest.mark.parametrize("debug", [False, True])
def test_selected_and_carried_pointers_find_their_array(debug):
    x, y = np.arange(16, dtype=np.int32), np.arange(16, dtype=np.int32) * 100
    out = np.zeros((6, 4), np.int32)

    run(parse(POINTERS), (6, 1, 1), {"x": x, "y": y, "out": out}, debug=debug)

    sums = x.reshape(4, 4).sum(0)
    np.testing.assert_array_equal(out, [sums, 100 * sums] * 3)


READ = """kernel read(
  %x: ptr<int32> = pointer(x)
  %out: ptr<int32> = pointer(out)
) {
  %r = arange {start=0, size=8} : tile<8xint32>
  %p = splat %x : tile<8xptr<int32>>
  %a = offset %p, %r : tile<8xptr<int32>>
  %v = load %a : tile<8xint32>
  %q = splat %out : tile<8xptr<int32>>
  %b = offset %q, %r : tile<8xptr<int32>>
  store %b, %v
  return
}"""


@pytest.mark.parametrize(("x", "message"), [
    (np.zeros(5, np.int32), "load: index (5,) is outside x of shape (5,), in program (0, 0, 0), "
                            "element (5,) of the tile"),
    (np.zeros((3, 2), np.int32), "load: index (3, 0) is outside x of shape (3, 2), in program "
                                 "(0, 0, 0), element (6,) of the tile"),
    (np.zeros(9, np.int32)[::-1], "load: element 1 is outside x of shape (9,), in program "
                                  "(0, 0, 0), element (1,) of the tile"),
    (np.zeros(0, np.int32), "load: index (0,) is outside x of shape (0,), in program (0, 0, 0), "
                            "element (0,) of the tile"),
])
def test_a_read_outside_an_array_is_an_error_with_its_line(x, message):
    with pytest.raises(BlockIndexError) as caught:
        run(parse(READ), (1, 1, 1), {"x": x, "out": np.zeros(8, np.int32)})

    assert caught.value.message == message
    assert caught.value.loc.line == 8


def test_a_write_outside_an_array_is_an_error_and_writes_nothing():
    memory = np.zeros(8, np.int32)
    with pytest.raises(BlockIndexError, match=r"store: index \(5,\) is outside out"):
        run(parse(READ), (1, 1, 1), {"x": np.ones(8, np.int32), "out": memory[:5]})

    assert not memory.any()


def test_strides_that_split_elements_are_refused():
    x = np.zeros(9, [("a", np.int32), ("b", np.int8)])["a"]
    with pytest.raises(BlockValueError, match="x: strides must be multiples of 4 bytes"):
        run(parse(READ), (1, 1, 1), {"x": x, "out": np.zeros(8, np.int32)})


# atomics --------------------------------------------------------------------------------------

ATOMIC = """kernel atomic(
  %slots: ptr<int32> = pointer(slots)
  %values: ptr<{dtype}> = pointer(values)
  %memory: ptr<{dtype}> = pointer(memory)
  %old: ptr<{dtype}> = pointer(old)
) {{
  %pid = program_id {{axis=0}} : int32
  %size = constant {{value=64}} : int32
  %first = mul %pid, %size : int32
  %f = splat %first : tile<64xint32>
  %r = arange {{start=0, size=64}} : tile<64xint32>
  %i = add %f, %r : tile<64xint32>
  %ps = splat %slots : tile<64xptr<int32>>
  %as = offset %ps, %i : tile<64xptr<int32>>
  %s = load %as : tile<64xint32>
  %pv = splat %values : tile<64xptr<{dtype}>>
  %av = offset %pv, %i : tile<64xptr<{dtype}>>
  %v = load %av : tile<64x{dtype}>
  %pm = splat %memory : tile<64xptr<{dtype}>>
  %am = offset %pm, %s : tile<64xptr<{dtype}>>
  %o = atomic_rmw %am, %v {{kind="{kind}"}} : tile<64x{dtype}>
  %po = splat %old : tile<64xptr<{dtype}>>
  %ao = offset %po, %i : tile<64xptr<{dtype}>>
  {store}
  return
}}"""
STORE_OLD = "store %ao, %o"
COMBINE = {"add": lambda a, b: a + b, "max": max, "min": min, "and": lambda a, b: a & b,
           "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "exchange": lambda a, b: b}


@pytest.mark.parametrize("store", [STORE_OLD, ""], ids=["old", "unused"])
@pytest.mark.parametrize("slots", [1, 7, 1024])
@pytest.mark.parametrize("kind", COMBINE)
def test_atomics_act_in_the_order_of_programs_and_elements(kind, slots, store):
    generator = np.random.default_rng(slots)
    slot = generator.integers(0, slots, 512).astype(np.int32)
    values = generator.integers(-99, 99, 512).astype(np.int32)
    memory, old = np.arange(slots, dtype=np.int32), np.zeros(512, np.int32)
    expected, expected_old = memory.tolist(), []
    for s, v in zip(slot.tolist(), values.tolist()):
        expected_old.append(expected[s])
        expected[s] = COMBINE[kind](expected[s], v)

    run(parse(ATOMIC.format(dtype="int32", kind=kind, store=store)), (8, 1, 1),
        {"slots": slot, "values": values, "memory": memory, "old": old})

    assert memory.tolist() == expected
    assert old.tolist() == (expected_old if store else [0] * 512)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "uint64"])
@pytest.mark.parametrize("store", [STORE_OLD, ""], ids=["old", "unused"])
def test_atomic_add_counts_exactly_in_every_dtype(dtype, store):
    numpy_dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    slot = (np.arange(512) % 8).astype(np.int32)
    memory, old = np.zeros(8, numpy_dtype), np.zeros(512, numpy_dtype)

    run(parse(ATOMIC.format(dtype=dtype, kind="add", store=store)), (8, 1, 1),
        {"slots": slot, "values": np.ones(512, numpy_dtype), "memory": memory, "old": old})

    assert memory.astype(float).tolist() == [64.0] * 8
    assert not store or old.astype(float).tolist() == [float(i // 8) for i in range(512)]


TICKET = """kernel ticket(
  %counter: ptr<int32> = pointer(counter)
  %rows: ptr<int32> = pointer(rows)
) {
  %one = constant {value=1} : int32
  %eight = constant {value=8} : int32
  %slot = atomic_rmw %counter, %one {kind="add"} : int32
  %first = mul %slot, %eight : int32
  %row = offset %rows, %first : ptr<int32>
  %r = arange {start=0, size=8} : tile<8xint32>
  %p = splat %row : tile<8xptr<int32>>
  %a = offset %p, %r : tile<8xptr<int32>>
  %pid = program_id {axis=0} : int32
  %v = splat %pid : tile<8xint32>
  store %a, %v
  return
}"""


@pytest.mark.parametrize("debug", [False, True])
def test_every_program_gets_a_ticket_of_its_own(debug):
    counter, rows = np.zeros(1, np.int32), np.full((64, 8), -1, np.int32)

    run(parse(TICKET), (64, 1, 1), {"counter": counter, "rows": rows}, debug=debug)

    assert counter[0] == 64
    assert sorted(rows[:, 0]) == list(range(64)) and (rows == rows[:, :1]).all()


CAS = """kernel cas(
  %memory: ptr<int64> = pointer(memory)
  %old: ptr<int64> = pointer(old)
) {
  %one = constant {value=1} : int64
  %two = constant {value=2} : int64
  %c = splat %one : tile<8xint64>
  %v = splat %two : tile<8xint64>
  %r = arange {start=0, size=8} : tile<8xint32>
  %p = splat %memory : tile<8xptr<int64>>
  %a = offset %p, %r : tile<8xptr<int64>>
  %o = atomic_cas %a, %c, %v : tile<8xint64>
  %pid = program_id {axis=0} : int32
  %eight = constant {value=8} : int32
  %first = mul %pid, %eight : int32
  %row = offset %old, %first : ptr<int64>
  %q = splat %row : tile<8xptr<int64>>
  %b = offset %q, %r : tile<8xptr<int64>>
  store %b, %o
  return
}"""


def test_only_the_first_compare_and_swap_succeeds():
    memory, old = np.ones(8, np.int64), np.zeros((3, 8), np.int64)

    run(parse(CAS), (3, 1, 1), {"memory": memory, "old": old})

    assert (memory == 2).all()
    np.testing.assert_array_equal(old, np.repeat([1, 2, 2], 8).reshape(3, 8))
