"""Mistakes in kernels of Triton's dialect, each with the whole message that it gets.

wrong_kernels.txt has them: a title, the lines of a kernel of (x, n, N), after ">>>" the class by
which code that was written for Triton catches the error, below "|" the message.  Triton 3.6
refuses each of them too.  `pytest --bless` writes the messages; read them as the user.
"""

import linecache
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import blocknumba.triton as triton
import blocknumba.triton.compiler.errors as classes
import blocknumba.triton.language as tl

FILE = Path(__file__).with_name("wrong_kernels.txt")
MIN_KERNELS = 50


@triton.jit
def three(a, b, c):
    return a + b


def read() -> dict[str, tuple[str, str, str]]:
    """Title -> lines of the kernel, class, message."""
    found = {}
    for part in ("\n" + FILE.read_text()).split("\n# ")[1:]:
        title, _, rest = part.partition("\n")
        lines, _, rest = rest.partition("\n>>> ")
        kind, _, message = rest.strip().partition("\n")
        found[title] = lines, kind, re.sub(r"^\| ?", "", message, flags=re.MULTILINE)
    return found


KERNELS = read()


def raised(title: str, lines: str) -> classes.CompilationError:
    """What the compilation of a kernel raises."""
    file = f"<{title}>"
    text = "@triton.jit\ndef kernel(x, n, N):\n" + textwrap.indent(lines, "    ") + "\n"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"triton": triton, "tl": tl, "three": three}
    exec(compile(text, file, "exec"), names)
    with pytest.raises(classes.CompilationError) as caught:
        names["kernel"].warmup(np.zeros(64, np.float32), 3, 16, grid=(1,))
    return caught.value


@pytest.mark.parametrize("title", KERNELS)
def test_a_wrong_kernel_has_one_whole_message_of_triton_s_class(title, request):
    lines, kind, message = KERNELS[title]

    error = raised(title, lines)

    if request.config.getoption("--bless"):
        KERNELS[title] = lines, kind, message = lines, kind, str(error)
        FILE.write_text("\n\n".join(
            "\n".join([f"# {name}", text, f">>> {of}",
                       *(f"| {line}" for line in said.splitlines())])
            for name, (text, of, said) in KERNELS.items()) + "\n")
    assert str(error) == message
    assert isinstance(error, getattr(classes, kind))
    # where it is in the user's text, and in the words of the language that it is written in
    assert 3 <= error.loc.line <= 2 + len(lines.splitlines()) or error.loc.caller is not None
    assert "bn." not in message


def test_there_are_many():
    assert len(KERNELS) >= MIN_KERNELS
