"""A progress bar while a kernel is tuned, on terminals only."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


@contextmanager
def progress(items: Sequence[Item], title: str) -> Iterator[Iterable[Item]]:
    """The items, counted by a bar on standard error when that is a terminal and rich is there."""
    if not sys.stderr.isatty():
        yield items
        return
    try:
        from rich.console import Console  # here: it is optional, and slow to import
        from rich.progress import Progress  # here: as above
    except ImportError:
        yield items
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        yield bar.track(items, description=title)
