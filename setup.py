"""Builds without what earlier builds left, with the examples; everything else is in setup.cfg."""

import configparser
import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
EXAMPLES = ("*.py", "tutorial/*.py", "gallery/*.py")
# code, which is left alone, or a link to a file; with an exclamation mark before it, a picture
_PARTS = re.compile(r"^```.*?^```$|`[^`\n]*`(?!\])|(?P<mark>!?)\[(?P<text>[^\]]*)\]"
                    r"\((?!\w+:|#)(?P<path>[^)]+)\)", re.MULTILINE | re.DOTALL)


class BuildAnew(build_py):
    """Copy the package into an empty folder, and the programs of examples/ into it.

    `pip install .` leaves build/lib behind, and setuptools packs everything that lies there: also
    modules that have been removed since.
    """

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib, "blocknumba"), ignore_errors=True)
        super().run()
        if not self.editable_mode:
            self._copy_examples(Path(self.build_lib, "blocknumba", "examples"))

    def _copy_examples(self, target: Path) -> None:
        for pattern in EXAMPLES:
            for file in sorted((ROOT / "examples").glob(pattern)):
                copy = target / file.relative_to(ROOT / "examples")
                self.mkpath(str(copy.parent))
                self.copy_file(str(file), str(copy), preserve_mode=False)


def readme() -> str:
    """The README for a package index, where links to files lead to the repository."""
    configuration = configparser.ConfigParser()
    configuration.read(ROOT / "setup.cfg", encoding="utf-8")
    repository = configuration["metadata"]["url"]

    def absolute(found: re.Match) -> str:
        mark, text, path = found["mark"], found["text"], found["path"]
        if path is None:
            return found[0]
        return f"{mark}[{text}]({repository}/{'raw' if mark else 'blob'}/HEAD/{path})"

    return _PARTS.sub(absolute, (ROOT / "README.md").read_text(encoding="utf-8"))


setup(cmdclass={"build_py": BuildAnew}, long_description=readme())
