"""`python -m blocknumba cache`: the compiled kernels, and the results of tuning, on disk."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime

from blocknumba.dispatch.compile.cache import Cache, distrust
from blocknumba.dispatch.tune import store
from blocknumba.errors import BlockValueError, require
from blocknumba.settings import SETTINGS

_MIB = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of run."""
    parser.add_argument("action", choices=("info", "clear"),
                        help="info: where it is and what it holds; clear: remove all kernels and "
                        "results of tuning")


def run(arguments: argparse.Namespace) -> int:
    """Show or clear; the exit status.  Errors: BlockValueError when there is no folder."""
    require(SETTINGS.cache_folder is not None, "cache: there is no home directory to keep it in",
            error=BlockValueError, hint="set BLOCKNUMBA_CACHE_DIR")
    cache = Cache(SETTINGS.cache_folder, SETTINGS.cache_bytes)
    if arguments.action == "clear":
        sys.stdout.write(f"removed {cache.clear()} kernels and the tuning of "
                         f"{store.clear(cache.folder)} from {cache.folder}\n")
        return 0
    sys.stdout.write(cache_info(cache, SETTINGS.cache))
    return 0


def cache_info(cache: Cache, is_on: bool) -> str:
    """Folder, size and age of a cache, as text."""
    files = cache.files()
    total = sum(file.size_bytes for file in files)
    reason = distrust(cache.folder)
    off = " (off: BLOCKNUMBA_CACHE=0)" if not is_on else f" (not used: {reason})" if reason else ""
    lines = [f"folder   {cache.folder}{off}",
             f"kernels  {len(files)}",
             f"tuned    {len(store.stored_files(cache.folder))}",
             f"size     {total / _MIB:.1f} of {cache.limit_bytes / _MIB:.0f} MiB"]
    if files:
        used = datetime.fromtimestamp(files[0].used).isoformat(" ", "minutes")
        lines.append(f"oldest   used {used}")
    return "\n".join(lines) + "\n"
