"""`python -m blocknumba port`: guessed arguments, and what the table says."""

import importlib
import itertools
import sys
import textwrap

import pytest

import blocknumba.triton as triton
import blocknumba.triton.language as tl
from blocknumba.__main__ import main
from blocknumba.tile_ir.ir.types import float32, float64
from blocknumba.triton.porting.arguments import guessed, uses_of
from blocknumba.triton.porting.command import loaded

COUNT = itertools.count()
GOOD = """
    import triton
    import triton.language as tl

    @triton.jit
    def scale(x_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, half(tl.load(x_ptr + i, mask=i < n)) * eps, mask=i < n)

    @triton.jit
    def half(x):
        return x * 0.5
"""
BAD = """
    import triton
    import triton.language as tl

    @triton.jit
    def wrong(x_ptr, BLOCK: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, BLOCK), tl.no_such_function(BLOCK))
"""
ONLY_HALF = """
    import triton
    import triton.language as tl

    @triton.autotune([triton.Config({"M": 32}, num_warps=2)], key=[])
    @triton.heuristics({"EVEN": lambda args: args["n"] % 16 == 0})
    @triton.jit
    def product(a, b, out, n, M: tl.constexpr, EVEN: tl.constexpr):
        tl.static_assert(EVEN)
        i = tl.arange(0, M)
        at = i[:, None] * M + i[None, :]
        half = tl.load(a + at)
        tl.static_assert(half.dtype == tl.float16)
        tl.store(out + at, tl.dot(half, tl.load(b + at)))
"""


@pytest.fixture
def folder(tmp_path):
    """A function that writes files, each under a name of its own, and returns their paths."""
    before, path = set(sys.modules), list(sys.path)

    def write(*texts, package=None):
        place = tmp_path / package if package else tmp_path
        place.mkdir(exist_ok=True)
        paths = [place / f"ported_{next(COUNT)}.py" for _ in texts]
        for file, text in zip(paths, texts):
            file.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        return paths

    yield write
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith("ported_"):
            del sys.modules[name]


def table(capsys):
    rows, _, rest = capsys.readouterr().out.partition("\n\n")
    return [line.split(None, 3) for line in rows.splitlines()], rest.splitlines()


def test_kernels_and_the_functions_that_they_call_are_listed(folder, capsys):
    (file,) = folder(GOOD)
    before = file.read_text()

    status = main(["port", str(file), "--target", "sm_80"])

    rows, rest = table(capsys)
    assert rows == [[file.name, "scale", "compiles", "arrays of fp32"],
                    [file.name, "half", "function"]]
    assert rest == ["1 of 1 kernels compile for sm_80; 1 functions that they call; "
                    "0 files that cannot be imported"]
    assert status == 0
    assert file.read_text() == before


def test_what_stops_a_kernel_is_said(folder, capsys):
    good, bad, broken = folder(GOOD, BAD, "import triton\nraise OSError('no driver')")

    status = main(["port", str(good.parent)])

    rows, rest = table(capsys)
    stopped = {row[0]: row[1:] for row in rows}
    assert stopped[bad.name][:2] == ["wrong", "stopped"]
    assert "no_such_function" in stopped[bad.name][2] and "(line 7)" in stopped[bad.name][2]
    assert stopped[broken.name] == ["not", "imported", "OSError: no driver"]
    assert rest[0].startswith("1 of 2 kernels compile for sm_90a; 1 functions")
    assert rest[0].endswith("1 files that cannot be imported")
    assert len(rest) == 3
    assert status == 1


def test_decorators_choose_and_other_dtypes_are_tried(folder, capsys):
    (file,) = folder(ONLY_HALF)

    status = main(["port", str(file)])

    rows, _ = table(capsys)
    assert rows == [[file.name, "product", "compiles", "arrays of fp16"]]
    assert status == 0


def test_a_file_of_a_package_is_imported_by_its_full_name(folder, capsys):
    name = f"ported_package_{next(COUNT)}"
    helpers, = folder("import triton\n\n@triton.jit\ndef f(x):\n    return x + 1\n", package=name)
    kernels, init = folder(f"""
        import triton
        import triton.language as tl
        from .{helpers.stem} import f

        @triton.jit
        def k(x):
            tl.store(x, f(tl.load(x)))
    """, "", package=name)
    init.rename(init.parent / "__init__.py")

    assert main(["port", str(kernels)]) == 0

    rows, _ = table(capsys)
    assert rows == [[kernels.name, "k", "compiles", "arrays of fp32"]]


def test_a_path_without_kernels_is_a_mistake(folder, capsys):
    (file,) = folder("import triton")

    assert main(["port", str(file)]) == 1
    assert "there are no kernels in" in capsys.readouterr().err
    assert main(["port", str(file) + "x"]) == 1
    assert "there is no" in capsys.readouterr().err


@triton.jit
def read(base, offset):
    return tl.load(base + offset)


@triton.jit
def of_everything(Q, out, at, lens, sm_scale, stride_q, head, desc, typed: tl.int64, missing=None,
                  BLOCK: tl.constexpr = 32, ROWS: tl.constexpr = None, MODE: tl.constexpr = "a",
                  kind: tl.constexpr = tl.float16):
    pointer = Q + head * stride_q
    rows = tl.arange(0, BLOCK)
    where = tl.load(at + rows)
    pointer += stride_q
    x = read(pointer, where + rows) * sm_scale
    if lens is not None:
        x += read(lens, rows)
    tl.store(out + rows, x + desc.load([0, 0]))


@triton.jit
def of_constants(x, WIDTH: tl.constexpr, ACT: tl.constexpr, ODD: tl.constexpr, OF: tl.constexpr,
                 LEVEL: tl.constexpr):
    if ACT == "relu":
        if not ODD:
            tl.store(x + tl.arange(0, WIDTH), tl.zeros([WIDTH], dtype=OF))


def test_types_are_guessed_from_what_parameters_do():
    types, constants = guessed(of_everything, uses_of(of_everything), {"BLOCK": 8}, "bf16")

    assert types == {"Q": "*bf16:16", "out": "*bf16:16", "at": "*i32:16", "lens": "*i32:16",
                     "sm_scale": "float", "stride_q": "int", "head": "int",
                     "desc": "tensordesc<bf16[16, 16]>",
                     "typed": "int64"}
    assert constants == {"missing": None, "BLOCK": 8, "ROWS": None, "MODE": "a",
                         "kind": tl.float16}


def test_constants_are_guessed_from_what_they_do():
    _, constants = guessed(of_constants, uses_of(of_constants), {}, "fp32")

    assert constants == {"WIDTH": 16, "ACT": "relu", "ODD": False, "OF": float32, "LEVEL": 1}


LAUNCHED = """
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x, out, index, stride, rows, columns, eps, bias, ACC: tl.constexpr,
               BLOCK: tl.constexpr, KIND: tl.constexpr, AFFINE: tl.constexpr):
        at = tl.program_id(0) * stride + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at).to(ACC) + tl.load(index))

    def launch(x, index, eps: float = 1e-6, kind="rms", bias=None):
        rows, columns, _ = *x.shape, 1
        out = torch.empty(rows, columns, dtype=torch.float32, device=x.device)
        block = max(16, triton.next_power_of_2(columns))
        kernel[(rows,)](x, out, index.long(), x.stride(0), rows, columns, eps, bias,
                        ACC=torch.float64, BLOCK=block, KIND=kind, AFFINE=bias is not None)
"""


def test_arguments_are_guessed_from_a_launch(folder):
    file, = folder(LAUNCHED.replace("import torch\n", "\n"))
    kernel = loaded(file).kernel

    types, constants = guessed(kernel, uses_of(kernel), {}, "fp16")

    assert types == {"x": "*fp16:16", "out": "*fp32:16", "index": "*i64:16", "stride": "int:16",
                     "rows": "int:16", "columns": "int:16", "eps": "float"}
    assert constants == {"bias": None, "ACC": float64, "BLOCK": 64, "KIND": "rms",
                         "AFFINE": False}
