"""Buffers of a nest were laid out in the order of a set of values: by their addresses."""

from blocknumba.cpu_lower.kernel import lower
from blocknumba.cpu_lower.target import host
from blocknumba.tile_ir.text.parser import parse

ROWS = 8  # tiles that one nest computes and keeps
TEXT = "\n".join([
    "kernel many(", "  %x: ptr<float32> = pointer(x)", "  %y: ptr<float32> = pointer(y)", ") {",
    "  %i = arange {start=0, size=64} : tile<64xint32>",
    "  %xs = splat %x : tile<64xptr<float32>>", "  %p = offset %xs, %i : tile<64xptr<float32>>",
    "  %ys = splat %y : tile<64xptr<float32>>", "  %q = offset %ys, %i : tile<64xptr<float32>>",
    "  %t0 = load %p : tile<64xfloat32>",
    *(f"  %t{n + 1} = exp %t{n} : tile<64xfloat32>" for n in range(ROWS)),
    f"  store %q, %t{ROWS}",
    *(f"  %r{n} = reduce %t{n + 1} {{axis=0, kind=\"sum\"}} : float32" for n in range(ROWS)),
    *(f"  store %y, %r{n}" for n in range(ROWS)),
    "  return", "}", ""])


def test_equal_functions_have_equal_code():
    functions = [parse(TEXT) for _ in range(12)]  # at the same time, so that addresses differ

    assert len({lower(function, host()).llvm_ir for function in functions}) == 1
