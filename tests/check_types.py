"""Run mypy, pyright and Jedi on programs that use blocknumba, from outside of its folder.

The README's program, those of docs/types.md, the steps of the tutorial and tests/uses_of_types.py
are clean by default; docs/types.md under `mypy --strict` too.  In its environment blocknumba is
installed, not linked: .ci/more does that.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import jedi

ROOT = Path(__file__).resolve().parent.parent
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def programs(folder: Path) -> list[str]:
    """Names of the programs, written to a folder."""
    for page in ("README.md", "docs/types.md"):
        text = "\n".join(_PYTHON.findall((ROOT / page).read_text()))
        (folder / Path(page).with_suffix(".py").name.lower()).write_text(text)
    for path in (*(ROOT / "examples" / "tutorial").glob("*.py"), ROOT / "tests/uses_of_types.py"):
        shutil.copy(path, folder)
    (folder / "types.py").rename(folder / "annotated.py")  # not in place of Python's own types
    return sorted(path.name for path in folder.glob("*.py"))


def check_editor() -> None:
    """What Jedi completes, and the parameters that it shows."""
    completed = {found.name for found in jedi.Script("import blocknumba as bn\nbn.").complete()}
    missing = {"constexpr", "float32", "jit", "load", "testing"} - completed
    assert not missing, f"not completed: {missing}"
    for call, wanted in (("bn.load(", ["pointer", "mask", "other"]), ("bn.jit(", ["function"])):
        signatures = jedi.Script(f"import blocknumba as bn\n{call}").get_signatures()
        assert any([p.name for p in signature.params[:len(wanted)]] == wanted
                   for signature in signatures), f"{call}: {signatures}"


def main() -> None:
    with TemporaryDirectory() as folder:
        names = programs(Path(folder))
        for tool, *rest in (("mypy", "--warn-unused-ignores", *names),
                            ("mypy", "--strict", "annotated.py"),
                            ("pyright", "--pythonpath", sys.executable, *names)):
            print("+", tool, *rest, flush=True)
            subprocess.run([sys.executable, "-m", tool, *rest], cwd=folder, check=True)
    check_editor()


if __name__ == "__main__":
    main()
