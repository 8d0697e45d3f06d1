"""Block functions in Numba's cache on disk: found again, and never stale."""

import pickle
import sys
from textwrap import dedent

import numpy as np
import pytest
from numba_callers import EMULATED, Machine

import blocknumba as bn

cuda = pytest.importorskip("numba.cuda")
from numba.cuda.compiler import compile_cuda  # noqa: E402
from numba.cuda.typing.typeof import typeof  # noqa: E402


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes the module of a kernel, and imports it anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(factor="2", name="scale", more=""):
        (tmp_path / "kernels_of_a_cache.py").write_text(dedent(f"""
            import blocknumba as bn
            FACTOR = {factor}
            {more}

            @bn.jit
            def {name}(x, BLOCK: bn.constexpr):
                at = bn.span(0, BLOCK)
                x[at] = x[at] * FACTOR
            """))
        sys.modules.pop("kernels_of_a_cache", None)
        import kernels_of_a_cache
        return getattr(kernels_of_a_cache, name)

    yield write
    sys.modules.pop("kernels_of_a_cache", None)


def library_of(kernel) -> object:
    """The library of a kernel of numba-cuda that calls a block function."""
    function = bn.block_function(kernel, {"BLOCK": 32}, num_warps=1)

    def caller(x):
        function(x)

    array = typeof(np.zeros(3, np.float32))
    return compile_cuda(caller, None, (array,), cc=(9, 0)).library


def test_an_entry_is_found_again(written):
    library = library_of(written())

    again = pickle.loads(pickle.dumps(library))

    assert again.llvm_strs == library.llvm_strs
    assert again.get_asm_strs(cc=(9, 0)) == library.get_asm_strs(cc=(9, 0))


@pytest.mark.parametrize("change", [
    {"factor": "3"}, {"name": "scaled"}, {"more": "raise ImportError"}, {"more": "import absent"}])
def test_an_entry_counts_as_missing_when_the_kernel_changed_or_is_gone(written, change):
    entry = pickle.dumps(library_of(written()))
    try:
        written(**change)
    except ImportError:
        pass

    with pytest.raises(OSError, match="a block function that has changed|cannot be found"):
        pickle.loads(entry)


def test_what_changes_nothing_leaves_the_entry_alone(written):
    entry = pickle.dumps(library_of(written()))
    written(more="UNRELATED = 1")

    assert pickle.loads(entry).llvm_strs


def test_a_kernel_without_a_name_of_its_own_cannot_be_in_the_cache():
    @bn.jit
    def inner(x, BLOCK: bn.constexpr):
        x[bn.span(0, BLOCK)] = 1

    with pytest.raises(pickle.PicklingError, match="a kernel is pickled by its name"):
        pickle.dumps(library_of(inner))


def test_the_text_is_what_libnvvm_gets(written):
    function = bn.block_function(written(), {"BLOCK": 32}, num_warps=1)

    def caller(x):
        function(x)

    x = np.arange(20, dtype=np.float32)

    Machine(EMULATED).run(caller, 1, 32, x)

    assert (x == 2 * np.arange(20)).all()
