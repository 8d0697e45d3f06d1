"""Text files that a command line names: what cannot be read or written is one clear error."""

from __future__ import annotations

from pathlib import Path

from blocknumba.errors import BlockValueError


def read_text(path: str | Path, command: str) -> str:
    """The text of a file in UTF-8.

    command: whose argument it is, for messages.
    Errors: BlockValueError when it cannot be read, and when it is not text.
    """
    try:
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise BlockValueError(f"{command}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BlockValueError(f"{command}: cannot read {path}: it is not text in UTF-8") from None


def write_text(path: str | Path, text: str, command: str) -> None:
    """Write a file in UTF-8, in place of what was there.

    command: whose argument it is, for messages.
    Errors: BlockValueError when it cannot be written.
    """
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise BlockValueError(f"{command}: cannot write {path}: {error.strerror}") from None
