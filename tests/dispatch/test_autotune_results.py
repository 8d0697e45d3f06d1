"""What tuning leaves behind: files that later processes read, tables, plots."""

import csv
import io
import json
import sys

import numpy as np
import pytest

import blocknumba as bn

from blocknumba.dispatch.compile.cache import Cache
from blocknumba.dispatch.tune import autotune as autotune_module
from blocknumba.dispatch.tune.store import Row, Store, Timing, Timings
from blocknumba.dispatch.tune.trial import progress

STEP = 1


def grid(meta):
    return bn.cdiv(300, meta["B"])


def advance(x, B: bn.constexpr):
    r = bn.block(0, B)
    x[r] += STEP


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where results are kept."""
    monkeypatch.setattr(autotune_module, "user_cache", lambda: Cache(tmp_path, 1 << 20))
    return tmp_path


def tune(sizes, times, **options) -> tuple:
    """Tune like a new process; the kernel and the sizes that were measured."""
    measured, times = [], dict(zip(sizes, times))

    def bench(fn, quantiles):
        fn()
        return [times[measured[-1]]] * 3

    configs = [bn.Config({"B": size}, pre_hook=None) for size in sizes]
    kernel = bn.autotune(configs, key=["x.shape"], do_bench=bench, **options,
                         pre_hook=lambda nargs, reset_only=False: (
                             None if reset_only else measured.append(nargs["B"])))(
        bn.jit(advance, interpret=True))
    kernel[grid](np.zeros(300, np.float32))
    return kernel, measured


def test_results_are_kept_for_later_processes():
    tune((8, 16), (2.0, 1.0))

    kernel, measured = tune((8, 16), (1.0, 2.0))

    assert measured == []
    assert str(kernel.best_config) == "B=16"
    assert kernel.timings[0].timing.median_ms == 1.0


def test_new_configurations_do_not_retune_old_ones():
    tune((8, 16), (2.0, 1.0))

    kernel, measured = tune((8, 16, 32), (9.0, 9.0, 0.5))

    assert measured == [32]
    assert str(kernel.best_config) == "B=32"


def test_a_changed_global_is_tuned_again(monkeypatch):
    tune((8, 16), (2.0, 1.0))
    monkeypatch.setitem(globals(), "STEP", 2)

    _, measured = tune((8, 16), (2.0, 1.0))

    assert measured == [8, 16]


def test_results_need_not_be_kept(folder):
    tune((8, 16), (2.0, 1.0), cache_results=False)

    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("damage", [
    lambda text: text[:len(text) // 2], lambda text: "", lambda text: "[]",
    lambda text: text.replace('"format": 1', '"format": 2'),
    lambda text: text.replace('"median_ms": ', '"median_ms": "x", "other": '),
    lambda text: text.replace('"devices": {', '"devices": 7, "other": {')])
def test_a_damaged_file_is_as_good_as_none(folder, damage):
    tune((8, 16), (2.0, 1.0))
    (file,) = folder.rglob("*.json")
    file.write_text(damage(file.read_text()))

    _, measured = tune((8, 16), (2.0, 1.0))

    assert measured == [8, 16]
    assert tune((8, 16), (2.0, 1.0))[1] == []


def test_a_folder_that_cannot_be_written_does_no_harm(folder):
    (folder / "autotune").write_text("a file where the folder should be")

    kernel, _ = tune((8, 16), (2.0, 1.0))

    assert str(kernel.best_config) == "B=16"


def test_a_failure_to_compile_is_kept_too(folder):
    def strict(x, B: bn.constexpr):
        bn.static_assert(B > 8, "too small")

    def make():
        return bn.autotune([bn.Config({"B": size}) for size in (8, 16)],
                           do_bench=lambda fn, quantiles: 1.0)(bn.jit(strict, interpret=True))

    first, second = make(), make()
    first[1](np.zeros(8, np.float32))

    second[1](np.zeros(8, np.float32))

    assert [row.timing.reason for row in second.timings] == [
        "", "BlockAssertionError: static_assert: too small"]
    assert len(second.base._compiled) == 1


def test_a_file_holds_devices_keys_and_configurations(folder):
    tune((8, 16), (2.0, 1.0))

    (file,) = folder.rglob("*.json")

    entries = json.loads(file.read_text())["devices"]["CPU, interpreted"]
    (entry,) = entries.values()
    assert list(entries) == ["x: float32[::1]:16, x.shape=(300)"]
    assert {label: found["median_ms"] for label, found in entry.items()} == {
        "B=8": 2.0, "B=16": 1.0}


def test_files_of_kernels_of_one_name_are_apart(folder):
    def other():
        def advance(x):
            """Another function of that name."""
        return advance

    assert Store(folder, advance).path != Store(folder, other()).path


TIMINGS = Timings([Row("n=1", "B=8", Timing(1.0, 0.5, 2.0)),
                   Row("n=1", "B=16", Timing.failed("ResourceError: too large")),
                   Row("n=2", "B=8", Timing(3.0, 3.0, 3.0))])


def test_timings_are_shown_as_tables():
    assert str(TIMINGS) == """\
n=1
configuration  median_ms  p20_ms  p80_ms  failed
B=8            1.0000     0.5000  2.0000
B=16                                      ResourceError: too large

n=2
configuration  median_ms  p20_ms  p80_ms  failed
B=8            3.0000     3.0000  3.0000"""


def test_timings_are_written_as_csv(tmp_path):
    TIMINGS.to_csv(tmp_path / "timings.csv")

    with open(tmp_path / "timings.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["key"], row["configuration"], row["median_ms"]) for row in rows] == [
        ("n=1", "B=8", "1.0"), ("n=1", "B=16", ""), ("n=2", "B=8", "3.0")]
    assert rows[1]["failed"] == "ResourceError: too large"


def test_timings_are_plotted_with_a_line_for_each_key(tmp_path):
    pytest.importorskip("matplotlib")

    figure = TIMINGS.plot(tmp_path / "timings.png")

    (axes,) = figure.axes
    assert [line.get_label() for line in axes.get_lines()] == ["n=1", "n=2"]
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), [1.0, np.nan])
    assert (tmp_path / "timings.png").read_bytes().startswith(b"\x89PNG")


class Terminal(io.StringIO):
    """Standard error that people look at."""

    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys, "stderr", Terminal())

    with progress([1, 2, 3], "tuning advance") as items:
        assert list(items) == [1, 2, 3]

    assert "tuning advance" in sys.stderr.getvalue()


def test_progress_is_not_shown_without_tqdm(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)

    with progress([1, 2, 3], "tuning advance") as items:
        assert list(items) == [1, 2, 3]

    assert sys.stderr.getvalue() == ""


def test_progress_is_not_shown_elsewhere(capsys):
    tune((8, 16), (2.0, 1.0))

    assert capsys.readouterr() == ("", "")
