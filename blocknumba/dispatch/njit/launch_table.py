"""Launch tables: how native code finds the version of a kernel for its arguments, and calls it.

    Table: count, key words, miss, number, versions --> Version: key, run, slots ...

The code that Numba compiles packs all arguments of a launch into a *record* of 8-byte slots, and
what versions depend on into a *key* of 8-byte words.  `blocknumba_launch`, a function in LLVM IR
that is linked into each caller, compares the key with those of the versions.  It calls the version
that it finds: the driver's cuLaunchKernelEx, or a function of the CPU device.  If it finds none it
calls `miss`, a function in Python.  The caller knows a table by the name of a symbol, so that Numba
can cache it: the table itself belongs to the process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm

from blocknumba.cpu_lower.pool import pool
from blocknumba.cpu_lower.printing import FIRST_SLOT
from blocknumba.cpu_lower.structures import field_index, load, place, type_of
from blocknumba.dispatch.compile.compiled import Compiled
from blocknumba.dispatch.launch.grid import MAX_X, MAX_YZ
from blocknumba.dispatch.launch.native import NativeLauncher, launcher_of, thread_count
from blocknumba.dispatch.launch.plan import LaunchConfig, LaunchShape
from blocknumba.tile_ir.ir.function import Parameter

MAX_VERSIONS = 64  # of a table; the 65th makes it forget the others
MAX_PARAMETERS = 256
SEVERAL_STREAMS = -1  # in the place of a stream: the arrays', which differ and must be ordered
# (number of the table, addresses of record and key, grid x, y, z, stream, reason) -> outcome
Miss = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 8)
# reasons: the key is unknown; native code cannot launch this, whatever it knows; greater ones: a
# program stopped with status `reason - CANNOT`, and in the place of the stream is the address of
# two int64 that tell where
UNKNOWN_KEY, CANNOT = 0, 1
# outcomes: it is done; an error is kept for the thread; the version can now be found
DONE, FAILED, LOOK_AGAIN = 0, 1, 2


class VersionStruct(ctypes.Structure):
    """%version of the code below.

    key: address of its words.
    run: address of cuLaunchKernelEx, or of a function of the CPU device.
    handle: the kernel in the driver; 0 on the CPU.
    device: ordinal.  current_device: address of cuCtxGetDevice; 0 where there is only one device.
    count: parameters.  slots: address of the slot of each in the record (int32).
    fixed: address of what the driver gets for each (pointers); 0 for that of its slot.
    config: address of a CUlaunchConfig, to which grid and stream are added.
    cluster: blocks of a program.
    share: address of the function that shares a launch among threads (cpu_lower/pool_code.py);
        0 on a GPU, and where there is one thread.
    pool: of the threads.  cost: of a program, as the pool finds it.
    """

    _fields_ = [("key", ctypes.c_void_p), ("run", ctypes.c_void_p), ("handle", ctypes.c_uint64),
                ("device", ctypes.c_int64), ("current_device", ctypes.c_void_p),
                ("count", ctypes.c_int64), ("slots", ctypes.c_void_p),
                ("config", ctypes.c_void_p),
                ("cluster", ctypes.c_int64), ("fixed", ctypes.c_void_p),
                ("share", ctypes.c_void_p), ("pool", ctypes.c_void_p), ("cost", ctypes.c_double)]


class TableStruct(ctypes.Structure):
    """%table of the code below.  words: of a key."""

    _fields_ = [("count", ctypes.c_int64), ("words", ctypes.c_int64), ("miss", Miss),
                ("number", ctypes.c_int64), ("versions", ctypes.c_void_p * MAX_VERSIONS)]


@dataclass(frozen=True, slots=True)
class GpuCode:
    """A kernel of the driver.

    launch: address of cuLaunchKernelEx.  handle: the kernel.  shape: of its launches.
    device: ordinal.  current_device: address of cuCtxGetDevice; 0 if there is only one device.
    parameters: of the kernel.  maps: the encoded tensor maps among them, by their positions.
    """

    launch: int
    handle: int
    shape: LaunchShape
    device: int
    current_device: int
    parameters: Sequence[Parameter]
    maps: Mapping[int, ctypes.Array]


@dataclass(frozen=True, slots=True)
class CpuCode:
    """A function of the CPU device.

    function: address of i32 (arguments, first program, stop program, grid x, y, z), which runs
        a range of programs; see cpu_lower/kernel.py.
    parameters: of the kernel, from FIRST_SLOT on.
    launcher: of launches from Python, which knows its errors.
    """

    function: int
    parameters: Sequence[Parameter]
    launcher: NativeLauncher

    @staticmethod
    def of(compiled: Compiled) -> CpuCode:
        """The code of a kernel that was compiled for this processor."""
        native = compiled.native
        return CpuCode(native.loaded.address(native.symbol), native.parameters,
                       launcher_of(compiled))


class Version:
    """A version of a kernel in a table, with all memory that native code reads of it.

    key: its words.  slots: slot of each parameter in the record.  code: what it calls.
    """

    def __init__(self, key: Sequence[int], slots: Sequence[int], code: GpuCode | CpuCode):
        self.key, self.code = tuple(key), code
        self._key = (ctypes.c_uint64 * max(1, len(key)))(*key)
        self._slots = (ctypes.c_int32 * max(1, len(slots)))(*slots)
        struct = self.struct = VersionStruct(ctypes.addressof(self._key), count=len(slots),
                                             slots=ctypes.addressof(self._slots))
        assert len(slots) <= MAX_PARAMETERS
        if isinstance(code, CpuCode):
            struct.run = code.function
            if thread_count() > 1:
                threads = pool(thread_count())
                struct.share, struct.pool = threads.share, threads.address
            return
        self._config = LaunchConfig.of(code.shape)
        struct.run, struct.handle, struct.device = code.launch, code.handle, code.device
        struct.current_device = code.current_device
        struct.config, struct.cluster = ctypes.addressof(self._config), code.shape.cluster
        self._fixed = (ctypes.c_void_p * max(1, len(slots)))()
        for position, encoded in code.maps.items():
            self._fixed[position] = ctypes.addressof(encoded)
        struct.fixed = ctypes.addressof(self._fixed)


class Table:
    """The versions of one launch in the source of a caller.

    symbol: name that callers know it by; a later table of this name takes its place for callers
        that are compiled later.
    number: handed to `miss`.  words: of a key.  address: of its structure.
    """

    def __init__(self, symbol: str, number: int, words: int, miss: Miss):
        self._struct = TableStruct(0, words, miss, number)
        self._kept: list[Version] = []  # other threads may read those that were forgotten
        self.address = ctypes.addressof(self._struct)
        llvm.add_symbol(symbol, self.address)

    def kept(self, key: tuple[int, ...]) -> Version:
        """The last version with a key, perhaps a forgotten one."""
        return next(version for version in reversed(self._kept) if version.key == key)

    def add(self, version: Version) -> None:
        """Let native code find a version; only one thread may do so at a time."""
        if self._struct.count == MAX_VERSIONS:
            self._struct.count = 0
        self._kept.append(version)
        self._struct.versions[self._struct.count] = ctypes.addressof(version.struct)
        self._struct.count += 1


LAUNCH = "blocknumba_launch"

def _load(struct: type[ctypes.Structure], field: str, value: str) -> str:
    """A value that is read from a field of %version or %table."""
    return load(struct, "version" if struct is VersionStruct else "table", field, value)


_VERSIONS = field_index(TableStruct, "versions")
_CODE = f"""
%version = type {type_of(VersionStruct)}
%table = type {type_of(TableStruct)}
%config = type {{ i32, i32, i32, [3 x i32], i32, i64, ptr, i32 }}

; The version with a key; null if there is none.
define internal ptr @blocknumba_find(ptr %table, ptr %key) {{
entry:
  %count = load atomic i64, ptr %table acquire, align 8
{_load(TableStruct, 'words', 'words')}
  br label %versions
versions:
  %v = phi i64 [ 0, %entry ], [ %v.next, %different ]
  %more = icmp slt i64 %v, %count
  br i1 %more, label %compare, label %none
compare:
  %version.at = getelementptr %table, ptr %table, i32 0, i32 {_VERSIONS}, i64 %v
  %version = load ptr, ptr %version.at
  %other = load ptr, ptr %version
  br label %next
next:
  %w = phi i64 [ 0, %compare ], [ %w.next, %same ]
  %left = icmp slt i64 %w, %words
  br i1 %left, label %word, label %found
word:
  %here.at = getelementptr i64, ptr %key, i64 %w
  %there.at = getelementptr i64, ptr %other, i64 %w
  %here = load i64, ptr %here.at
  %there = load i64, ptr %there.at
  %equal = icmp eq i64 %here, %there
  br i1 %equal, label %same, label %different
same:
  %w.next = add i64 %w, 1
  br label %next
different:
  %v.next = add i64 %v, 1
  br label %versions
found:
  ret ptr %version
none:
  ret ptr null
}}

; cuLaunchKernelEx for a version; its status, or -1 where another device is current.
define internal i32 @blocknumba_launch_gpu(ptr %version, ptr %record, i32 %x, i32 %y, i32 %z,
                                           i64 %stream) {{
entry:
  %places = alloca [{MAX_PARAMETERS} x ptr]
  %config = alloca %config
  %device = alloca i32
{_load(VersionStruct, 'current_device', 'current')}
  %one = icmp eq ptr %current, null
  br i1 %one, label %pack, label %ask
ask:
  %asked = call i32 %current(ptr %device)
  %answer = load i32, ptr %device
  %here = sext i32 %answer to i64
{_load(VersionStruct, 'device', 'wanted')}
  %right = icmp eq i64 %here, %wanted
  %answered = icmp eq i32 %asked, 0
  %is.there = and i1 %right, %answered
  br i1 %is.there, label %pack, label %elsewhere
elsewhere:
  ret i32 -1
pack:
{_load(VersionStruct, 'count', 'count')}
{_load(VersionStruct, 'slots', 'slots')}
{_load(VersionStruct, 'fixed', 'fixed')}
  br label %parameters
parameters:
  %p = phi i64 [ 0, %pack ], [ %p.next, %parameter ]
  %more = icmp slt i64 %p, %count
  br i1 %more, label %parameter, label %packed
parameter:
  %slot.at = getelementptr i32, ptr %slots, i64 %p
  %slot = load i32, ptr %slot.at
  %in.record = getelementptr i64, ptr %record, i32 %slot
  %map.at = getelementptr ptr, ptr %fixed, i64 %p
  %map = load ptr, ptr %map.at
  %is.in.record = icmp eq ptr %map, null
  %from = select i1 %is.in.record, ptr %in.record, ptr %map
  %to = getelementptr ptr, ptr %places, i64 %p
  store ptr %from, ptr %to
  %p.next = add i64 %p, 1
  br label %parameters
packed:
{_load(VersionStruct, 'config', 'template')}
  %copied = load %config, ptr %template
{_load(VersionStruct, 'cluster', 'cluster')}
  %cluster.32 = trunc i64 %cluster to i32
  %blocks = mul i32 %x, %cluster.32
  %with.x = insertvalue %config %copied, i32 %blocks, 0
  %with.y = insertvalue %config %with.x, i32 %y, 1
  %with.z = insertvalue %config %with.y, i32 %z, 2
  %whole = insertvalue %config %with.z, i64 %stream, 5
  store %config %whole, ptr %config
{_load(VersionStruct, 'run', 'run')}
{_load(VersionStruct, 'handle', 'handle')}
  %status = call i32 %run(ptr %config, i64 %handle, ptr %places, ptr null)
  ret i32 %status
}}

; The programs of a version; the status of the first that stopped, or 0.
; told: address of two i64 that tell where.  may.share: whether other threads may run some.
define internal i32 @blocknumba_run_here(ptr %version, ptr %record, i64 %programs, i32 %x, i32 %y,
                                         i32 %z, ptr %told, i1 %may.share) {{
entry:
  %arguments = alloca [{MAX_PARAMETERS + FIRST_SLOT} x i64]
  store ptr %told, ptr %arguments
  %printer.at = getelementptr i64, ptr %arguments, i64 1
  store i64 0, ptr %printer.at
{_load(VersionStruct, 'count', 'count')}
{_load(VersionStruct, 'slots', 'slots')}
  br label %parameters
parameters:
  %p = phi i64 [ 0, %entry ], [ %p.next, %parameter ]
  %more = icmp slt i64 %p, %count
  br i1 %more, label %parameter, label %packed
parameter:
  %slot.at = getelementptr i32, ptr %slots, i64 %p
  %slot = load i32, ptr %slot.at
  %from = getelementptr i64, ptr %record, i32 %slot
  %place = add i64 %p, {FIRST_SLOT}
  %to = getelementptr i64, ptr %arguments, i64 %place
  %bits = load i64, ptr %from
  store i64 %bits, ptr %to
  %p.next = add i64 %p, 1
  br label %parameters
packed:
{_load(VersionStruct, 'run', 'run')}
{_load(VersionStruct, 'share', 'share')}
  %can.share = icmp ne ptr %share, null
  %several = icmp ugt i64 %programs, 1
  %both = and i1 %can.share, %several
  %together = and i1 %both, %may.share
  br i1 %together, label %many, label %alone
many:
{_load(VersionStruct, 'pool', 'pool')}
{place(VersionStruct, 'version', 'cost', 'cost')}
  %shared = call i32 %share(ptr %pool, ptr %run, ptr %arguments, i64 %programs, i32 %x, i32 %y,
                            i32 %z, ptr %cost)
  ret i32 %shared
alone:
  %status = call i32 %run(ptr %arguments, i64 0, i64 %programs, i32 %x, i32 %y, i32 %z)
  ret i32 %status
}}

; A launch: DONE, or FAILED where Python keeps an error for the calling thread.
; may.share: 0 within a parallel loop, whose threads are busy.
define i32 @{LAUNCH}(ptr %table, ptr %record, ptr %key, i64 %x, i64 %y, i64 %z, i64 %stream,
                     i64 %may.share) {{
entry:
  %told = alloca [2 x i64]
  %x.32 = trunc i64 %x to i32
  %y.32 = trunc i64 %y to i32
  %z.32 = trunc i64 %z to i32
  %x.least = sub i64 %x, 1
  %y.least = sub i64 %y, 1
  %z.least = sub i64 %z, 1
  %x.fits = icmp ult i64 %x.least, {MAX_X}
  %y.fits = icmp ult i64 %y.least, {MAX_YZ}
  %z.fits = icmp ult i64 %z.least, {MAX_YZ}
  %xy.fits = and i1 %x.fits, %y.fits
  %xyz.fits = and i1 %xy.fits, %z.fits
  %one.stream = icmp ne i64 %stream, {SEVERAL_STREAMS}
  %fits = and i1 %xyz.fits, %one.stream
  br i1 %fits, label %find, label %miss
find:
  %version = call ptr @blocknumba_find(ptr %table, ptr %key)
  %unknown = icmp eq ptr %version, null
  br i1 %unknown, label %miss, label %known
known:
{_load(VersionStruct, 'config', 'config')}
  %is.cpu = icmp eq ptr %config, null
  br i1 %is.cpu, label %cpu, label %gpu
cpu:
  %xy = mul i64 %x, %y
  %programs = mul i64 %xy, %z
  %may = icmp ne i64 %may.share, 0
  %stopped = call i32 @blocknumba_run_here(ptr %version, ptr %record, i64 %programs, i32 %x.32,
                                           i32 %y.32, i32 %z.32, ptr %told, i1 %may)
  %cpu.done = icmp eq i32 %stopped, 0
  br i1 %cpu.done, label %done, label %tell
tell:
  %told.64 = ptrtoint ptr %told to i64
  %stopped.64 = zext i32 %stopped to i64
  %stop.reason = add i64 %stopped.64, {CANNOT}
  br label %miss
gpu:
  %status = call i32 @blocknumba_launch_gpu(ptr %version, ptr %record, i32 %x.32, i32 %y.32,
                                            i32 %z.32, i64 %stream)
  %gpu.done = icmp eq i32 %status, 0
  br i1 %gpu.done, label %done, label %miss
done:
  ret i32 {DONE}
miss:
  %reason = phi i64 [ {CANNOT}, %entry ], [ {UNKNOWN_KEY}, %find ], [ %stop.reason, %tell ],
                    [ {CANNOT}, %gpu ]
  %with = phi i64 [ %stream, %entry ], [ %stream, %find ], [ %told.64, %tell ], [ %stream, %gpu ]
{_load(TableStruct, 'miss', 'missed')}
{_load(TableStruct, 'number', 'number')}
  %record.64 = ptrtoint ptr %record to i64
  %key.64 = ptrtoint ptr %key to i64
  %outcome = call i32 %missed(i64 %number, i64 %record.64, i64 %key.64, i64 %x, i64 %y, i64 %z,
                              i64 %with, i64 %reason)
  %again = icmp eq i32 %outcome, {LOOK_AGAIN}
  br i1 %again, label %find, label %over
over:
  ret i32 %outcome
}}
"""


def launch_code() -> llvm.ModuleRef:
    """The module that defines LAUNCH, which any number of callers may link."""
    return llvm.parse_assembly(_CODE)
