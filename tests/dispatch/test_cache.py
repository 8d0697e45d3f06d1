"""The cache on disk, as a folder of files."""

import os
import time

import pytest

from blocknumba.dispatch.compile.cache import FORMAT, Cache

KEY = "0123456789abcdef"


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache", 10_000)


@pytest.fixture
def file(cache):
    """The file of one entry."""
    cache.save(KEY, b"content")
    (entry,) = cache.files()
    return entry.path


def test_what_was_saved_is_loaded(cache):
    assert cache.load(KEY) is None

    assert cache.save(KEY, b"content")

    assert cache.load(KEY) == b"content"


def test_saving_again_replaces(cache):
    cache.save(KEY, b"old")

    cache.save(KEY, b"new")

    assert cache.load(KEY) == b"new"
    assert len(cache.files()) == 1


def test_a_file_that_is_cut_off_anywhere_is_missing(cache, file):
    whole = file.read_bytes()

    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert cache.load(KEY) is None, length


def test_a_file_with_any_bit_flipped_is_missing(cache, file):
    whole = file.read_bytes()

    for index in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[index] ^= 1 << bit
            file.write_bytes(damaged)
            assert cache.load(KEY) is None, (index, bit)


def test_a_file_of_another_format_is_missing(cache, file):
    file.write_bytes(file.read_bytes().replace(FORMAT, FORMAT.replace(b"1", b"2")))

    assert cache.load(KEY) is None


def test_a_file_under_the_name_of_another_key_is_missing(cache, file):
    other = KEY[::-1]
    file.rename(file.with_name(file.name.replace(KEY, other)))

    assert cache.load(other) is None


def test_a_damaged_file_is_replaced(cache, file):
    file.write_bytes(b"garbage")

    cache.save(KEY, b"content")

    assert cache.load(KEY) == b"content"


@pytest.mark.parametrize("obstacle", ["a file in its place", "a file above it"])
def test_a_folder_that_cannot_be_made_means_no_cache(tmp_path, obstacle):
    blocked = tmp_path / "blocked"
    blocked.write_bytes(b"")
    cache = Cache(blocked if obstacle == "a file in its place" else blocked / "below", 1000)

    assert cache.save(KEY, b"content") is False
    assert cache.load(KEY) is None
    assert cache.files() == []
    assert cache.clear() == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_still_read(cache, file):
    cache.folder.chmod(0o500)
    try:
        assert cache.save("other", b"content") is False
        assert cache.load(KEY) == b"content"
    finally:
        cache.folder.chmod(0o700)


def test_a_write_that_fails_leaves_nothing_behind(cache, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, "replace", refuse)

    assert cache.save(KEY, b"content") is False

    assert list(cache.folder.iterdir()) == []


def test_the_least_recently_used_entries_go_first(cache):
    now = time.time()
    for age, key in enumerate(("new", "middle", "old", "oldest")):
        cache.save(key, b"x" * 2000)
        os.utime(cache.folder / f"{key}.kernel", (now - 100 * age - 100,) * 2)
    cache.load("oldest")  # now it is the youngest

    cache.save("large", b"x" * 3500)

    assert {key for key in ("large", "new", "middle", "old", "oldest") if cache.load(key)} == {
        "large", "oldest", "new"}


def test_an_entry_larger_than_the_limit_replaces_all_others(cache):
    cache.save("small", b"x")

    cache.save("large", b"x" * 20_000)

    assert cache.load("large") is not None
    assert cache.load("small") is None


def test_files_that_a_dead_process_left_are_removed_when_room_is_made(cache):
    cache.save(KEY, b"content")
    left, young = cache.folder / "a.unfinished", cache.folder / "b.unfinished"
    for file in (left, young):
        file.write_bytes(b"")
    os.utime(left, (1, 1))

    cache.save("large", b"x" * 20_000)

    assert not left.exists()
    assert young.exists()


def test_clearing_removes_all_entries_and_nothing_else(cache):
    for key in "abc":
        cache.save(key, b"content")
    foreign = cache.folder / "readme.txt"
    foreign.write_text("mine")

    assert cache.clear() == 3

    assert list(cache.folder.iterdir()) == [foreign]
