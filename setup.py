"""Builds without what earlier builds left; everything else is in setup.cfg."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildAnew(build_py):
    """Copy the package into an empty folder.

    `pip install .` leaves build/lib behind, and setuptools packs everything that lies there: also
    modules that have been removed since.
    """

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib, "blocknumba"), ignore_errors=True)
        super().run()


setup(cmdclass={"build_py": BuildAnew})
