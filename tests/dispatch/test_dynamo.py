"""Torch's compiler runs launches, and does not follow them into our code."""

import subprocess
import sys
import textwrap

import pytest

FAKE = """
    SKIP_DIRS, told, compiled = [], [], []

    def add(name):
        told.append(name)

    def _recompile_re():
        compiled.append(list(SKIP_DIRS))
"""
CHECK = """
    from torch._dynamo import trace_rules
    assert trace_rules.told == ["blocknumba", "numba", "llvmlite", "ml_dtypes"], trace_rules.told
    assert trace_rules.compiled == [["<blocknumba: "]]
    assert trace_rules.__spec__.name == "torch._dynamo.trace_rules"
"""
KERNELS = """
    import torch
    import blocknumba.triton as triton
    import blocknumba.triton.language as tl

    @triton.jit
    def add_one(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

    tuned = triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])(add_one)
    chosen = triton.heuristics({"BLOCK": lambda _: 64})(add_one)

    def function(x):
        y = torch.sin(x)
        out = torch.empty_like(y)
        kernel[(4,)](y, out, y.numel(), **keywords)
        return out * 2
"""


def run(code, folder):
    script = folder / "script.py"  # kernels of Triton's dialect are read from files
    script.write_text(textwrap.dedent(code))
    subprocess.run([sys.executable, str(script)], check=True, cwd=folder)


@pytest.mark.parametrize("order", ["import blocknumba", "from torch._dynamo import trace_rules"])
def test_the_rules_are_told_whoever_is_imported_first(tmp_path, order):
    rules = tmp_path / "torch" / "_dynamo"
    rules.mkdir(parents=True)
    for package in (rules.parent, rules):
        (package / "__init__.py").write_text("")
    (rules / "trace_rules.py").write_text(textwrap.dedent(FAKE))

    run(textwrap.dedent(order) + "\nimport blocknumba, torch" + textwrap.dedent(CHECK), tmp_path)


def test_a_torch_without_these_rules_is_left_alone(tmp_path):
    rules = tmp_path / "torch" / "_dynamo"
    rules.mkdir(parents=True)
    for file in (rules.parent / "__init__.py", rules / "__init__.py", rules / "trace_rules.py"):
        file.write_text("")

    run("import blocknumba, torch._dynamo.trace_rules", tmp_path)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_launch_in_a_compiled_function_is_one_break(tmp_path, backend):
    pytest.importorskip("torch")

    run(textwrap.dedent(KERNELS) + textwrap.dedent(f"""
        for kernel, keywords in ((add_one, {{"BLOCK": 64}}), (tuned, {{}}), (chosen, {{}})):
            torch._dynamo.reset()
            x = torch.randn(200)
            compiled = torch.compile(function, backend={backend!r})
            for _ in range(3):
                assert torch.allclose(compiled(x), (torch.sin(x) + 1) * 2)
            torch._dynamo.reset()
            found = torch._dynamo.explain(function)(x)
            assert (found.graph_count, found.graph_break_count) == (2, 1), found
        try:
            torch.library.wrap_triton(add_one)
        except RuntimeError as error:
            assert "wrap_triton only works on functions annotated with triton.jit" in str(error)
        else:
            raise AssertionError("wrap_triton took a kernel of ours")
    """), tmp_path)
