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
        # here and not above: it is optional, and takes longer to import than blocknumba
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield items
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        yield bar.track(items, description=title)
