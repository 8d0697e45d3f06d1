"""The modules of Triton that public code imports, by every kind of import statement."""

import subprocess
import sys

import pytest

MODULES = [
    "language", "language.core", "language.extra", "language.extra.cuda",
    "language.extra.cuda.libdevice", "language.extra.libdevice", "language.math",
    "language.standard", "testing", "runtime", "runtime.autotuner", "runtime.cache",
    "runtime.driver", "runtime.errors", "runtime.jit", "tools", "tools.tensor_descriptor",
    "compiler", "compiler.compiler", "compiler.errors", "backends", "backends.compiler", "errors"]
NAMES = {
    "": "Config JITFunction KernelInterface OutOfResources TensorWrapper MockTensor autotune cdiv "
        "compile heuristics jit language next_power_of_2 reinterpret runtime set_allocator testing",
    "language": "constexpr math extra dot load program_id core",
    "language.extra.libdevice": "tanh fast_expf rsqrt pow popc double2int_rn",
    "language.extra.cuda.libdevice": "tanh erf", "language.math": "exp exp2 rsqrt umulhi tanh",
    "testing": "do_bench do_bench_cudagraph perf_report Benchmark assert_close",
    "runtime": "Autotuner Heuristics JITFunction KernelInterface driver Config",
    "runtime.autotuner": "Autotuner Config Heuristics OutOfResources autotune heuristics",
    "runtime.jit": "JITFunction KernelInterface MockTensor TensorWrapper reinterpret",
    "runtime.errors": "OutOfResources PTXASError InterpreterError AutotunerError",
    "runtime.driver": "driver", "tools.tensor_descriptor": "TensorDescriptor",
    "runtime.cache": "get_cache_manager FileCacheManager default_cache_dir",
    "compiler": "ASTSource CompiledKernel compile CompilationError",
    "compiler.errors": "CompilationError CompileTimeAssertionFailure UnsupportedLanguageConstruct",
    "backends.compiler": "GPUTarget"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_imported_by_every_statement(module):
    package, _, last = f"blocknumba.triton.{module}".rpartition(".")
    scope = {}

    exec(f"import blocknumba.triton.{module}\n"
         f"import blocknumba.triton.{module} as by_alias\n"
         f"from {package} import {last} as from_package\n", scope)

    wanted = sys.modules[f"blocknumba.triton.{module}"]
    if module != "runtime.driver":  # whose package has the object of that name, as Triton's
        assert scope["by_alias"] is scope["from_package"] is wanted


@pytest.mark.parametrize("module", NAMES)
def test_a_module_has_the_names_that_public_code_asks_for(module):
    full = ".".join(filter(None, ["blocknumba.triton", module]))
    scope = {}

    exec(f"from {full} import {', '.join(NAMES[module].split())}", scope)

    assert set(NAMES[module].split()) <= set(scope)


def test_the_driver_is_the_object_of_that_name():
    from blocknumba.triton.runtime import driver
    from blocknumba.triton.runtime.driver import driver as from_its_module

    assert driver is from_its_module
    assert driver.active.get_current_target().backend in ("cpu", "cuda")


def test_neither_triton_nor_torch_nor_numba_is_imported():
    code = ("import sys, blocknumba.triton, blocknumba.triton.language\n"
            "assert not {'triton', 'torch', 'numba'} & {*sys.modules}, 'imported'")

    subprocess.run([sys.executable, "-c", code], check=True)
