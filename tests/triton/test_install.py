"""`install`: imports of triton in named packages, and in no others."""

import importlib
import itertools
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import blocknumba.triton as triton
from blocknumba.errors import BlockTypeError, BlockValueError

KERNEL = """
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
    from .helpers import twice

    @triton.jit
    def scaled(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, twice(tl.load(x + i, mask=i < n)), mask=i < n)

    def run(x, out):
        import triton as lazily
        scaled[(lazily.cdiv(x.size, 64),)](x, out, x.size, BLOCK=64)
"""
HELPERS = """
    from triton import jit

    @jit
    def twice(x):
        return x + x
"""
NAMES = (f"installed_package_{number}" for number in itertools.count())


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A function that makes a package of files: name -> text."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def make(**files):
        made.append(next(NAMES))
        folder = tmp_path / made[-1]
        folder.mkdir()
        for name, text in ({"__init__": ""} | files).items():
            (folder / f"{name}.py").write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        return made[-1]

    yield make
    for name in [n for n in sys.modules if n.partition(".")[0] in made]:
        del sys.modules[name]


def module_of(package, text):
    name = package(module=text)
    triton.install(name)
    return importlib.import_module(f"{name}.module")


def test_kernels_of_a_package_run(package):
    name = package(kernels=KERNEL, helpers=HELPERS)
    triton.install(name)
    x = np.arange(100, dtype=np.float32)
    out = np.full(100, np.nan, np.float32)

    importlib.import_module(f"{name}.kernels").run(x, out)

    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize("statement, value", [
    ("import triton; got = triton", "blocknumba.triton"),
    ("import triton.language; got = triton", "blocknumba.triton"),
    ("import triton.language as got", "blocknumba.triton.language"),
    ("from triton import language as got", "blocknumba.triton.language"),
    ("from triton.runtime import jit as got", "blocknumba.triton.runtime.jit"),
    ("from triton.runtime import autotuner as got", "blocknumba.triton.runtime.autotuner"),
    ("import triton.language.extra.cuda.libdevice as got",
     "blocknumba.triton.language.extra.cuda.libdevice"),
    ("import importlib; got = importlib.import_module('triton.language')",
     "blocknumba.triton.language"),
    ("from importlib import import_module; got = import_module('triton.runtime.cache')",
     "blocknumba.triton.runtime.cache"),
    ("got = __import__('triton')", "blocknumba.triton"),
    ("def f():\n    import triton.testing as t\n    return t\ngot = f()",
     "blocknumba.triton.testing"),
])
def test_every_way_of_importing_finds_ours(package, statement, value):
    assert module_of(package, statement).got is sys.modules[value]


def test_names_and_stars_are_imported(package):
    module = module_of(package, "from triton import *\nfrom triton.runtime.jit import JITFunction")

    assert module.autotune is triton.autotune
    assert module.JITFunction is triton.JITFunction


def test_the_version_and_the_spec_are_asked_for(package):
    module = module_of(package, """
        import importlib.metadata
        import importlib.util
        from importlib.metadata import version
        versions = importlib.metadata.version("triton"), version("triton")
        spec = importlib.util.find_spec("triton.language")
        none = importlib.util.find_spec("no_such_module_anywhere")
        numpy = importlib.metadata.version("numpy")
    """)

    assert module.versions == ("3.6.0", "3.6.0")
    assert module.spec.name == "blocknumba.triton.language"
    assert module.none is None
    assert module.numpy == np.__version__


def test_code_that_a_package_generates_gets_ours_too(package, tmp_path):
    (tmp_path / "generated.py").write_text("import triton.language as tl\ngot = tl.load")

    module = module_of(package, f"""
        import importlib.util
        spec = importlib.util.spec_from_file_location("generated", {str(tmp_path)!r}
                                                      + "/generated.py")
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    """)

    assert module.made.got is triton.language.load


def test_a_module_that_there_is_not_is_an_import_error_of_that_name(package):
    module = module_of(package, """
        try:
            import triton.experimental.gluon
        except ModuleNotFoundError as error:
            name = error.name
        try:
            from triton import no_such_name
        except ImportError as error:
            text = str(error)
    """)

    assert module.name == "triton.experimental.gluon"
    assert "no_such_name" in module.text


def test_other_packages_and_the_table_of_modules_are_left_alone(package):
    before = {name for name in sys.modules if name.partition(".")[0] == "triton"}
    module_of(package, "import triton")
    other = package(module="try:\n    import triton\n    found = triton.__name__\n"
                           "except ImportError:\n    found = None")

    assert importlib.import_module(f"{other}.module").found in (None, "triton")
    if "triton" not in before and importlib.util.find_spec("triton") is None:
        assert "triton" not in sys.modules


def test_a_package_that_was_imported_before_is_an_error_that_says_the_order(package):
    name = package(module="")
    importlib.import_module(f"{name}.module")

    with pytest.raises(BlockValueError) as caught:
        triton.install(name)

    assert str(caught.value) == (
        f"install: {name} was imported before, accepted packages that are not yet\n"
        f'  hint: put blocknumba.triton.install("{name}") before the first import of {name}')


def test_installing_twice_changes_nothing(package):
    name = package(module="import triton")
    triton.install(name)
    importlib.import_module(name)

    triton.install(name)


@pytest.mark.parametrize("given, error", [("triton", BlockValueError), ("torch", BlockValueError),
                                          ("torch.nn", BlockValueError), (1, BlockTypeError),
                                          ("no name", BlockTypeError)])
def test_what_is_no_package_of_kernels_is_refused(given, error):
    with pytest.raises(error, match="^install: given"):
        triton.install(given)


def test_a_part_of_a_package_may_be_named(package):
    name = package(ours="import triton\ngot = triton", theirs="import json as got")
    triton.install(f"{name}.ours")

    assert importlib.import_module(f"{name}.ours").got is triton
    assert importlib.import_module(f"{name}.theirs").got.__name__ == "json"


def test_tracebacks_and_sources_of_an_installed_package_are_read(package):
    import inspect
    module = module_of(package, "import triton\n\ndef run():\n    raise ValueError('here')\n")

    assert "raise ValueError" in inspect.getsource(module.run)
    assert module.__spec__.name == module.__name__


def test_with_torch_beside_compiled_functions_are_as_without_us(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "beside.py").write_text("import triton\n")
    code = """
        import torch
        import blocknumba.triton
        blocknumba.triton.install("beside")
        import beside
        assert beside.triton is blocknumba.triton
        function = lambda x: torch.sin(x) * 2 + x.sum()
        x = torch.randn(64)
        compiled = torch.compile(function, backend="eager")
        assert torch.equal(compiled(x), function(x))
        import sys
        assert sys.modules.get("triton") is not blocknumba.triton
    """

    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, cwd=tmp_path)
