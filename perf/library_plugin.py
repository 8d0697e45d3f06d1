"""A plugin of pytest with which a library's own tests run on blocknumba instead of Triton.

    PYTHONPATH=perf:FOLDER python -m pytest -p library_plugin --install liger_kernel --draw 24 FILE

--install: packages whose imports of triton get blocknumba.triton.
--draw: as many tests of each file, drawn by a seed; all without it.
--configs: tuners try as many of their configurations, the first.
At the end there is a line for each reason of a failure, most frequent first.
"""

from __future__ import annotations

import functools
import random
from collections import Counter, defaultdict

import pytest

import blocknumba.triton
from blocknumba.triton.runtime.autotuner import Autotuner

_REASONS = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    """See pytest."""
    parser.addoption("--install", action="append", default=[])
    parser.addoption("--draw", type=int)
    parser.addoption("--configs", type=int)
    parser.addoption("--draw-seed", type=int, default=0)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install before a conftest of the library imports it."""
    given = early_config.known_args_namespace
    blocknumba.triton.install(*given.install)
    if given.configs is not None:
        _limit_configurations(given.configs)


def _limit_configurations(count: int) -> None:
    made = Autotuner.__init__

    @functools.wraps(made)
    def limited(self: Autotuner, *arguments: object, **keywords: object) -> None:
        made(self, *arguments, **keywords)
        self.configs = self.configs[:count]

    Autotuner.__init__ = limited


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that are drawn."""
    count = config.getoption("--draw")
    if count is None:
        return
    by_file = defaultdict(list)
    for item in items:
        by_file[item.path].append(item)
    kept = set()
    for path, tests in sorted(by_file.items()):
        chosen = random.Random(f"{path.name} {config.getoption('--draw-seed')}")
        kept |= {item.nodeid for item in chosen.sample(tests, min(count, len(tests)))}
    items[:] = [item for item in items if item.nodeid in kept]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the reasons of failures."""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash is not None else str(report.longrepr)
        _REASONS[" ".join(text.split())[:200]] += 1


def pytest_terminal_summary(terminalreporter: object) -> None:
    """Print the reasons."""
    for reason, count in _REASONS.most_common():
        terminalreporter.write_line(f"{count:5}  {reason}")
