"""Accesses of two programs that nothing orders are found; those that atomics order are not."""

import numpy as np
import pytest

import blocknumba as bn
from blocknumba.errors import RaceError

N = 12


def run(kernel, *arguments, grid=N, **constants):
    """Run in debug; the arrays, changed."""
    kernel[grid](*arguments, **constants, debug=True, interpret=True)
    return arguments


def ints(size):
    return np.zeros(size, np.int32)


@bn.jit
def locked(lock, x, ACQUIRE: bn.constexpr, RELEASE: bn.constexpr, SCOPE: bn.constexpr):
    while bn.atomic_cas(lock, 0, 1, sem=ACQUIRE, scope=SCOPE) != 0:
        pass
    r = bn.span(0, 8)
    x[r] = x[r] + 1
    bn.atomic_xchg(lock, 0, sem=RELEASE, scope=SCOPE)


@pytest.mark.parametrize("acquire, release", [("acq_rel", "acq_rel"), ("acquire", "release")])
@pytest.mark.parametrize("scope", ["gpu", "sys"])
def test_a_lock_orders_what_it_guards(acquire, release, scope):
    _, x = run(locked, ints(1), ints(8), ACQUIRE=acquire, RELEASE=release, SCOPE=scope)

    assert x.tolist() == [N] * 8


@pytest.mark.parametrize("acquire, release, scope", [
    ("relaxed", "release", "gpu"), ("acquire", "relaxed", "gpu"), ("release", "acquire", "gpu"),
    ("acq_rel", "acq_rel", "cta")])
def test_a_lock_that_does_not_acquire_or_release_is_a_race(acquire, release, scope):
    with pytest.raises(RaceError, match="nothing orders the two"):
        run(locked, ints(1), ints(8), ACQUIRE=acquire, RELEASE=release, SCOPE=scope)


@bn.jit
def locked_by_a_store(lock, x):
    while bn.atomic_cas(lock, 0, 1) != 0:
        pass
    x[0] = x[0] + 1
    lock[0] = 0


def test_a_lock_that_a_plain_store_opens_is_a_race():
    with pytest.raises(RaceError, match=r"atomic_cas: program \(1, 0, 0\) updates element \(0,\) "
                                        r"of lock, which program \(0, 0, 0\) writes in line \d+"):
        run(locked_by_a_store, ints(1), ints(1))


@bn.jit
def relay(flags, x, SEM: bn.constexpr, VOLATILE: bn.constexpr):
    i = bn.program_id(0)
    total = 1
    if i > 0:
        if VOLATILE:
            while bn.load(flags.at[i - 1], volatile=True) == 0:
                pass
        else:
            while bn.atomic_or(flags.at[i - 1], 0, sem=SEM) == 0:
                pass
        total = x[i - 1] + 1
    x[i] = total
    bn.atomic_xchg(flags.at[i], 1, sem="release")


def test_a_flag_that_is_released_and_acquired_publishes_what_was_written():
    _, x = run(relay, ints(N), ints(N), SEM="acquire", VOLATILE=False)

    assert x.tolist() == list(range(1, N + 1))


@pytest.mark.parametrize("sem, volatile", [("relaxed", False), ("acquire", True)])
def test_a_flag_that_is_only_seen_orders_nothing(sem, volatile):
    with pytest.raises(RaceError, match=r"load: program \(1, 0, 0\) reads element \(0,\) of x"):
        run(relay, ints(N), ints(N), SEM=sem, VOLATILE=volatile)


@bn.jit
def last_adds(count, partial, out, SEM: bn.constexpr):
    i = bn.program_id(0)
    partial[i] = i
    if bn.atomic_add(count, 1, sem=SEM) == bn.num_programs(0) - 1:
        out[0] = bn.sum(partial[bn.span(0, 16)])


def test_the_last_program_may_read_what_all_wrote_before_they_took_a_ticket():
    *_, out = run(last_adds, ints(1), ints(16), ints(1), SEM="acq_rel")

    assert out[0] == sum(range(N))


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release"])
def test_tickets_must_acquire_and_release(sem):
    with pytest.raises(RaceError, match="reads element .* of partial, which program .* writes"):
        run(last_adds, ints(1), ints(16), ints(1), SEM=sem)


@bn.jit
def transitive(flags, x):
    """Program 0 tells 1, and 1 tells 2, who reads what 0 wrote."""
    i = bn.program_id(0)
    if i == 0:
        x[0] = 7
    else:
        while bn.atomic_or(flags.at[i - 1], 0, sem="acquire") == 0:
            pass
    if i == 2:
        x[1] = x[0]
    bn.atomic_xchg(flags.at[i], 1, sem="release")


def test_order_is_transitive():
    _, x = run(transitive, ints(3), ints(2), grid=3)

    assert x.tolist() == [7, 7]


@bn.jit
def shifted(x, y):
    r = bn.block(0, 4)
    y[r] = x[r + 1]


def test_a_read_that_races_with_a_store_is_found_through_two_arguments_too():
    x = np.arange(16, dtype=np.int32)
    run(shifted, x, ints(16), grid=4)

    with pytest.raises(RaceError) as caught:
        run(shifted, x, x, grid=4)

    line = shifted.python_function.__code__.co_firstlineno
    assert caught.value.message == (
        "store: program (1, 0, 0) writes element (4,) of y, which program (0, 0, 0) reads in line "
        f"{line + 3}; nothing orders the two")
    assert caught.value.loc.line == line + 3


@bn.jit
def copied(x, y):
    r = bn.block(0, 4)
    y[r] = x[r]


@pytest.mark.parametrize("distance, races", [(0, False), (1, True), (4, True), (16, False)])
def test_parts_of_one_array_may_overlap(distance, races):
    memory = np.arange(32, dtype=np.int32)
    x, y = memory[:16], memory[distance:distance + 16]
    if not races:
        run(copied, x, y, grid=4)
        return
    with pytest.raises(RaceError, match=r"of [xy], which program .* (reads|writes)"):
        run(copied, x, y, grid=4)


def test_elements_of_other_sizes_may_overlap():
    memory = np.zeros(64, np.int64)
    with pytest.raises(RaceError):
        run(copied, memory.view(np.int32)[:16], memory[2:18], grid=4)


@bn.jit
def counted(x, total, how: bn.constexpr):
    bn.atomic_add(total, 1, sem="relaxed")
    if how == "load":
        x[bn.program_id(0)] = total[0]
    elif how == "volatile":
        x[bn.program_id(0)] = bn.load(total, volatile=True)
    elif how == "atomic":
        x[bn.program_id(0)] = bn.atomic_max(total, 0, sem="relaxed")
    elif how == "store":
        total[0] = 3


@pytest.mark.parametrize("how", ["nothing", "volatile", "atomic"])
def test_atomics_and_volatile_loads_do_not_race_with_each_other(how):
    _, total = run(counted, ints(N), ints(1), how=how)

    assert total[0] == N


@pytest.mark.parametrize("how", ["load", "store"])
def test_plain_accesses_race_with_atomics(how):
    with pytest.raises(RaceError, match="of total, which program .* updates in line"):
        run(counted, ints(N), ints(1), how=how)


@bn.jit
def same_value(x, y):
    i = bn.program_id(0)
    y[i] = x[0]
    x[i] = x[i]


def test_a_program_may_read_and_write_what_is_its_own():
    run(same_value, ints(1), ints(1), grid=1)
    with pytest.raises(RaceError, match=r"element \(0,\) of x, which program \([12], 0, 0\) reads"):
        run(same_value, ints(4), ints(4), grid=3)


@bn.jit
def masked(x, n):
    r = bn.span(0, 8)
    bn.store(x.at[r], 1, mask=(r.index % n) == bn.program_id(0))


def test_elements_that_masks_leave_out_do_not_race():
    x, _ = run(masked, ints(8), 4, grid=4)

    assert x.tolist() == [1] * 8
