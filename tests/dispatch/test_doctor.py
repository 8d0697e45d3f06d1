"""`python -m blocknumba doctor` and `cache`."""

from pathlib import Path

import pytest

from blocknumba.__main__ import main
from blocknumba.dispatch.cli import cache_command, doctor
from blocknumba.dispatch.compile.cache import Cache
from blocknumba.installation import pip_install
from blocknumba.nvvm_lower import toolchain
from blocknumba.settings import Settings, read_settings


def finding(settings: Settings, what: str) -> doctor.Finding:
    return next(found for found in doctor.examine(settings) if found.what == what)


def test_the_doctor_names_versions_and_ends_well(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "SETTINGS", Settings(cache=False))
    status = main(["doctor"])

    printed = capsys.readouterr().out
    assert {"python", "blocknumba", "numba", "numpy", "GPU", "cache"} <= {
        line.split()[0] for line in printed.splitlines() if line.strip()}
    assert (status == 0) is ("Everything works." in printed)


def test_a_report_is_a_table_that_tells_settings_and_no_home_folder(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "SETTINGS", Settings(cache=False))
    monkeypatch.setenv("BLOCKNUMBA_CACHE", "0")
    monkeypatch.setenv("NUMBA_OPT", f"{Path.home()}/a|b")

    status = main(["doctor", "--report"])

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[1] == "|---|---|" and all(line[:2] + line[-2:] == "|  |" for line in lines[2:])
    assert {"| BLOCKNUMBA_CACHE | 0 |", "| NUMBA_OPT | ~/a\\|b |"} <= set(lines)
    assert str(Path.home()) not in "\n".join(lines)


def test_a_missing_package_is_said_with_what_it_costs_and_the_fix(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "SETTINGS", Settings(cache=False))
    monkeypatch.setattr(doctor, "version", lambda name: "" if name == "numba-cuda" else "1.0")

    status = main(["doctor"])

    assert status == 1
    assert ("Kernels run on the CPU only.\n  because: numba-cuda: not installed\n"
            f"  fix: {pip_install('numba-cuda', 'cu13')}") in capsys.readouterr().out


@pytest.mark.parametrize("driver, lost", [((13, 0), False), ((14, 1), False), ((12, 8), True)])
def test_a_driver_older_than_the_compiler_is_said(driver, lost, monkeypatch):
    monkeypatch.setattr(toolchain, "linker_version", lambda: (13, 5))

    found = doctor.driver_finding(driver)

    assert bool(found.lost) is lost
    assert found.said.startswith("CUDA {}.{}".format(*driver))


def test_a_cache_that_cannot_be_written_is_said(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")

    found = finding(Settings(cache_folder=blocked), "cache")

    assert found.lost == "Every process compiles every kernel."
    assert "BLOCKNUMBA_CACHE_DIR" in found.fix


def test_a_machine_without_a_home_directory_is_said():
    assert finding(Settings(cache_folder=None), "cache").said == "no home directory"


def test_looking_at_the_cache_leaves_nothing_in_it(tmp_path):
    assert finding(Settings(cache_folder=tmp_path / "cache"), "cache").lost == ""
    assert list((tmp_path / "cache").iterdir()) == []


def test_info_and_clear(tmp_path, monkeypatch, capsys):
    cache = Cache(tmp_path, 1 << 20)
    for key in "ab":
        cache.save(key, bytes(1 << 18))
    monkeypatch.setattr(cache_command, "SETTINGS",
                        Settings(cache_folder=tmp_path, cache_bytes=1 << 20))

    statuses = [main(["cache", action]) for action in ("info", "clear", "info")]

    printed = capsys.readouterr().out
    assert statuses == [0, 0, 0]
    assert f"folder   {tmp_path}\nkernels  2\ntuned    0\nsize     0.5 of 1 MiB\noldest   used " in printed
    assert f"removed 2 kernels and the tuning of 0 from {tmp_path}" in printed
    assert printed.endswith("kernels  0\ntuned    0\nsize     0.0 of 1 MiB\n")


def test_without_a_place_the_cache_commands_say_what_to_set(monkeypatch, capsys):
    monkeypatch.setattr(cache_command, "SETTINGS", Settings(cache_folder=None))

    assert main(["cache", "info"]) == 1
    assert "hint: set BLOCKNUMBA_CACHE_DIR" in capsys.readouterr().err


def test_the_folder_is_the_systems_for_caches_unless_one_is_named(tmp_path):
    assert read_settings({"BLOCKNUMBA_CACHE_DIR": str(tmp_path)}).cache_folder == tmp_path
    assert isinstance(read_settings({"HOME": str(tmp_path)}).cache_folder, Path)
    assert read_settings({}).cache_folder is None
