"""Loads and stores reach the arrays, and only where they may."""

import numpy as np
import pytest
from ptx import module, run

from blocknumba.emulator import AccessError, GlobalMemory, Module, RaceError

_AT = "mad.wide.u32 %rd9, %r1, 4, %rd1;"


@pytest.mark.parametrize("words", [1, 2, 4])
def test_vectors_are_copied_whole(words):
    source = np.arange(32 * words, dtype=np.int32)
    target = np.zeros_like(source)
    names = ", ".join(f"%r{2 + word}" for word in range(words))
    names = f"{{{names}}}" if words > 1 else names
    kind = f".v{words}" if words > 1 else ""
    run(f"""mul.wide.u32 %rd8, %r1, {4 * words}; add.s64 %rd5, %rd1, %rd8; add.s64 %rd6, %rd2, %rd8;
        ld.global.nc{kind}.b32 {names}, [%rd5]; st.global{kind}.b32 [%rd6], {names};""",
        source, target)
    assert target.tolist() == source.tolist()


@pytest.mark.parametrize("kind, dtype, expected", [
    ("u8", np.uint8, 200), ("s8", np.uint8, -56), ("u16", np.uint16, 200), ("s16", np.int16, -200)])
def test_a_narrow_load_is_extended_as_its_type_says(kind, dtype, expected):
    source = np.full(1, expected % 256 if dtype == np.uint8 else expected).astype(dtype)
    output = np.zeros(1, np.int32)
    run(f"ld.global.{kind} %r2, [%rd1]; st.global.b32 [%rd2], %r2;", source, output, block=1)
    assert output[0] == expected


def test_a_predicated_load_keeps_the_other_value():
    source, output = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    run("""mul.wide.u32 %rd8, %r1, 4; add.s64 %rd5, %rd1, %rd8; add.s64 %rd6, %rd2, %rd8;
        setp.lt.u32 %p1, %r1, 20; mov.b32 %r2, -1; @%p1 ld.global.b32 %r2, [%rd5];
        st.global.b32 [%rd6], %r2;""", source, output)
    assert output.tolist() == [*range(20), *[-1] * 12]


def test_a_predicate_protects_from_addresses_out_of_bounds():
    array = np.zeros(20, np.int32)
    run(f"{_AT} setp.lt.u32 %p1, %r1, 20; @%p1 st.global.b32 [%rd9], %r1;", array)
    assert array.tolist() == list(range(20))


def test_a_store_one_element_too_far_is_found():
    with pytest.raises(AccessError, match=r"byte 80 of the array p0, which has 80 bytes") as caught:
        run(f"{_AT} setp.le.u32 %p1, %r1, 20; @%p1 st.global.b32 [%rd9], %r1;",
            np.zeros(20, np.int32))
    assert "thread (20, 0, 0)" in str(caught.value) and "st.global.b32" in str(caught.value)


@pytest.mark.parametrize("access", ["ld.global.u32 %r3, [%rd9];", "st.global.u32 [%rd9], %r1;"])
def test_the_first_thread_out_of_bounds_is_named_with_its_address(access):
    body = f"""setp.ge.u32 %p1, %r1, 6; @!%p1 bra END; mul.wide.u32 %rd8, %r1, 4;
        add.s64 %rd9, %rd1, %rd8; {access}
        END:"""

    with pytest.raises(AccessError) as caught:
        run(body, np.zeros(20, np.uint32), block=32)

    assert "(byte 80 of the array p0, which has 80 bytes), by thread (20, 0, 0)" in str(caught.value)


def test_a_load_before_an_array_is_found():
    with pytest.raises(AccessError, match="out of bounds"):
        run("ld.global.b32 %r2, [%rd1+-4];", np.zeros(4, np.int32))


def test_a_view_may_not_be_left():
    array = np.zeros(64, np.int32)
    with pytest.raises(AccessError, match="out of bounds"):
        run(f"{_AT} st.global.b32 [%rd9], %r1;", array[16:32])


def test_a_misaligned_vector_is_found():
    with pytest.raises(AccessError, match="16 bytes.*misaligned"):
        run("ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd1+4];", np.zeros(64, np.int32))


def test_a_view_keeps_the_misalignment_of_its_array():
    with pytest.raises(AccessError, match="misaligned"):
        run("ld.global.v2.b32 {%r2, %r3}, [%rd1];", np.zeros(64, np.int32)[1:])


def test_a_read_only_array_may_be_read_and_not_written():
    array = np.zeros(32, np.int32)
    array.flags.writeable = False
    run(f"{_AT} ld.global.b32 %r2, [%rd9];", array)
    with pytest.raises(AccessError, match="read-only"):
        run(f"{_AT} st.global.b32 [%rd9], %r1;", array)


def test_strided_arrays_are_addressed_by_their_strides():
    array = np.zeros((32, 4), np.int32)
    run("mad.wide.u32 %rd9, %r1, 16, %rd1; st.global.b32 [%rd9], %r1;", array[:, 2])
    assert array[:, 2].tolist() == list(range(32)) and array[:, 1].any() == False  # noqa: E712


def test_two_views_of_one_array_are_one_memory():
    array = np.arange(64, dtype=np.int32)
    run("""mad.wide.u32 %rd9, %r1, 4, %rd1; mad.wide.u32 %rd8, %r1, 4, %rd2;
        ld.global.b32 %r2, [%rd9]; st.global.b32 [%rd8], %r2;""", array[:32], array[32:])
    assert array[32:].tolist() == array[:32].tolist()


def test_shared_memory_that_nothing_wrote_is_found():
    body = """mov.u32 %r2, buffer; mad.lo.u32 %r3, %r1, 4, %r2; setp.ne.u32 %p1, %r1, 9;
        @%p1 st.shared.b32 [%r3], %r1; ld.shared.b32 %r4, [%r3];"""
    variables = ".shared .align 16 .b8 buffer[128];\n"
    with pytest.raises(AccessError, match=r"nothing has written.*|thread \(9, 0, 0\)") as caught:
        run(body, variables=variables)
    assert "thread (9, 0, 0)" in str(caught.value)
    run(body, variables=variables, uninitialized=False)


def test_shared_memory_has_its_size():
    with pytest.raises(AccessError, match="shared.*out of bounds"):
        run("mov.u32 %r2, buffer; mad.lo.u32 %r3, %r1, 8, %r2; st.shared.b32 [%r3], %r1;",
            variables=".shared .align 16 .b8 buffer[128];\n")


def test_dynamic_shared_memory_lies_behind_the_static():
    output = np.zeros(32, np.int32)
    run(f"""mov.u32 %r2, buffer; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.b32 [%r3], %r1;
        mov.u32 %r4, fixed; sub.s32 %r5, %r2, %r4; {_AT} st.global.b32 [%rd9], %r5;""", output,
        shared_bytes=128, variables=".shared .align 8 .b8 fixed[40];\n"
        ".extern .shared .align 128 .b8 buffer[];\n")
    assert (output == 128).all()


def test_local_memory_is_each_threads_own():
    output = np.zeros(64, np.int32)
    text = module(f"""mov.u64 %rd3, depot; cvta.local.u64 %rd4, %rd3; st.u32 [%rd4+4], %r1;
        ld.local.u32 %r2, [%rd3+4]; {_AT} st.global.b32 [%rd9], %r2;""").replace(
            "\n{", "\n{ .local .align 8 .b8 depot[16];", 1)
    Module.parse(text).launch("k", 1, 64, [output])
    assert output.tolist() == list(range(64))


def test_generic_addresses_find_their_space():
    output = np.zeros(1, np.int32)
    run("""mov.u64 %rd3, buffer; cvta.shared.u64 %rd4, %rd3; st.b32 [%rd4], 17;
        cvta.to.shared.u64 %rd5, %rd4; ld.shared.b32 %r2, [%rd5];
        isspacep.shared %p1, %rd4; @%p1 st.b32 [%rd1], %r2;""", output, block=1,
        variables=".shared .align 8 .b8 buffer[8];\n")
    assert output[0] == 17


def test_global_variables_have_initial_values_and_keep_new_ones():
    found = Module.parse(module("""mov.u64 %rd3, table; ld.global.b32 %r2, [%rd3+4];
        st.global.b32 [%rd1], %r2; st.global.b32 [%rd3+4], 5;""",
        variables=".global .align 4 .u32 table[2] = {1, 2};\n"))
    outputs = [np.zeros(1, np.int32), np.zeros(1, np.int32)]
    for output in outputs:
        found.launch("k", 1, 1, [output])
    assert [int(output[0]) for output in outputs] == [2, 5]


def test_addresses_can_be_passed_as_numbers():
    memory, array = GlobalMemory(), np.zeros(4, np.int32)
    address = memory.map(array)
    Module.parse(module("st.global.b32 [%rd1], 3;")).launch("k", 1, 1, [address + 8], memory=memory)
    assert array.tolist() == [0, 0, 3, 0]


def test_lanes_that_store_different_values_to_one_address_are_found():
    with pytest.raises(RaceError, match="different value"):
        run("st.global.b32 [%rd1], %r1;", np.zeros(1, np.int32))


@pytest.mark.parametrize("operation, dtype, type_, expected", [
    ("add", np.int32, "s32", sum(range(64))), ("max", np.int32, "s32", 63),
    ("min", np.int32, "s32", 0), ("or", np.uint32, "b32", 63), ("xor", np.uint32, "b32", 0),
    ("inc", np.uint32, "u32", 64 % 2),
])
def test_atomics_take_every_lane_into_account(operation, dtype, type_, expected):
    total = np.zeros(1, dtype)
    value = "1" if operation == "inc" else "%r1"
    run(f"atom.global.{operation}.{type_} %r2, [%rd1], {value};", total, block=64)
    assert total[0] == expected


def test_an_atomic_returns_each_value_once():
    total, seen = np.zeros(1, np.int32), np.zeros(64, np.int32)
    run("""atom.global.add.u32 %r2, [%rd1], 1; mad.wide.u32 %rd9, %r1, 4, %rd2;
        st.global.b32 [%rd9], %r2;""", total, seen, block=64)
    assert sorted(seen) == list(range(64))


def test_compare_and_swap_loops_make_any_atomic():
    total = np.ones(1, np.float32)
    run("""ld.global.b32 %r2, [%rd1];
        L: mov.b32 %f1, %r2; mul.f32 %f2, %f1, 0f40000000; mov.b32 %r3, %f2;
        atom.global.cas.b32 %r4, [%rd1], %r2, %r3; setp.ne.s32 %p1, %r4, %r2; mov.b32 %r2, %r4;
        @%p1 bra L;""", total, block=48)
    assert total[0] == 2.0**48


def test_a_packed_atomic_adds_its_halves_apart():
    total = np.zeros(2, np.float16)
    run("mov.b32 %r2, 0x40003C00; red.global.add.noftz.f16x2 [%rd1], %r2;", total, block=3)
    assert total.tolist() == [3, 6]
