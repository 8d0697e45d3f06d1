"""Commands that install missing requirements, from blocknumba's own metadata."""

from __future__ import annotations

import contextlib
import importlib.metadata
import re

CUDA_EXTRAS = ("cu12", "cu13")
_NAME = re.compile(r"[\w-]+")


def pip_install(package: str, extra: str = "") -> str:
    """The command that installs a package in the versions that blocknumba accepts.

    It works anywhere, whether blocknumba was installed from a clone or not.
    extra: the extra of blocknumba that asks for the package; empty when the base install does.
    """
    marker = f'extra == "{extra}"' if extra else ""
    for requirement, condition in _requirements():
        if _NAME.match(requirement)[0] == package and condition == marker:
            return f'pip install "{requirement}"'
    # run from a clone that was never installed, whose metadata nobody made
    return f'pip install "{package}[{extra}]"' if extra in CUDA_EXTRAS else f"pip install {package}"


def _requirements() -> list[tuple[str, str]]:
    """(requirement, marker) of each line of the metadata, the lower bound of versions first."""
    lines: list[str] = []
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        lines = importlib.metadata.requires("blocknumba") or []
    split = [line.partition(";") for line in lines]
    return [(_lower_bound_first(requirement.strip()), marker.strip().replace("'", '"'))
            for requirement, _, marker in split]


def _lower_bound_first(requirement: str) -> str:
    """`name<2,>=1` as people write it: `name>=1,<2`."""
    name = re.match(r"[\w-]+(\[[\w,-]*\])?", requirement)[0]
    bounds = filter(None, requirement.removeprefix(name).strip().split(","))
    return name + ",".join(sorted(bounds, key=lambda bound: bound.strip().startswith("<")))
