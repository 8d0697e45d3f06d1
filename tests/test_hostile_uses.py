"""Files, commands, variables, cache entries, hooks and signatures as nobody should give them.

Each row says what is done, and the whole message or what happens instead.
"""

import json
import os
import sys
import types
import warnings
import zlib
from functools import cache as cache_results
from pathlib import Path

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.__main__ import main
from blocknumba.dispatch.cli import cache_command, doctor
from blocknumba.dispatch.compile import cache as cache_files, fingerprint, kernel_code
from blocknumba.dispatch.compile.ahead import ACCEPTED
from blocknumba.dispatch.compile.cache import Cache
from blocknumba.dispatch.compile.entry import decode, encode
from blocknumba.dispatch.compile.export import export
from blocknumba.dispatch.tune.store import FOLDER, Store, Timing
from blocknumba.errors import BlockTypeError, BlockValueError
from blocknumba.settings import Environment, Settings

KERNEL = """import blocknumba as bn

@bn.jit
def double(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] * 2
"""
PTX = (".version 7.8\n.target sm_80\n.address_size 64\n"
       ".visible .entry k(.param .u64 p)\n{\nret;\n}\n")
TILE = 'kernel f(\n  %i: int32 = value(i)\n) {\n  print %i {prefix=""}\n  return\n}\n'
MANY = "9" * 5000


def tile(*lines: str) -> str:
    """A kernel of these lines as tile IR."""
    return "kernel f(\n) {\n" + "".join(f"  {line}\n" for line in lines) + "  return\n}\n"


FILES = {
    "good.py": KERNEL, "good.ptx": PTX, "good.tile": TILE, "empty.py": "", "empty.ptx": "",
    "empty.tile": "", "notes.txt": KERNEL, "raises.py": "x = 1\nraise ValueError('no\\nway')\n",
    "exits.py": "import sys\nsys.exit(3)\n", "syntax.py": "x = 1\ndef (\n",
    "types.tile": tile("%0 = arange {start=None, size=64} : tile<64xint32>"),
    "facts.tile": TILE.replace("value(i)", "value(i) {unknown=1}"),
    "stores.tile": tile("%0 = constant {value=1} : int32", "store %0, %0"),
    "mma.tile": tile('%0 = constant {value=0.0} : float32', '%1 = splat %0 : tile<16x16xfloat32>',
                     '%2 = mma %1, %1, %1 {instruction="fma", warps=(1, 1), num_warps=4} : '
                     'tile<16x16xfloat32>'),
    "short.ptx": PTX.partition("{")[0] + ".maxntid 1",
    "registers.ptx": PTX.replace("ret;", ".reg .b32 %r<99999999>; ret;"),
    "variable.ptx": PTX.replace("ret;", f".shared .b8 x[{10**15}]; ret;"),
    "number.ptx": PTX.replace("ret;", f".reg .b32 %r<{MANY}>; ret;"),
    "operands.ptx": PTX.replace("ret;", ".reg .b32 %r<2>; add.u32 %r0; ret;"),
    "binary.ptx": b"\xff\xfe\x00", "binary.tile": b"\xff\xfe\x00", "json.py": KERNEL,
}


@bn.jit
def double(x, out, B: bn.constexpr):
    r = bn.block(0, B)
    out[r] = x[r] * 2


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The working directory, which holds FILES and a folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, content in FILES.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    Path("folder").mkdir()
    return tmp_path


COMPILE = ("--signature", "f32[:], f32[:], 64", "--target", "sm_90a")
TWO = ("f32[64]", "f32[64]", "--constant", "B=64")
ACCEPTED_GRID = "accepted 1 to 3 positive ints, as 4 or 4,2"
MESSAGES = [
    # files
    (("opt", "missing.tile"),
     "BlockValueError: opt: cannot read missing.tile: No such file or directory"),
    (("opt", "folder"), "BlockValueError: opt: cannot read folder: Is a directory"),
    (("opt", "binary.tile"),
     "BlockValueError: opt: cannot read binary.tile: it is not text in UTF-8"),
    (("opt", "empty.tile"),
     "ParseError: parse: given '': the text ends within the kernel\n  empty.tile, line 1"),
    (("opt", "types.tile"),
     "ParseError: opt: f is not well formed: arange at types.tile:3: TypeError: unsupported "
     "operand type(s) for +: 'NoneType' and 'int'"),
    (("opt", "facts.tile"),
     "ParseError: parse: given '%i: int32 = value(i) {unknown=1}': a parameter has no such attributes\n"
     "  facts.tile, line 2\n    %i: int32 = value(i) {unknown=1}\n    " + "^" * 32),
    (("opt", "stores.tile"),
     "ParseError: opt: f is not well formed: store at stores.tile:4: store: given int32, accepted "
     "a pointer or a tile of pointers"),
    (("opt", "mma.tile", "--passes", "layout"),
     "BlockValueError: opt: a pass does not take this function: AttributeError: 'NoneType' object "
     "has no attribute 'groups'\n  hint: each pass takes what those before it make: --help lists "
     "them in order"),
    (("emulate", "short.ptx:k", "1"),
     "PtxSyntaxError: PTX: given 'the end of the text', accepted more\n  PTX line 5: "),
    (("emulate", "registers.ptx:k", "1"),
     "PtxSyntaxError: PTX: given '99999999', accepted 0 to 1048576 registers\n  PTX line 6: "),
    (("emulate", "variable.ptx:k", "1"),
     "PtxSyntaxError: PTX: given '.shared', accepted a variable of at most 1073741824 bytes, "
     "aligned to a power of two\n  PTX line 6: "),
    (("emulate", "number.ptx:k", "1"),
     "PtxSyntaxError: PTX: given the character '9', accepted a token\n  PTX line 6: "),
    (("emulate", "operands.ptx:k", "1"),
     "UnknownInstructionError: add.u32: given 1 operands, which are too few, too many or of other "
     "kinds than it takes\n  PTX line 6: .reg .b32 %r<2>; add.u32 %r0; ret;"),
    (("emulate", "missing.ptx:k"),
     "BlockValueError: emulate: cannot read missing.ptx: No such file or directory"),
    (("emulate", "binary.ptx:k"),
     "BlockValueError: emulate: cannot read binary.ptx: it is not text in UTF-8"),
    (("emulate", "empty.ptx:k"),
     "EmulatorError: launch: given the kernel 'k', accepted a module with kernels"),
    (("emulate", "good.ptx:nope"), "EmulatorError: launch: given the kernel 'nope', accepted k"),
    *[((command, file, *rest), f"BlockValueError: {command}: {message}")
      for command, rest in (("compile", COMPILE), ("emulate", TWO)) for file, message in (
          ("missing.py:double", "there is no file missing.py"),
          ("folder:double", "there is no file folder"),
          ("empty.py:double", "empty.py has no kernel 'double', accepted a @bn.jit function"),
          ("good.py:half", "good.py has no kernel 'half', accepted double"),
          ("good.py:", "given 'good.py:', accepted FILE.py:KERNEL"),
          (":double", "given ':double', accepted FILE.py:KERNEL"),
          ("double", "given 'double', accepted FILE.py:KERNEL"),
          ("raises.py:double",
           "raises.py cannot be imported: ValueError: no way\n  raises.py, line 2\n"
           "    raise ValueError('no\\nway')\n    ^^^^^^^^^^^^^^^^^^^^^^^^^^^"),
          ("exits.py:double",
           "exits.py cannot be imported: SystemExit: 3\n  exits.py, line 2\n    sys.exit(3)\n"
           "    ^^^^^^^^^^^\n  hint: what is only for a script goes under "
           "`if __name__ == \"__main__\":`"),
          ("syntax.py:double",
           "syntax.py cannot be imported: SyntaxError: invalid syntax\n  syntax.py, line 2\n"
           "    def (\n    ^^^^^"))],
    (("layout", "blocked", "--svg", "folder"),
     "BlockValueError: layout: cannot write folder: Is a directory"),
    (("layout", "blocked", "--svg", "missing/a.svg"),
     "BlockValueError: layout: cannot write missing/a.svg: No such file or directory"),
    # names stay in their folder
    *[(("compile", "good.py:double", *COMPILE, "--name", name),
       f"BlockValueError: compile: given the name {name!r}, accepted letters, digits, _, -, + and "
       "., the first a letter, a digit or _\n  hint: the folder is another argument: -o DIR")
      for name in ("../../escaped", "/tmp/escaped", "..", "", "a/b", "a\\b", ".hidden", "a\nb")],
    # layouts
    (("layout", "blocked", "--shape", "\N{SUPERSCRIPT TWO}"),
     "BlockValueError: --shape: given '\N{SUPERSCRIPT TWO}', accepted ints separated by 'x'"),
    (("layout", "blocked", "--shape", MANY),
     f"BlockValueError: --shape: given '{MANY[:60]}...', accepted ints separated by 'x'"),
    (("layout", "blocked", "--shape", "1073741824"),
     "BlockValueError: blocked: given shape 1073741824, vector 1 and 4 warps, accepted powers of "
     "two, all together up to 1048576"),
    (("layout", "register:1/dim0:99999999"),
     "BlockValueError: layout: given 'register:1/dim0:99999999', accepted "
     "'register:1.2;lane:4..64;warp:128.256/dim0:9'"),
    (("layout", "register:3/dim0:1"),
     "BlockValueError: layout: given 'register:3/dim0:1', accepted "
     "'register:1.2;lane:4..64;warp:128.256/dim0:9'"),
    (("layout", "register:1/dim0:1"),
     "BlockValueError: layout: given register:1/dim0:1, accepted a layout of register, lane and "
     "warp, or of offset"),
    (("layout", "offset:1/dim0:2"),
     "BlockValueError: layout: given offset:1/dim0:2, which does not hold every element"),
    # values
    (("compile", "good.py:double", *COMPILE, "--constant", "B"),
     "BlockValueError: compile: given 'B', accepted NAME=VALUE"),
    (("compile", "good.py:double", *COMPILE, "--constant", "B={[]: 1}"),
     "BlockValueError: compile: given 'B={[]: 1}', accepted a literal of Python as the value"),
    (("compile", "good.py:double", *COMPILE, "--constant", "B=" + "-" * 20000 + "1"),
     f"BlockValueError: compile: given 'B={'-' * 58}...', accepted a literal of Python as the "
     "value"),
    (("compile", "good.py:double", *COMPILE, "--option", "num_warps=" + MANY),
     f"BlockValueError: compile: given 'num_warps={MANY[:50]}...', accepted a literal of Python "
     "as the value"),
    (("compile", "good.py:double", *COMPILE, "--constant", "B=32"),
     "BlockTypeError: double: given the constant B twice"),
    (("emulate", "good.py:double", *TWO, "--constant", "B=32"),
     "BlockValueError: emulate: given B twice"),
    (("emulate", "good.ptx:k", "f32[99999999999999]"),
     "EmulatorError: emulate: given the array 'f32[99999999999999]', accepted at most 268435456 "
     "elements and 64 axes"),
    (("emulate", "good.ptx:k", f"f32[{'1,' * 64}1]"),
     f"EmulatorError: emulate: given the array 'f32[{'1,' * 28}...', accepted at most 268435456 "
     "elements and 64 axes"),
    (("emulate", "good.ptx:k", f"f32[{MANY}]"),
     f"EmulatorError: emulate: given the parameter 'f32[{MANY[:56]}...', accepted a number, or an "
     "array such as f32[1024]"),
    (("emulate", "good.ptx:k", MANY),
     f"EmulatorError: emulate: given the parameter '{MANY[:60]}...', accepted a number, or an "
     "array such as f32[1024]"),
    (("emulate", "good.ptx:k", "99999999999999999999"),
     "EmulatorError: launch: given 99999999999999999999 for p, accepted 64 bits"),
    (("emulate", "good.ptx:k", "1", "2"),
     "EmulatorError: launch: k given 2 parameters, accepted 1"),
    (("emulate", "good.ptx:k", "1", "--block", "2000"),
     "EmulatorError: launch: given a block of 2000 threads, accepted 1 to 1024"),
]


@pytest.mark.parametrize("arguments, message", MESSAGES,
                         ids=[" ".join(arguments)[:60] for arguments, _ in MESSAGES])
def test_a_command_says_one_thing_and_fails(arguments, message, folder, capsys):
    before = sorted(folder.rglob("*"))

    status = main(arguments)

    printed = capsys.readouterr()
    assert (status, printed.err, printed.out) == (1, f"{message}\n", "")
    assert sorted(path for path in folder.rglob("*") if "__pycache__" not in str(path)) == before


REFUSED = [
    (("emulate", "good.ptx:k", "1", "--grid=-1"), f"--grid: given '-1', {ACCEPTED_GRID}"),
    (("emulate", "good.ptx:k", "1", "--grid", "0"), f"--grid: given '0', {ACCEPTED_GRID}"),
    (("emulate", "good.py:double", *TWO, "--grid", "1,2,3,4"),
     f"--grid: given '1,2,3,4', {ACCEPTED_GRID}"),
    (("emulate", "good.ptx:k", "1", "--grid", ","), f"--grid: given ',', {ACCEPTED_GRID}"),
    (("emulate", "good.ptx:k", "1", "--block", MANY),
     f"--block: given '{MANY[:60]}...', {ACCEPTED_GRID}"),
    (("emulate", "good.ptx:k", "1", "--cluster", "x"), f"--cluster: given 'x', {ACCEPTED_GRID}"),
    (("emulate", "good.ptx:k", "1", "--shared", "-1"),
     "--shared: given '-1', accepted an int from 0 on"),
    (("emulate", "good.ptx:k", "1", "--order", "-1"),
     "--order: given '-1', accepted an int from 0 on"),
    (("layout", "blocked", "--limit", "0"), "--limit: given '0', accepted a positive int"),
    (("layout", "blocked", "--warps", MANY),
     f"--warps: given '{MANY[:60]}...', accepted a positive int"),
    (("opt", "good.tile", "--num-warps", "3"), "--num-warps: invalid choice: 3"),
    (("cache", "burn"), "action: invalid choice: 'burn'"),
    (("demo", "more"), "unrecognized arguments: more"),
    (("doctor", "more"), "unrecognized arguments: more"),
    (("nonsense",), "COMMAND: invalid choice: 'nonsense'"),
    ((), "the following arguments are required: COMMAND"),
]


@pytest.mark.parametrize("arguments, message", REFUSED,
                         ids=[" ".join(arguments)[:60] for arguments, _ in REFUSED])
def test_the_command_line_refuses(arguments, message, folder, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)

    assert end.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_kernels_file_replaces_no_module_of_its_name(folder):
    pytest.importorskip("cuda.bindings.nvvm")
    assert main(["compile", "json.py:double", *COMPILE]) == 0
    assert sys.modules["json"] is json


class Refusing:
    """Standard output that raises."""

    def __init__(self, error: BaseException):
        self.error = error

    def write(self, _: str) -> None:
        raise self.error

    def flush(self) -> None:
        """Nothing is kept."""


@pytest.mark.parametrize("error, status, said", [
    (BrokenPipeError(32, "Broken pipe"), 141, ""),
    (OSError(28, "No space left on device"), 1, "standard output: No space left on device\n"),
    (KeyboardInterrupt(), 130, ""),
    (MemoryError(), 1, "there is not enough memory\n")], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("arguments", [("demo",), ("opt", "good.tile"), ("layout", "blocked"),
                                       ("emulate", "good.ptx:k", "1"), ("cache", "info"),
                                       ("doctor",)], ids=lambda arguments: arguments[0])
def test_output_that_ends_early_is_no_traceback(arguments, error, status, said, folder, capsys,
                                                monkeypatch):
    monkeypatch.setattr(sys, "stdout", Refusing(error))

    assert main(arguments) == status

    assert capsys.readouterr().err == said


# Variables

SIZE, DUMP = "BLOCKNUMBA_CACHE_SIZE", "BLOCKNUMBA_DUMP"
VARIABLES = [
    ("cache_bytes", SIZE, MANY, f"'{MANY[:60]}...', accepted a number, as 1000, 500M or 2G"),
    ("cache_bytes", SIZE, "-1", "'-1', accepted a number, as 1000, 500M or 2G"),
    ("cache_bytes", SIZE, "nan", "'nan', accepted a number, as 1000, 500M or 2G"),
    ("cache_bytes", SIZE, "1e400", "'1e400', accepted a number, as 1000, 500M or 2G"),
    ("cache_bytes", SIZE, "\N{ARABIC-INDIC DIGIT THREE}",
     "'\N{ARABIC-INDIC DIGIT THREE}', accepted a number, as 1000, 500M or 2G"),
    ("cache_bytes", SIZE, "1 G", "'1 G', accepted a number, as 1000, 500M or 2G"),
    ("cache", "BLOCKNUMBA_CACHE", "-1", "'-1', accepted 0 or 1"),
    ("cache", "BLOCKNUMBA_CACHE", MANY, f"'{MANY[:60]}...', accepted 0 or 1"),
    ("interpret", "BLOCKNUMBA_INTERPRET", "nan", "'nan', accepted 0 or 1"),
    ("time", "BLOCKNUMBA_TIME", "1e400", "'1e400', accepted 0 or 1"),
    ("full_traceback", "BLOCKNUMBA_FULL_TRACEBACK", "nan", "'nan', accepted 0 or 1"),
    ("dump", DUMP, "ptx;sass", "'ptx;sass', accepted all, tile, gpu, nvvm, ptx, sass"),
    ("dump", DUMP, "all,ptx", "'all', accepted all, tile, gpu, nvvm, ptx, sass"),
    ("limits", "BLOCKNUMBA_MAX_UNROLLED", MANY,
     f"'{MANY[:60]}...', accepted a number, as 1000, 500M or 2G"),
    ("limits", "BLOCKNUMBA_MAX_TILE_BYTES", "-5", "'-5', accepted a number, as 1000, 500M or 2G"),
    ("cache_folder", "BLOCKNUMBA_CACHE_DIR", "~nobody-of-this-name/cache",
     "'~nobody-of-this-name/cache', accepted a folder whose absolute path is known"),
]


@pytest.mark.parametrize("setting, name, text, message", VARIABLES,
                         ids=[f"{name}={text[:20]}" for _, name, text, _ in VARIABLES])
def test_a_variable_is_an_error_of_what_needs_it(setting, name, text, message):
    settings = Environment({name: text})  # no error yet

    with pytest.raises(BlockValueError) as error:
        getattr(settings, setting)

    assert str(error.value) == f"{name}: given {message}"
    assert all(getattr(settings, other) == getattr(Settings(), other)
               for other in ("cache", "interpret", "time", "dump") if other != setting)


@pytest.mark.parametrize("name", [SIZE, DUMP, "BLOCKNUMBA_TIME", "BLOCKNUMBA_CACHE_DIR",
                                  "BLOCKNUMBA_INTERPRET"])
def test_an_empty_variable_asks_for_nothing(name):
    settings = Environment({name: " "})

    assert (settings.interpret, settings.time, settings.dump) == (False, False, ())
    assert (settings.cache_bytes, settings.cache_folder) == (1 << 30, None)


# Cache entries with a right checksum that say what this blocknumba does not write


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Cache:
    """A folder that this test alone uses."""
    made = Cache(tmp_path / "cache", 1 << 20)
    monkeypatch.setattr(kernel_code, "user_cache", lambda: made)
    return made


def launched() -> tuple[bool, list]:
    """Whether a program that has just started found its kernel in the cache; its result."""
    module = types.ModuleType("user_program")
    exec(compile(KERNEL, "user_program.py", "exec"), module.__dict__)
    x, out = np.arange(4, dtype=np.int32), np.full(4, -1, np.int32)
    compiled = module.double[1](x, out, B=4, interpret=True)
    return list(compiled.times_ms) == ["cache"], out.tolist()


def parts_of(content: bytes) -> list[bytes]:
    """The parts of an entry: the head as JSON, the tile IR, and more of machine code."""
    parts = []
    while content:
        length = int.from_bytes(content[:8], "little")
        parts.append(zlib.decompress(content[8:8 + length]))
        content = content[8 + length:]
    return parts


def entry_of(parts: list[bytes]) -> bytes:
    """An entry of these parts."""
    packed = [zlib.compress(part) for part in parts]
    return b"".join(len(part).to_bytes(8, "little") + part for part in packed)


def with_head(**changes: object):
    """A change of an entry whose head says something else."""
    def change(parts: list[bytes]) -> bytes:
        return entry_of([json.dumps(json.loads(parts[0]) | changes).encode(), *parts[1:]])
    return change


def without(name: str):
    """A change of an entry whose head lacks something."""
    def change(parts: list[bytes]) -> bytes:
        head = json.loads(parts[0])
        del head[name]
        return entry_of([json.dumps(head).encode(), *parts[1:]])
    return change


ENTRIES = {
    "nothing": lambda parts: b"",
    "one byte": lambda parts: b"\x01",
    "not compressed": lambda parts: b"\x10" + bytes(7) + b"x" * 16,
    "a length beyond the end": lambda parts: b"\xff" * 8 + zlib.compress(parts[0]),
    "the head alone": lambda parts: entry_of(parts[:1]),
    "nested deeply": lambda parts: entry_of([b"[" * 100_000, *parts[1:]]),
    "not JSON": lambda parts: entry_of([b"{", *parts[1:]]),
    "a list": lambda parts: entry_of([b"[]", *parts[1:]]),
    "a number": lambda parts: entry_of([MANY.encode(), *parts[1:]]),
    "not UTF-8": lambda parts: entry_of([parts[0], b"\xff\xfe"]),
    "not tile IR": lambda parts: entry_of([parts[0], b"Hamlet"]),
    "no tile IR": lambda parts: entry_of([parts[0], b""]),
    "an unknown op": lambda parts: entry_of([parts[0], parts[1].replace(b" mul ", b" mu ")]),
    **{f"no {name}": without(name) for name in ("name", "toolchain", "read", "stored", "locations",
                                                "op_locations")},
    "a name that is none": with_head(name=7),
    "a toolchain of numbers": with_head(toolchain=[7]),
    "a toolchain of other fields": with_head(toolchain=[{"file": "x"}]),
    "reads numbers": with_head(read=[1, 2]),
    "stores text": with_head(stored="out"),
    "locations that are none": with_head(locations=[["file", "line"]]),
    "a location called from itself": with_head(locations=[["f", 1, 0, 0, "f", 0]]),
    "ops without locations": with_head(op_locations=[]),
    "locations beyond the end": with_head(op_locations=[10**9]),
    "locations that are texts": with_head(op_locations=["a"]),
    "machine code of the interpreter": with_head(machine={}),
}


@pytest.mark.parametrize("change", ENTRIES.values(), ids=ENTRIES)
def test_an_entry_that_cannot_be_decoded_is_compiled_again(change, cache):
    assert launched() == (False, [0, 2, 4, 6])
    (file,) = cache.files()
    key = file.path.stem
    assert cache.save(key, change(parts_of(cache.load(key))))

    found_damaged, out = launched()
    found_again, _ = launched()

    assert (found_damaged, out, found_again) == (False, [0, 2, 4, 6], True)


@cache_results
def machine_entry() -> tuple:
    """A kernel for a GPU, compiled once, and its entry."""
    compiled = bn.compile(double, "f32[::1], f32[::1], 64", target="sm_90a")
    return compiled, encode(compiled, ())


MACHINE = {
    "threads": "many", "symbol": None, "parameters": {}, "registers": 1.5, "warnings": "none",
    "shared_bytes": None, "cluster": "2", "remarks": {"locations": [], "remarks": [["tma", 7, {}]]}}
PARAMETER = {"kind": 1, "axis": "0", "divisibility": None, "mappable": 1, "tensor_map": [1],
             "unknown": 0}


@pytest.mark.parametrize("where, name, value", [
    *(("machine", name, value) for name, value in MACHINE.items()),
    *(("parameter", name, value) for name, value in PARAMETER.items())])
def test_machine_code_of_wrong_types_is_not_used(where, name, value):
    pytest.importorskip("cuda.bindings.nvvm")
    compiled, content = machine_entry()
    head, *rest = parts_of(content)
    head = json.loads(head)
    changed = head["machine"] if where == "machine" else head["machine"]["parameters"][0]
    changed[name] = value

    assert decode(entry_of([json.dumps(head).encode(), *rest]), compiled.specialization) is None


def test_a_cubin_that_is_none_is_not_used():
    pytest.importorskip("cuda.bindings.nvvm")
    compiled, content = machine_entry()

    assert decode(entry_of([*parts_of(content)[:-1], b"text"]), compiled.specialization) is None
    assert decode(content, compiled.specialization) is not None


@pytest.mark.parametrize("entry", ["a\0b", "missing", __file__, "x" * 5000])
def test_a_path_of_modules_that_leads_nowhere_is_no_error(entry, cache, monkeypatch):
    monkeypatch.setattr(sys, "path", [entry, *sys.path])
    monkeypatch.setattr(fingerprint, "environment", fingerprint.environment.__wrapped__)

    assert [launched() for _ in range(2)] == [(False, [0, 2, 4, 6]), (True, [0, 2, 4, 6])]


# Files in the place of entries


def _symbolic_link(path: Path) -> None:
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


IN_PLACES = {
    "a symbolic link": (_symbolic_link, True),
    "a symbolic link to nothing": (lambda path: (path.unlink(), path.symlink_to("nothing")), True),
    "a folder": (_folder, False),
    "a pipe": (_pipe, True),
    "a file that others can write": (lambda path: path.chmod(0o666), True),
    "a file of the group": (lambda path: path.chmod(0o660), True),
    "an empty file": (lambda path: path.write_bytes(b""), True),
}


@pytest.mark.skipif(os.name != "posix", reason="links, pipes and modes are of POSIX")
@pytest.mark.parametrize("put, is_replaced", IN_PLACES.values(), ids=IN_PLACES)
def test_what_is_in_the_place_of_an_entry_is_not_read(put, is_replaced, cache):
    launched()
    (file,) = cache.files()
    put(file.path)

    found, out = launched()
    found_again, _ = launched()

    assert (found, out, found_again) == (False, [0, 2, 4, 6], is_replaced)
    assert not is_replaced or file.path.is_file() and not file.path.is_symlink()


@pytest.mark.parametrize("error", [28, 30, 122], ids=["disk full", "read-only", "quota"])
def test_a_write_that_the_system_refuses_leaves_nothing_behind(error, cache, monkeypatch):
    def refuse(*_, **__):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(cache_files.os, "replace", refuse)

    assert [launched() for _ in range(2)] == [(False, [0, 2, 4, 6])] * 2
    assert list(cache.folder.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are of POSIX")
@pytest.mark.parametrize("whose", ["another user's", "others'", "the group's"])
def test_a_cache_that_others_can_write_is_not_used_and_said_once(whose, cache, monkeypatch):
    launched()
    if whose == "another user's":
        owner = cache.folder.stat().st_uid
        monkeypatch.setattr(cache_files.os, "geteuid", lambda: owner + 1)
    else:
        cache.folder.chmod(0o777 if whose == "others'" else 0o770)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcomes = [launched() for _ in range(2)]

    reason = ("it belongs to another user" if whose == "another user's"
              else "other users can write to it")
    assert outcomes == [(False, [0, 2, 4, 6])] * 2
    fix = "" if whose == "another user's" else f", or run chmod go-w {cache.folder}"
    assert [str(warning.message) for warning in caught] == [
        f"blocknumba does not use the cache {cache.folder}: {reason}; set BLOCKNUMBA_CACHE_DIR to "
        f"a folder of your own{fix}"]


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_nobody_is_told_to_close_a_folder_for_all(cache):
    cache.folder.mkdir()
    cache.folder.chmod(0o1777)

    assert cache_files.distrust(cache.folder) == "other users can write to it"
    assert cache_files.remedy(cache.folder) == "set BLOCKNUMBA_CACHE_DIR to a folder of your own"


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_commands_say_that_a_cache_is_not_used(cache, monkeypatch, capsys):
    launched()
    cache.folder.chmod(0o777)
    settings = Settings(cache_folder=cache.folder, cache_bytes=1 << 20)
    for module in (doctor, cache_command):
        monkeypatch.setattr(module, "SETTINGS", settings)

    statuses = main(["cache", "info"]), main(["doctor"]), main(["cache", "clear"])

    printed = capsys.readouterr().out
    assert statuses == (0, 1, 0)
    assert printed.count("(not used: other users can write to it)") == 3
    assert f"  fix: {cache_files.remedy(cache.folder)}\n" in printed
    assert f"removed 1 kernels and the tuning of 0 from {cache.folder}" in printed


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_the_cache_is_made_for_its_owner_alone(cache):
    before = os.umask(0)
    try:
        launched()
    finally:
        os.umask(before)

    (file,) = cache.files()
    assert [path.stat().st_mode & 0o777 for path in (cache.folder, file.path)] == [0o700, 0o600]


# Results of tuning


def tuned():
    """A kernel that was tuned."""


def store_of(name: str, folder: Path) -> Store:
    """The results of a kernel of some name."""
    function = types.FunctionType(tuned.__code__, {}, "tuned")
    function.__name__ = name
    return Store(folder, function)


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "..", "", "a\0b", "a\nb",
                                  "x" * 5000, "\udc80", "\N{SNOWMAN}"],
                         ids=lambda name: ascii(name)[:20])
def test_the_results_of_a_kernel_of_any_name_stay_in_their_folder(name, tmp_path):
    timing = Timing(1.0, 1.0, 1.0)
    store_of(name, tmp_path).write("GPU", "key", {"B=64": timing}, {"B=64": "code"})

    assert store_of(name, tmp_path).read("GPU", "key", {"B=64": "code"}) == {"B=64": timing}
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / FOLDER]


RESULTS = {
    "nothing": "", "not JSON": "{", "nested deeply": "[" * 100_000, "a list": "[]",
    "a long number": MANY, "another format": '{"format": 2}',
    **{f"devices {text}": '{"format": 1, "devices": %s}' % text
       for text in ("7", "[]", '{"GPU": 7}', '{"GPU": {"key": []}}',
                    '{"GPU": {"key": {"B=64": 7}}}')},
    **{f"a time {text[:10]}": '{"format": 1, "devices": {"GPU": {"key": {"B=64": {"code": "code", '
       '"median_ms": %s, "low_ms": 1, "high_ms": 1}}}}}' % text
       for text in ('"x"', "[]", "NaN", "1e400", "9" * 400, "null")}}


@pytest.mark.parametrize("content", RESULTS.values(), ids=RESULTS)
def test_results_that_are_none_are_measured_again(content, tmp_path):
    store = store_of("tuned", tmp_path)
    store.path.parent.mkdir()
    store.path.write_text(content)
    store.path.chmod(0o600)

    assert store.read("GPU", "key", {"B=64": "code"}) == {}
    store.write("GPU", "key", {"B=64": Timing(1.0, 1.0, 1.0)}, {"B=64": "code"})
    assert store.read("GPU", "key", {"B=64": "code"}) == {"B=64": Timing(1.0, 1.0, 1.0)}


# Hooks


@pytest.fixture
def hooked():
    """A kernel of its own, what launches it, and what its hooks wrote down."""
    kernel, seen = bn.jit(double.python_function), []
    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    return kernel, lambda: kernel[1](x, out, B=4, interpret=True), seen


def test_a_hook_that_removes_itself_leaves_the_next_one(hooked):
    kernel, launch, seen = hooked

    def once(_):
        seen.append("once")
        kernel.remove_launch_hook(once)

    kernel.add_launch_hook(once)
    kernel.add_launch_hook(lambda _: seen.append("always"))
    launch()
    launch()

    assert seen == ["once", "always", "always"]


def test_a_hook_that_adds_a_hook_adds_it_to_the_next_launch(hooked):
    kernel, launch, seen = hooked
    kernel.add_launch_hook(lambda _: kernel.add_launch_hook(lambda _: seen.append("added")))

    launch()
    assert seen == []
    launch()

    assert seen == ["added"]


def test_a_hook_that_raises_stops_the_launch_and_ends_the_hooks_before_it(hooked):
    kernel, launch, seen = hooked

    def refuse(_):
        raise RuntimeError("not now")

    kernel.add_launch_hook(lambda _: lambda: seen.append("ended"))
    kernel.add_launch_hook(refuse)
    kernel.add_launch_hook(lambda _: seen.append("never"))
    with pytest.raises(RuntimeError, match="^not now$"):
        launch()

    assert seen == ["ended"]


def test_a_hook_that_raises_after_the_launch_does_not_stop_the_others(hooked):
    kernel, launch, seen = hooked

    def refuse():
        raise RuntimeError("too late")

    kernel.add_launch_hook(lambda _: lambda: seen.append("ended"))
    kernel.add_launch_hook(lambda _: refuse)
    with pytest.raises(RuntimeError, match="^too late$"):
        launch()

    assert seen == ["ended"]


def test_a_hook_cannot_change_the_arguments_of_launches(hooked):
    kernel, _, _ = hooked
    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    bound = kernel.bind(1, x, out, B=4, interpret=True)
    kernel.add_launch_hook(lambda event: event.arguments.clear())

    for _ in range(2):
        out[:] = -1
        bound()
        assert out.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("act, error, message", [
    (lambda kernel, launch: kernel.add_launch_hook(7), BlockTypeError,
     "double: given 7 as a launch hook, accepted a function"),
    (lambda kernel, launch: kernel.remove_launch_hook(print), BlockValueError,
     "double: given a hook that was not added"),
    (lambda kernel, launch: (kernel.add_launch_hook(lambda _: 7), launch()), BlockTypeError,
     "double: a launch hook returned 7, accepted None or a function"),
    (lambda kernel, launch: kernel.bind(1, np.zeros(4), np.zeros(4), B=4, interpret=True)(0),
     TypeError, "double.bind(...)() takes 0 positional arguments but 1 was given"),
], ids=["added", "removed", "returned", "bound"])
def test_hooks_and_bound_launches_say_what_they_take(act, error, message, hooked):
    kernel, launch, _ = hooked

    with pytest.raises(error) as raised:
        act(kernel, launch)

    assert str(raised.value) == message


# Signatures

SIGNATURES = [
    ("f32[:], f32[:], 4, 5",
     "double: given 4 types, accepted 2 (x, out), or 3 with the values of B"),
    ("f32[:]", "double: given 1 types, accepted 2 (x, out), or 3 with the values of B"),
    ("", "double: given 0 types, accepted 2 (x, out), or 3 with the values of B"),
    ("f32[:], f32[:]", "double: missing the constant B"),
    ("f32[:], f32[:], " + MANY,
     f"double: argument B: given ' {MANY[:59]}...', accepted the value of a constant"),
    ("f32[:], f32[:], {[]: 1}",
     "double: argument B: given ' {[]: 1}', accepted the value of a constant"),
    ("f32[:], f32[:], " + "-" * 20000 + "1",
     f"double: argument B: given ' {'-' * 59}...', accepted the value of a constant"),
    ("f32[:]:" + MANY + ", f32[:], 4",
     f"double: argument x: given the type 'f32[:]:{MANY[:53]}...', {ACCEPTED}"),
]


@pytest.mark.parametrize("signature, message", SIGNATURES,
                         ids=[signature[:30] for signature, _ in SIGNATURES])
def test_a_signature_is_refused_with_what_is_accepted(signature, message):
    with pytest.raises(BlockTypeError) as error:
        bn.compile(double, signature, target="sm_90a")

    assert str(error.value) == message


@pytest.mark.parametrize("name", ["../x", "/x", "", ".", "a/b"])
def test_exported_files_stay_in_their_folder(name, tmp_path):
    compiled = bn.compile(double, "i32[:], i32[:], 4", interpret=True)

    with pytest.raises(BlockValueError, match="compile: given the name"):
        export(compiled, tmp_path, name)
