"""The oldest releases that setup.cfg accepts, as constraints of pip: `.ci/more bounds` tests them.

    python tests/lower_bounds.py EXTRA ... > constraints.txt
"""

import configparser
import re
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_BOUNDED = re.compile(r"(?P<name>[\w-]+)(\[[\w,]+\])?>=(?P<lowest>[\d.]+)")


def constraints(extras: Iterable[str]) -> list[str]:
    """`name==lowest` for each requirement of the base install and of extras."""
    configuration = configparser.ConfigParser()
    configuration.read(ROOT / "setup.cfg")
    lines = configuration["options"]["install_requires"].split()
    for extra in extras:
        lines += configuration["options.extras_require"][extra].split()
    found = [_BOUNDED.match(line) for line in lines]
    return [f"{each['name']}=={each['lowest']}" for each in found]


if __name__ == "__main__":
    print(*constraints(sys.argv[1:]), sep="\n")
