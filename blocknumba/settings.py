"""The environment variables that change what blocknumba does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from blocknumba.errors import BlockValueError, require

_YES = frozenset(("1", "true", "yes", "on"))
_NO = frozenset(("", "0", "false", "no", "off"))


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment asked for when blocknumba was imported.

    interpret: BLOCKNUMBA_INTERPRET=1 runs every kernel on the CPU, even where there is a GPU.
    """

    interpret: bool = False


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings that an environment asks for.

    Errors: BlockValueError for a variable that is neither a yes nor a no.
    """
    return Settings(interpret=_flag(environment, "BLOCKNUMBA_INTERPRET"))


def _flag(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name, "").strip().lower()
    require(text in _YES | _NO, "{}: given {!r}, accepted 0 or 1", name, text,
            error=BlockValueError)
    return text in _YES


SETTINGS = read_settings(os.environ)
