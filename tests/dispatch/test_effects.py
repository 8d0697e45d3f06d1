"""Which arrays a kernel reads and stores to."""

from blocknumba.tile_ir.analysis.provenance import effects
from blocknumba.tile_ir.text.parser import parse

HEADER = """kernel example(
  %x: ptr<float32> = pointer(x)
  %y: ptr<float32> = pointer(y)
  %z: ptr<float32> = pointer(z)
  %go: bool = value(go)
  %n: int32 = value(n)
) {
"""


def effects_of(body: str):
    found = effects(parse(HEADER + body + "  return\n}\n"))
    return set(found.read), set(found.stored)


def test_loads_and_stores_are_followed_to_their_arrays():
    read, stored = effects_of("""
  %i = arange {start=0, size=4} : tile<4xint32>
  %xs = splat %x : tile<4xptr<float32>>
  %p = offset %xs, %i : tile<4xptr<float32>>
  %v = load %p : tile<4xfloat32>
  %ys = splat %y : tile<4xptr<float32>>
  %q = offset %ys, %i : tile<4xptr<float32>>
  store %q, %v
""")

    assert (read, stored) == ({"x"}, {"y"})


def test_an_atomic_reads_and_stores():
    read, stored = effects_of("""
  %one = constant {value=1.0} : float32
  %old = atomic_rmw %z, %one {kind="add"} : float32
""")

    assert (read, stored) == ({"z"}, {"z"})


def test_a_selected_pointer_is_of_either_array():
    read, stored = effects_of("""
  %p = select %go, %x, %y : ptr<float32>
  %v = load %p : float32
  store %z, %v
""")

    assert (read, stored) == ({"x", "y"}, {"z"})


def test_a_pointer_from_an_arm_of_an_if_is_of_either_array():
    read, stored = effects_of("""
  %p = if %go : ptr<float32> {
    yield %x
  } else {
    yield %y
  }
  %v = load %p : float32
""")

    assert (read, stored) == ({"x", "y"}, set())


def test_pointers_that_a_loop_exchanges_are_of_either_array():
    read, stored = effects_of("""
  %zero = constant {value=0} : int32
  %one = constant {value=1} : int32
  %p, %q = for %zero, %n, %one, %x, %y : ptr<float32>, ptr<float32> """ + """\
(%i: int32, %a: ptr<float32>, %b: ptr<float32>) {
    %v = load %a : float32
    yield %b, %a
  }
  %f = constant {value=1.0} : float32
  store %p, %f
""")

    assert read == {"x", "y"}
    assert stored == {"x", "y"}


def test_a_kernel_that_does_nothing_has_no_effects():
    assert effects_of("") == (set(), set())


def assembly(pure: bool) -> set[str]:
    return effects_of(f"""
  %a = address %x : int64
  %far = constant {{value=16}} : int64
  %b = add %a, %far : int64
  %made = inline_asm %b {{assembly="st.global.u32 [$1], 0;", constraints="=r,l", \
dtypes=("int32",), pack=1, pure={pure}}} : int32
""")


def test_assembly_may_read_and_store_whatever_has_become_a_number():
    assert assembly(pure=False) == ({"x"}, {"x"})


def test_pure_assembly_may_read_it():
    assert assembly(pure=True) == ({"x"}, set())
