"""Words of messages: short names of objects, articles, and suggestions for misspelt names."""

from __future__ import annotations

import difflib
import string
import sys
import types
from collections.abc import Iterable

import numpy as np

MAX_TEXT = 60  # characters of a string, or of the repr of a number
MAX_ITEMS = 8  # of a tuple or list
_MAX_BITS = 128  # of an int that is shown with all its digits
MAX_NESTING = 3  # of tuples and lists
_CLOSE = 0.65  # the ratio of difflib from which two names look alike
_MAX_SUGGESTIONS = 2


def file_name(path: str) -> str:
    """The name of a file of source: of a cell as IPython shows it, Cell In[3]; else its last part.

    Source: IPython, CachingCompiler.format_code_name.
    """
    # asked only where it is there already: who has no cells needs no IPython
    ipython = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    cell = shell and shell.compile.format_code_name(path)
    if cell:
        return " ".join(cell)
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def shown(value: object, nesting: int = 0) -> str:
    """The short name of an object in a message.

    Numbers and strings are shown, up to MAX_TEXT characters; of tuples and lists the first items;
    of any other object its class only, for its repr may be long, fail, or tell secrets.
    """
    if value is None or value is Ellipsis or type(value) is bool:
        return repr(value)
    if isinstance(value, int):
        size = f"2**{value.bit_length() - 1} or more"
        return f"{'-' * (value < 0)}{size}" if is_huge(value) else repr(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (bytes, float, complex, np.generic, np.dtype, range, slice)):
        return shortened(repr(value))
    if type(value) in (tuple, list):
        return _items_shown(value, nesting)
    if isinstance(value, types.ModuleType):
        return f"the module {value.__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = _function_name(value)
    return f"the {_kind(value)} {name}" if name else instance_shown(value)


def instance_shown(value: object) -> str:
    """An object by its class: "a dict", "an object of class Config"; ours say what they are."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "blocknumba":
        return shortened(str(value))
    if kind.__module__ == "builtins":
        return with_article(kind.__name__)
    if issubclass(kind, np.ndarray):
        return f"an array of shape {value.shape}"
    return f"an object of class {kind.__name__}"


def quoted(text: str) -> str:
    """A text that a user gave, as a message shows it: long texts are cut off."""
    return repr(text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}...")


def shortened(text: str, maximum: int = MAX_TEXT) -> str:
    """A text of one line, cut where it has more characters than that."""
    text = " ".join(text.splitlines())
    return text if len(text) <= maximum else f"{text[:maximum - 3]}..."


def with_article(noun: str) -> str:
    """A noun after "a" or "an"."""
    return f"an {noun}" if noun[:1].lower() in "aeio" else f"a {noun}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at the known names that look like a misspelt one; empty when none does.

    Case and underscores count little: BLOCKSIZE looks like block_size.
    """
    spellings: dict[str, list[str]] = {}
    for each in known:
        spellings.setdefault(_plain(each), []).append(each)
    plain = _plain(name)
    alike = [each for each in spellings if abs(len(each) - len(plain)) <= max(1, len(plain) // 3)]
    close = difflib.get_close_matches(plain, alike, _MAX_SUGGESTIONS, _CLOSE)
    names = [each for spelling in close for each in spellings[spelling] if each != name]
    return f"did you mean {' or '.join(names[:_MAX_SUGGESTIONS])}?" if names else ""


class _Message(string.Formatter):
    """str.format, but {!r} shows the short name of what is given."""

    def convert_field(self, value, conversion):
        """The value of a field as it is formatted."""
        if conversion == "r" or isinstance(value, int) and is_huge(value):
            return shown(value)
        return super().convert_field(value, conversion)


def formatted(message: str, given: tuple) -> str:
    """message.format(*given), where {!r} is bounded; see shown."""
    return _Message().vformat(message, given, {})


def _function_name(value: object) -> str:
    """The name of something that can be called; empty when it has none."""
    try:
        name = value.__name__ if callable(value) and not isinstance(
            value, (staticmethod, classmethod)) else ""
    except Exception:  # a user's class may raise anything from its __getattr__
        return ""
    return name if isinstance(name, str) else ""


def _kind(function: object) -> str:
    if isinstance(function, types.MethodType):
        return "method"
    if isinstance(function, types.BuiltinFunctionType):
        return "built-in function"
    is_kernel = type(function).__module__.startswith("blocknumba.dispatch")
    return "kernel" if is_kernel else "function"


def _plain(name: str) -> str:
    return name.replace("_", "").lower() or name


def is_huge(value: int) -> bool:
    """Whether an int is longer than messages show; Python refuses to print the longest."""
    return value.bit_length() > _MAX_BITS


def _items_shown(items: tuple | list, nesting: int) -> str:
    if nesting == MAX_NESTING:
        return with_article(type(items).__name__)
    texts = [shown(item, nesting + 1) for item in items[:MAX_ITEMS]]
    texts += ["..."] * (len(items) > MAX_ITEMS)
    if isinstance(items, list):
        return f"[{', '.join(texts)}]"
    return f"({texts[0]},)" if len(items) == 1 else f"({', '.join(texts)})"
