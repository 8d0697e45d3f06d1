"""What the cases of Triton's unit tests answered, as a table; the list of what is left out."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

LIST = Path(__file__).parent / "left_out.txt"
# family of a function of test_core -> what its name has, the first that fits
FAMILIES = {
    "products": r"dot|mma",
    "atomics": r"atomic|load_scope",
    "reductions, scans, histograms": r"reduc|scan|hist|cumsum|argmax|chained|max_min_with|max_ret|"
                                     r"sum_dtype|thread_locality|propagate_nan",
    "loads, stores, pointers": r"load|store|strided|indirect|addptr|alias|_ptr|zero_strided|const$",
    "shapes of tiles": r"cat|join|interleav|split|permute|trans|reshape|expand|broadcast|index1d|"
                       r"arange|full|slice|gather|shape|unsplat",
    "casts and dtypes": r"cast|convert|dtype|overflow|mangling",
    "inline assembly, functions of elements": r"inline_asm|map_elementwise|libdevice|num_threads|"
                                              r"globaltimer|smid",
    "operators and math": r"_op\b|bin_op|math|abs|floordiv|clamp|where|umulhi|fdiv|neg|precise|"
                          r"ashr",
    "control flow, calls, constants": "",
}


@cache
def left_out(device: str) -> dict[str, str]:
    """file, file::function or a pattern of file::case -> why it does not count on a device."""
    found = {}
    for line in LIST.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            what, reason = line.split(None, 1)
            where, separator, rest = what.partition(":test_")
            if not separator or what.startswith("test_"):
                found[what] = reason.strip()
            elif where == device:
                found[f"test_{rest}"] = reason.strip()
    return found


def reason_to_leave_out(device: str, file: str, function: str, case: str) -> str | None:
    """Why a case does not count; None where it does."""
    names = (file, f"{file}::{function}", f"{file}::{case}")
    return next((reason for what, reason in left_out(device).items() if what in names
                 or "*" in what and fnmatch(names[2].replace("[", "("), what.replace("[", "("))),
                None)


def running_case(answers: Path) -> Path:
    """The file that names the case which runs, beside that of the answers."""
    return answers.with_suffix(".running")


def records_of(text: str) -> list[dict]:
    """The answers of a run."""
    return [json.loads(line) for line in text.splitlines()]


def share(records: Iterable[dict]) -> str:
    """Passed of those that passed or failed; apart, those whose compiled text alone differs."""
    counted = Counter(record["outcome"] for record in records)
    passed, failed = counted["passed"], counted["failed"]
    percent = f"{100 * passed / (passed + failed):.1f} %" if passed + failed else "-"
    return f"{passed:5} {failed:5} {counted['text']:5} {counted['skipped']:5}  {percent}"


def family(function: str) -> str:
    """The family of a function of test_core."""
    return next(name for name, pattern in FAMILIES.items() if re.search(pattern, function))


def printed(records: list[dict]) -> str:
    """The table: files, cases that expect an error, and each failure with its reason."""
    rows = defaultdict(list)
    for record in records:
        rows[record["file"]].append(record)
    plain = [record for record in records if not record["expects_error"]]
    errors = [record for record in records if record["expects_error"]]
    lines = [f"{'':44} {'pass':>5} {'fail':>5} {'text':>5} {'skip':>5}"]
    for file, found in sorted(rows.items()):
        lines.append(f"{file:44} {share(found)}")
        families = defaultdict(list)
        for record in found if file == "test_core.py" else ():
            families[family(record["function"])].append(record)
        lines += [f"  {name:42} {share(families[name])}" for name in FAMILIES
                  if name in families]
    lines += [f"{'all':44} {share(records)}", f"{'expect an error':44} {share(errors)}",
              f"{'the others':44} {share(plain)}"]
    launches = sum((Counter(record.get("emulated", {})) for record in records), Counter())
    if launches:
        lines.append(f"launches emulated: {dict(launches)}")
        lines += [f"{record['file']}::{record['case']}: {what}" for record in records
                  for what in record.get("differences", ())]
    lines += [f"{record['file']}::{record['case']}  {record.get('error', '')[:160]}"
              for record in records if record["outcome"] == "failed"]
    return "\n".join(lines)


if __name__ == "__main__":
    print(printed(records_of("".join(Path(name).read_text() for name in sys.argv[1:]))))
