from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cilf.core.cache import cache_folder, cached_folder, digest, fingerprint
from cilf.errors import BadInput


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CILF_CACHE", str(tmp_path / "cache"))


def test_the_folder_is_the_named_one_or_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("CILF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "cilf"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "cilf"


def test_a_key_is_made_once() -> None:
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "answer").write_text("42")

    first = cached_folder("kind", {"a": 1}, make)
    assert cached_folder("kind", {"a": 1}, make) == first
    assert len(made) == 1
    assert (first / "answer").read_text() == "42"
    assert cached_folder("kind", {"a": 2}, make) != first
    assert cached_folder("other", {"a": 1}, make) != first


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError):
        cached_folder("kind", {}, fail)
    assert list((tmp_path / "cache" / "kind").iterdir()) == []


def test_the_faster_of_two_processes_wins() -> None:
    def overtaken(folder: Path) -> None:
        cached_folder("kind", {}, lambda inner: _write(inner, "first"))
        _write(folder, "second")

    assert (cached_folder("kind", {}, overtaken) / "who").read_text() == "first"


def _write(folder: Path, text: str) -> None:
    (folder / "who").write_text(text)


def test_digests_depend_on_values_only() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})


def test_a_fingerprint_follows_name_size_and_time(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    before = fingerprint([file])
    assert fingerprint([file]) == before
    os.utime(file, ns=(0, 1))
    changed = fingerprint([file])
    assert changed != before
    file.write_text("longer")
    os.utime(file, ns=(0, 1))
    assert fingerprint([file]) != changed
    assert fingerprint([]) != before


def test_a_cache_that_cannot_be_written_is_named_with_the_remedy() -> None:
    def fail(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BadInput, match=r"cannot write to the cache .*No space.*set CILF_CACHE to"):
        cached_folder("kind", {}, fail)


def test_what_killed_processes_left_is_swept_but_not_what_others_make(tmp_path: Path) -> None:
    kind = tmp_path / "cache" / "kind"
    old, new = kind / "pending-old", kind / "pending-new"
    for folder in (old, new):
        (folder / "made").mkdir(parents=True)
    os.utime(old, (0, 0))
    cached_folder("kind", {}, lambda folder: None)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_fingerprint_sees_another_content_of_the_same_size_and_time(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    os.utime(file, ns=(0, 1))
    before = fingerprint([file])
    status = file.stat()
    while file.stat().st_ctime_ns == status.st_ctime_ns:  # the clock of some file systems is coarse
        file.write_text("two")
        os.utime(file, ns=(0, 1))
    assert fingerprint([file]) != before


def test_a_fingerprint_tells_equal_relative_names_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a" / "file").write_text("one")
    (tmp_path / "b" / "file").hardlink_to(tmp_path / "a" / "file")  # all but the place is equal
    for folder in ("a", "b"):
        monkeypatch.chdir(tmp_path / folder)
        found.append(fingerprint([Path("file")]))
    assert found[0] != found[1]


@pytest.mark.parametrize("taken", ["cache", "cache/kind"])
def test_a_file_where_the_cache_should_be_is_named_with_the_remedy(
    tmp_path: Path, taken: str
) -> None:
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("")
    with pytest.raises(BadInput, match=r"cannot write to the cache .*set CILF_CACHE to"):
        cached_folder("kind", {}, lambda folder: None)
