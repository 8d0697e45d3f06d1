"""What a compilation tells the user, and the settings that ask for it."""

import numpy as np
import pytest

import blocknumba as bn

from blocknumba.cpu_lower.target import host
from blocknumba.dispatch.compile import kernel_code
from blocknumba.errors import BlockValueError
from blocknumba.settings import LEVELS, Settings, read_settings


@bn.jit
def copy(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r]


def said(settings: Settings, capsys, monkeypatch, **options) -> str:
    """What is written to standard error when a kernel is compiled."""
    monkeypatch.setattr(kernel_code, "SETTINGS", settings)
    bn.compile(bn.jit(copy.python_function), ("f32[::1]:16",) * 2, {"B": 128}, **options)
    return capsys.readouterr().err


def test_nothing_is_said_unless_asked_for(capsys, monkeypatch):
    assert said(Settings(), capsys, monkeypatch) == ""


def test_the_time_of_each_stage_is_said(capsys, monkeypatch):
    text = said(Settings(time=True), capsys, monkeypatch)

    assert text.startswith(f"# copy for {host()}: ")
    assert "ms (typing " in text and ", tile " in text
    assert text.count("\n") == 1


def test_the_levels_that_were_asked_for_are_shown_in_order(capsys, monkeypatch):
    pytest.importorskip("cuda.bindings.nvvm")

    text = said(Settings(dump=("ptx", "tile")), capsys, monkeypatch, target="sm_90a")

    ptx, tile = text.index("# copy for sm_90a: ptx\n"), text.index("# copy for sm_90a: tile\n")
    assert ptx < text.index(".visible .entry copy(") < tile < text.index("kernel copy(")


def test_levels_that_the_interpreter_has_not_are_left_out(capsys, monkeypatch):
    text = said(Settings(dump=LEVELS), capsys, monkeypatch)

    assert text.count("# copy for") == 1
    assert "kernel copy(" in text


@pytest.mark.parametrize("text, levels", [
    ("", ()), ("0", ()), ("1", LEVELS), ("all", LEVELS), ("ptx", ("ptx",)),
    ("PTX, tile", ("ptx", "tile"))])
def test_levels_are_named_by_the_environment(text, levels):
    assert read_settings({"BLOCKNUMBA_DUMP": text}).dump == levels


@pytest.mark.parametrize("text, size", [
    ("", 1 << 30), ("100", 100), ("2k", 2048), ("500M", 500 << 20), ("2G", 2 << 30)])
def test_the_size_of_the_cache_is_in_bytes_or_larger_units(text, size):
    assert read_settings({"BLOCKNUMBA_CACHE_SIZE": text}).cache_bytes == size


@pytest.mark.parametrize("name, text, message", [
    ("BLOCKNUMBA_DUMP", "ptx,llvm", "given .llvm., accepted all, tile, gpu, nvvm, ptx, sass"),
    ("BLOCKNUMBA_CACHE_SIZE", "much", "given 'much', accepted a number, as 1000, 500M or 2G"),
    ("BLOCKNUMBA_CACHE", "maybe", "given 'maybe', accepted 0 or 1"),
    ("BLOCKNUMBA_TIME", "2", "given '2', accepted 0 or 1")])
def test_a_setting_that_is_not_understood_is_an_error(name, text, message):
    with pytest.raises(BlockValueError, match=f"{name}: {message}"):
        read_settings({name: text})


def test_numbas_names_of_inspection_give_the_texts_of_all_code():
    pytest.importorskip("cuda.bindings.nvvm")
    kernel = bn.jit(copy.python_function)
    for target in ("sm_80", "sm_90a"):
        bn.compile(kernel, ("f32[::1]:16",) * 2, {"B": 128}, target=target)
    kernel[1](np.zeros(4), np.zeros(4), B=4, interpret=True)

    assert len(kernel.inspect_tile()) == 3
    assert {str(key.target) for key in kernel.inspect_llvm()} == {"sm_80", "sm_90a"}
    assert all("define void @copy(" in text for text in kernel.inspect_llvm().values())
    assert all(".entry copy(" in text for text in kernel.inspect_asm().values())
