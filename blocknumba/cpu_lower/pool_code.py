"""Code of the pool: how a launch is shared among threads, without Python.

`SHARE` runs the programs of one launch and returns their status.  It estimates what they cost from
what earlier ones did.  Where waking threads pays, it publishes a *job*: the programs in as many
parts as there are threads.  Each thread runs chunks of its own part, then what others have left:
so the same thread mostly runs the same programs of the next launch, whose data it has in its cache.

    state       OPEN | number of workers amid the job      joined by compare and swap
    generation  number of jobs                             what idle workers look at

Idle workers look for a while, then sleep on a lock of their own; woken ones wake others.
"""

from __future__ import annotations

import ctypes

from blocknumba.cpu_lower.structures import load, place, type_of

SHARE, WORK, TICKS = "blocknumba_share", "blocknumba_wait_for_work", "blocknumba_ticks"
CHUNKS = 8  # of each part
FIRST_PART = 32  # of the programs of a launch whose cost is unknown, run alone
WOKEN = 4  # workers that one thread wakes
OPEN = 1 << 32
_STOPPED = 1 << 62
_LOOKS = 1000  # before a thread that waits lets others run
_APART = ctypes.c_int64 * 15  # keeps fields that threads change in cache lines of their own


class PoolStruct(ctypes.Structure):
    """%pool of the code below.

    generation, state: see the module.  busy: 1 while a launch is shared.
    run, arguments, x, y, z, chunk, parts_count, helpers, status: of the job; helpers: workers that
        may join.
    worth: ticks of a launch that is shared.  idle: ticks that a worker looks for work.
    started: workers.  start: of Python's, starts them.
    workers, parts: addresses of arrays of WorkerStruct and PartStruct, parts one longer.
    acquire, release: of Python's locks.  give_way: lets another thread run.
    thread_state: null on threads that Python does not know.
    """

    _fields_ = [("generation", ctypes.c_int64), ("_1", _APART),
                ("state", ctypes.c_int64), ("_2", _APART),
                ("busy", ctypes.c_int64), ("_3", _APART),
                ("run", ctypes.c_void_p), ("arguments", ctypes.c_void_p),
                ("x", ctypes.c_int32), ("y", ctypes.c_int32), ("z", ctypes.c_int32),
                ("status", ctypes.c_int32), ("chunk", ctypes.c_int64),
                ("parts_count", ctypes.c_int64), ("helpers", ctypes.c_int64),
                ("worth", ctypes.c_double), ("idle", ctypes.c_int64),
                ("started", ctypes.c_int64), ("start", ctypes.c_void_p),
                ("workers", ctypes.c_void_p), ("parts", ctypes.c_void_p),
                ("acquire", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("give_way", ctypes.c_void_p), ("thread_state", ctypes.c_void_p)]


class WorkerStruct(ctypes.Structure):
    """%worker: asleep, 1 while it waits for its lock."""

    _fields_ = [("asleep", ctypes.c_int64), ("lock", ctypes.c_void_p), ("_", _APART)]


class PartStruct(ctypes.Structure):
    """%part: the next of its programs, and the one after the last."""

    _fields_ = [("next", ctypes.c_int64), ("stop", ctypes.c_int64), ("_", _APART)]


def pool_code(triple: str) -> str:
    """The module for a processor."""
    is_x86 = triple.startswith(("x86", "i386", "i686"))
    is_arm = triple.startswith(("aarch64", "arm64"))
    pause = "call void @llvm.x86.sse2.pause()" if is_x86 else (
        'call void asm sideeffect "yield", ""()' if is_arm else "")
    # the counter of cycles that LLVM reads on Arm is the kernel's alone
    ticks = ('call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()' if is_arm
             else "call i64 @llvm.readcyclecounter()")
    declared = "declare void @llvm.x86.sse2.pause()" if is_x86 else ""
    return f'target triple = "{triple}"\n{declared}' + _CODE.replace("PAUSE", pause).replace(
        "TICKS_NOW", ticks)


def _pool(*names: str) -> str:
    """Loads of fields of %pool, each under its own name."""
    return "\n".join(load(PoolStruct, "pool", name, name) for name in names)


def _at(*names: str) -> str:
    """Addresses of fields of %pool: %name.at."""
    return "\n".join(place(PoolStruct, "pool", name, f"{name}.at") for name in names)


_CODE = f"""
%pool = type {type_of(PoolStruct)}
%worker = type {type_of(WorkerStruct)}
%part = type {type_of(PartStruct)}
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

define i64 @{TICKS}() {{
  %now = TICKS_NOW
  ret i64 %now
}}

; Wake workers from %first on that sleep, {WOKEN} at most.
define internal void @wake(ptr %pool, i64 %first) {{
entry:
{_pool("helpers", "workers", "release")}
  %last = add i64 %first, {WOKEN}
  %stop = call i64 @llvm.umin.i64(i64 %last, i64 %helpers)
  br label %each
each:
  %i = phi i64 [ %first, %entry ], [ %next, %awake ]
  %more = icmp ult i64 %i, %stop
  br i1 %more, label %look, label %done
look:
  %worker = getelementptr %worker, ptr %workers, i64 %i
{place(WorkerStruct, "worker", "asleep", "asleep.at")}
  %pair = cmpxchg ptr %asleep.at, i64 1, i64 0 seq_cst monotonic
  %slept = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %slept, label %release.it, label %awake
release.it:
{load(WorkerStruct, "worker", "lock", "lock")}
  call void %release(ptr %lock)
  br label %awake
awake:
  %next = add i64 %i, 1
  br label %each
done:
  ret void
}}

; Chunks of part %number, then of the others, until none is left; how many programs that were.
define internal i64 @work(ptr %pool, i64 %number) {{
entry:
{_pool("run", "arguments", "x", "y", "z", "chunk", "parts_count", "parts")}
{_at("status")}
  br label %each
each:
  %k = phi i64 [ 0, %entry ], [ %k.next, %empty ]
  %before = phi i64 [ 0, %entry ], [ %done, %empty ]
  %more = icmp ult i64 %k, %parts_count
  br i1 %more, label %choose, label %out
choose:
  %sum = add i64 %number, %k
  %index = urem i64 %sum, %parts_count
  %part = getelementptr %part, ptr %parts, i64 %index
{place(PartStruct, "part", "next", "next.at")}
{load(PartStruct, "part", "stop", "stop")}
  br label %take
take:
  %done = phi i64 [ %before, %choose ], [ %with.these, %ran ], [ %with.these, %stopped ]
  %first = atomicrmw add ptr %next.at, i64 %chunk monotonic
  %left = icmp slt i64 %first, %stop
  br i1 %left, label %run.chunk, label %empty
run.chunk:
  %end = add i64 %first, %chunk
  %limit = call i64 @llvm.umin.i64(i64 %end, i64 %stop)
  %result = call i32 %run(ptr %arguments, i64 %first, i64 %limit, i32 %x, i32 %y, i32 %z)
  %these = sub i64 %limit, %first
  %with.these = add i64 %done, %these
  br label %ran
ran:
  %failed = icmp ne i32 %result, 0
  br i1 %failed, label %fail, label %take
fail:
  %kept = cmpxchg ptr %status.at, i32 0, i32 %result monotonic monotonic
  br label %stop.part
stop.part:
  %p = phi i64 [ 0, %fail ], [ %p.next, %stop.part ]
  %other = getelementptr %part, ptr %parts, i64 %p
  store atomic i64 {_STOPPED}, ptr %other monotonic, align 8
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %parts_count
  br i1 %p.more, label %stop.part, label %stopped
stopped:
  br label %take
empty:
  %k.next = add i64 %k, 1
  br label %each
out:
  ret i64 %before
}}

; What a worker does for ever.
define void @{WORK}(ptr %pool, i64 %number) {{
entry:
{_at("generation", "state")}
{_pool("workers", "acquire", "idle")}
  %worker = getelementptr %worker, ptr %workers, i64 %number
{place(WorkerStruct, "worker", "asleep", "asleep.at")}
{load(WorkerStruct, "worker", "lock", "lock")}
  %first.child = add i64 %number, 1
  %child = mul i64 %first.child, {WOKEN}
  %part.number = add i64 %number, 1
  br label %wait
wait:
  %seen = phi i64 [ 0, %entry ], [ %new, %leave ], [ %new, %closed ]
  %begun = call i64 @{TICKS}()
  br label %look
look:
  %generation = load atomic i64, ptr %generation.at acquire, align 8
  %is.new = icmp ne i64 %generation, %seen
  br i1 %is.new, label %found, label %still
still:
  PAUSE
  %now = call i64 @{TICKS}()
  %waited = sub i64 %now, %begun
  %go.on = icmp ult i64 %waited, %idle
  br i1 %go.on, label %look, label %lie.down
lie.down:
  %was = atomicrmw xchg ptr %asleep.at, i64 1 seq_cst
  %again = load atomic i64, ptr %generation.at seq_cst, align 8
  %is.late = icmp ne i64 %again, %seen
  br i1 %is.late, label %get.up, label %sleep
get.up:
  %pair = cmpxchg ptr %asleep.at, i64 1, i64 0 seq_cst monotonic
  %is.up = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %is.up, label %found, label %sleep
sleep:
  %taken = call i32 %acquire(ptr %lock, i32 1)
  br label %found
found:
  %new = load atomic i64, ptr %generation.at acquire, align 8
  br label %join
join:
  %state = load atomic i64, ptr %state.at monotonic, align 8
  %open.bit = and i64 %state, {OPEN}
  %is.open = icmp ne i64 %open.bit, 0
  br i1 %is.open, label %try, label %closed
try:
  %joined = add i64 %state, 1
  %swap = cmpxchg ptr %state.at, i64 %state, i64 %joined acquire monotonic
  %swapped = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %swapped, label %in, label %join
in:
{_pool("helpers")}
  %is.wanted = icmp ult i64 %number, %helpers
  br i1 %is.wanted, label %begin, label %leave
begin:
  call void @wake(ptr %pool, i64 %child)
  %ran = call i64 @work(ptr %pool, i64 %part.number)
  br label %leave
leave:
  %left = atomicrmw sub ptr %state.at, i64 1 release
  br label %wait
closed:
  br label %wait
}}

; Programs of a launch on the calling thread; their cost is kept.
define internal i32 @alone(ptr %run, ptr %arguments, i64 %first, i64 %stop, i32 %x, i32 %y, i32 %z,
                           ptr %cost) {{
  %begun = call i64 @{TICKS}()
  %status = call i32 %run(ptr %arguments, i64 %first, i64 %stop, i32 %x, i32 %y, i32 %z)
  %now = call i64 @{TICKS}()
  %spent = sub i64 %now, %begun
  %programs = sub i64 %stop, %first
  call void @keep(ptr %cost, i64 %spent, i64 %programs)
  ret i32 %status
}}

; Keep what a program costs, never 0.  Others may have run all programs of a thread's part.
define internal void @keep(ptr %cost, i64 %spent, i64 %programs) {{
  %at.least = call i64 @llvm.umax.i64(i64 %spent, i64 1)
  %all = uitofp i64 %at.least to double
  %some = call i64 @llvm.umax.i64(i64 %programs, i64 1)
  %count = uitofp i64 %some to double
  %each = fdiv double %all, %count
  store atomic double %each, ptr %cost monotonic, align 8
  ret void
}}

; All programs of a launch; the first status that is not 0.
; cost: of a program of the kernel in ticks, 0 where it is not known.
define i32 @{SHARE}(ptr %pool, ptr %run, ptr %arguments, i64 %programs, i32 %x, i32 %y, i32 %z,
                    ptr %cost) {{
entry:
  %known = load atomic double, ptr %cost monotonic, align 8
  %is.known = fcmp ogt double %known, 0.0
  br i1 %is.known, label %estimate, label %sample
sample:
  %rounded = add i64 %programs, {FIRST_PART - 1}
  %part = udiv i64 %rounded, {FIRST_PART}
  %sampled = call i32 @alone(ptr %run, ptr %arguments, i64 0, i64 %part, i32 %x, i32 %y, i32 %z,
                             ptr %cost)
  %fine = icmp eq i32 %sampled, 0
  %rest = icmp ult i64 %part, %programs
  %go.on = and i1 %fine, %rest
  br i1 %go.on, label %estimate, label %failed
failed:
  ret i32 %sampled
estimate:
  %first = phi i64 [ 0, %entry ], [ %part, %sample ]
  %each = load atomic double, ptr %cost monotonic, align 8
  %left = sub i64 %programs, %first
  %left.float = uitofp i64 %left to double
  %whole = fmul double %each, %left.float
{_pool("worth")}
  %long = fcmp oge double %whole, %worth
  %several = icmp ugt i64 %left, 1
  %wanted = and i1 %long, %several
  br i1 %wanted, label %ask, label %run.alone
run.alone:
  %own = call i32 @alone(ptr %run, ptr %arguments, i64 %first, i64 %programs, i32 %x, i32 %y,
                         i32 %z, ptr %cost)
  ret i32 %own
ask:
{_pool("thread_state")}
  %thread = call ptr %thread_state()
  %is.strange = icmp eq ptr %thread, null
  br i1 %is.strange, label %run.alone, label %reserve
reserve:
{_at("busy")}
  %got = cmpxchg ptr %busy.at, i64 0, i64 1 acquire monotonic
  %is.mine = extractvalue {{ i64, i1 }} %got, 1
  br i1 %is.mine, label %check, label %run.alone
check:
{_at("started")}
  %before = load atomic i64, ptr %started.at monotonic, align 8
  %is.running = icmp ne i64 %before, 0
  br i1 %is.running, label %divide, label %begin
begin:
{_pool("start")}
  call void %start()
  br label %divide
divide:
  %workers.count = load atomic i64, ptr %started.at monotonic, align 8
  %shares.float = fdiv double %whole, %worth
  %shares = fptoui double %shares.float to i64
  %useful = call i64 @llvm.umin.i64(i64 %shares, i64 %workers.count)
  %others = sub i64 %left, 1
  %helpers = call i64 @llvm.umin.i64(i64 %useful, i64 %others)
  %has.helpers = icmp ne i64 %helpers, 0
  br i1 %has.helpers, label %publish, label %give.up
give.up:
  store atomic i64 0, ptr %busy.at release, align 8
  br label %run.alone
publish:
{_at("run", "arguments", "x", "y", "z", "status", "chunk", "parts_count", "helpers", "state",
     "generation")}
{_pool("parts")}
  store ptr %run, ptr %run.at
  store ptr %arguments, ptr %arguments.at
  store i32 %x, ptr %x.at
  store i32 %y, ptr %y.at
  store i32 %z, ptr %z.at
  store i32 0, ptr %status.at
  store i64 %helpers, ptr %helpers.at
  %threads = add i64 %helpers, 1
  store i64 %threads, ptr %parts_count.at
  %chunks = mul i64 %threads, {CHUNKS}
  %chunk.exact = udiv i64 %left, %chunks
  %chunk = call i64 @llvm.umax.i64(i64 %chunk.exact, i64 1)
  store i64 %chunk, ptr %chunk.at
  br label %cut
cut:
  %p = phi i64 [ 0, %publish ], [ %p.next, %cut ]
  %from = phi i64 [ %first, %publish ], [ %to, %cut ]
  %p.next = add i64 %p, 1
  %scaled = mul i64 %left, %p.next
  %share.of = udiv i64 %scaled, %threads
  %to = add i64 %first, %share.of
  %part.at = getelementptr %part, ptr %parts, i64 %p
  %stop.at = getelementptr %part, ptr %parts, i64 %p, i32 1
  store i64 %from, ptr %part.at
  store i64 %to, ptr %stop.at
  %p.more = icmp ult i64 %p.next, %threads
  br i1 %p.more, label %cut, label %open
open:
  store atomic i64 {OPEN}, ptr %state.at release, align 8
  %number = atomicrmw add ptr %generation.at, i64 1 seq_cst
  call void @wake(ptr %pool, i64 0)
  %begun = call i64 @{TICKS}()
  %ran = call i64 @work(ptr %pool, i64 0)
  %now = call i64 @{TICKS}()
  %spent = sub i64 %now, %begun
  call void @keep(ptr %cost, i64 %spent, i64 %ran)
  %was.open = atomicrmw and ptr %state.at, i64 {OPEN - 1} acq_rel
  br label %wait
wait:
  %looks = phi i64 [ 0, %open ], [ %looks.next, %again ]
  %amid = load atomic i64, ptr %state.at acquire, align 8
  %all.left = icmp eq i64 %amid, 0
  br i1 %all.left, label %over, label %still
still:
  PAUSE
  %looks.next = add i64 %looks, 1
  %is.long = icmp ugt i64 %looks, {_LOOKS}
  br i1 %is.long, label %let.others, label %again
let.others:
{_pool("give_way")}
  %given = call i32 %give_way()
  br label %again
again:
  br label %wait
over:
  %result = load i32, ptr %status.at
  store atomic i64 0, ptr %busy.at release, align 8
  ret i32 %result
}}
"""
