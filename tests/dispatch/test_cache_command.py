"""`python -m blocknumba cache`."""

from pathlib import Path

import pytest

from blocknumba.__main__ import main
from blocknumba.dispatch.cli import cache_command
from blocknumba.dispatch.compile.cache import Cache
from blocknumba.dispatch.tune.store import FOLDER, Store, Timing
from blocknumba.settings import Settings


def scale():
    """A kernel that was tuned."""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A cache with two kernels, and the tuning of one."""
    monkeypatch.setattr(cache_command, "SETTINGS", Settings(cache_folder=tmp_path))
    for key in "ab":
        Cache(tmp_path, 1 << 20).save(key, b"content")
    Store(tmp_path, scale).write("H100", "key", {"B=64": Timing(1.0, 1.0, 1.0)}, {"B=64": "code"})
    return tmp_path


def test_clearing_removes_kernels_and_tuning_and_nothing_else(folder, capsys):
    (folder / FOLDER / "a.unfinished").write_text("left by a process that died")
    (folder / FOLDER / "readme.txt").write_text("mine")

    status = main(["cache", "clear"])

    assert status == 0
    assert capsys.readouterr().out == f"removed 2 kernels and the tuning of 1 from {folder}\n"
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["readme.txt"]


def test_info_counts_both(folder, capsys):
    main(["cache", "info"])

    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (lines["kernels"], lines["tuned"]) == ("2", "1")


def test_an_empty_folder_can_be_cleared(folder, capsys):
    main(["cache", "clear"])

    main(["cache", "clear"])

    assert "removed 0 kernels and the tuning of 0" in capsys.readouterr().out
