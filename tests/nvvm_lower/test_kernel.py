"""Kernels as a whole: signature, launch data, every target, line info, resources, speed."""

import re
import time

import pytest
from kernels import assembled, elementwise_kernel, kernel, lowered, laid_out

from blocknumba.errors import Loc
from blocknumba.nvvm_lower.emitter import CODE, CodeOptions
from blocknumba.nvvm_lower.kernel import assemble_kernel, lower, symbol
from blocknumba.nvvm_lower.target import TARGETS, Capability
from blocknumba.tile_ir.ir.function import walk
from blocknumba.tile_ir.ir.opdef import OPS, TERMINATOR
from blocknumba.tile_ir.ops import views

ADD = elementwise_kernel("%result = add %a, %b : tile<1024xfloat32>", "float32", "float32",
                         multiple=16)


def softmax_kernel(columns, dtype="float32"):
    """One row of `columns` elements per program."""
    def tile(element):
        return f"tile<{columns}x{element}>"

    return kernel(f"""%xp: ptr<{dtype}> = pointer(x) {{divisibility=16}}
%op: ptr<{dtype}> = pointer(out) {{divisibility=16}}
%n: int32 = extent(x, 1) {{divisibility=16, minimum=0}}
%sx: int32 = stride(x, 0) {{divisibility=16}}""", f"""
%row = program_id {{axis=0}} : int32
%start = mul %row, %sx : int32
%xr = offset %xp, %start : ptr<{dtype}>
%or = offset %op, %start : ptr<{dtype}>
%index = arange {{start=0, size={columns}}} : {tile("int32")}
%ns = splat %n : {tile("int32")}
%mask = lt %index, %ns : {tile("bool")}
%xs = splat %xr : {tile(f"ptr<{dtype}>")}
%xq = offset %xs, %index : {tile(f"ptr<{dtype}>")}
%low = constant {{value=-inf}} : {dtype}
%lows = splat %low : {tile(dtype)}
%x = load %xq, %mask, %lows : {tile(dtype)}
%xf = cast %x : {tile("float32")}
%m = reduce %xf {{axis=0, kind="max"}} : float32
%ms = splat %m : {tile("float32")}
%c = sub %xf, %ms : {tile("float32")}
%e = exp %c : {tile("float32")}
%s = reduce %e {{axis=0, kind="sum"}} : float32
%ss = splat %s : {tile("float32")}
%yf = div %e, %ss : {tile("float32")}
%y = cast %yf : {tile(dtype)}
%os = splat %or : {tile(f"ptr<{dtype}>")}
%oq = offset %os, %index : {tile(f"ptr<{dtype}>")}
store %oq, %y, %mask""")


def test_every_op_has_a_code_face():
    # map_dots, lower_reductions and stage_conversions leave none; views are lowered to pointers
    replaced = {"dot", "sort", "histogram", "stage", "shared_tile", *(
        name for name, op in OPS.items() if op.infer.__module__ == views.__name__)}
    wanted = {name for name, op in OPS.items() if not op.has(TERMINATOR)} - replaced

    assert wanted <= set(CODE), f"no code: {sorted(wanted - set(CODE))}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("text", [ADD, softmax_kernel(1024), softmax_kernel(2048, "float16")],
                         ids=["add", "softmax", "softmax_f16"])
def test_a_kernel_assembles_everywhere_without_spills_or_warnings(text, target):
    found = assembled(text, target)

    assert found.warnings == ()
    assert found.spill_bytes == 0
    # the cold way of divisions, of 32 elements at a time
    assert found.stack_bytes == (128 if "= div " in text else 0)
    assert 0 < found.registers <= 64


def test_a_launch_is_told_what_it_needs():
    found = lowered(softmax_kernel(1024), num_warps=8)

    assert found.name == "k"
    assert found.num_warps == 8
    assert found.shared_bytes >= 2 * 8 * 4  # a maximum and a sum of each warp
    assert [parameter.argument for parameter in found.parameters] == ["x", "out", "x", "x"]


def test_parameters_have_their_natural_size():
    text = kernel("\n".join(f"%{i}: {dtype} = value(v{i}) {{}}" for i, dtype in enumerate(
        ("bool", "int8", "float16", "bfloat16", "int32", "float32", "float64", "uint64"))), "")

    ptx = assembled(text).ptx

    found = re.findall(r"\.param \.[a-z](\d+)", ptx)
    assert found == ["8", "8", "16", "16", "32", "32", "64", "64"]


def test_a_name_becomes_a_symbol():
    assert symbol("add.<locals>.k") == "add__locals__k"
    assert symbol("1st") == "_1st"


def test_different_python_names_become_different_symbols_of_c_and_ptx():
    names = ["_", "__", "é", "è", "日本", "αβ", "αγ", "x", "x_", "WARP_SZ", "vprintf", "text0"]

    symbols = [symbol(name) for name in names]

    assert len(set(symbols)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z_]\w+|[A-Za-z]", found, re.ASCII) for found in symbols)
    assert symbols == [symbol(name) for name in names]


def test_registers_can_be_limited():
    assert ".maxnreg 32" in assembled(softmax_kernel(4096), maxnreg=32).ptx


@pytest.mark.parametrize("target", ["sm_90a", "sm_100"])
def test_line_info_names_the_lines_of_the_source(target):
    fn = laid_out(ADD)
    fn.loc = Loc("/home/me/add.py", 3, function="add")
    caller = Loc("/home/me/add.py", 7, 4, 9, "add")
    for number, op in enumerate(walk(fn.body)):
        op.loc = Loc("/home/me/lib.py", 20, 0, 5, "helper", caller) if op.name == "add" else Loc(
            "/home/me/add.py", 4 + number % 3, 4, 9, "add")
    options = CodeOptions(lineinfo=True)

    found = assemble_kernel(lower(fn, TARGETS[target], options), TARGETS[target], options)

    assert re.search(r'\.file\s+\d+ "/home/me/add.py"', found.ptx)
    assert re.search(r"\.loc\s+\d+ 20 1, function_name \S+, inlined_at \d+ 7 5", found.ptx)
    assert b".debug_line" in found.cubin


def test_without_line_info_there_is_no_debug_section():
    assert ".loc" not in assembled(ADD).ptx


def test_lowering_is_fast():
    fn, target = laid_out(softmax_kernel(1024)), TARGETS["sm_90a"]
    times = []
    for _ in range(10):
        start = time.perf_counter()
        lower(fn, target)
        times.append(time.perf_counter() - start)

    assert min(times) < 3e-3


def test_equal_functions_give_equal_text():
    assert lowered(ADD).nvvm_ir == lowered(ADD).nvvm_ir


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_a_dependent_kernel_waits_before_anything_else_where_it_can(target):
    gpu = laid_out(ADD)

    code = lower(gpu, target, CodeOptions(dependent=True)).nvvm_ir

    if target.has(Capability.LAUNCH_DEPENDENTS):
        assert code.index("griddepcontrol.wait") < code.index("ld.global")
        assert_assembles(gpu, target)
    else:
        assert "griddepcontrol" not in code


def assert_assembles(gpu, target) -> None:
    options = CodeOptions(dependent=True)
    assert assemble_kernel(lower(gpu, target, options), target, options).cubin
