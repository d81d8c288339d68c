from __future__ import annotations

import os
from pathlib import Path

import pytest

from cilf.core import files
from cilf.core.files import describe_missing, make_folder, replace_file
from cilf.core.reading import restricted_reading
from cilf.errors import BadInput


def test_a_new_file_holds_the_content_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    replace_file(tmp_path / "a.bin", b"\x00new")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_an_old_file_is_replaced(tmp_path: Path) -> None:
    replace_file(tmp_path / "a.bin", b"something long")
    replace_file(tmp_path / "a.bin", b"short")
    assert (tmp_path / "a.bin").read_bytes() == b"short"


def fail(*args: object) -> None:
    raise OSError("disk full")


@pytest.mark.parametrize(("owner", "call"), [(os, "fsync"), (Path, "replace")])
def test_a_failure_leaves_the_old_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, call: str
) -> None:
    path = tmp_path / "a.bin"
    replace_file(path, b"old")
    with monkeypatch.context() as broken:
        broken.setattr(owner, call, fail)
        with pytest.raises(OSError, match="disk full"):
            replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    replace_file(path, b"newer")  # what the failure left behind is not in the way
    assert path.read_bytes() == b"newer"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_the_content_is_on_disk_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    sync, replace = os.fsync, Path.replace

    def watched_sync(descriptor: int) -> None:
        calls.append("sync")
        sync(descriptor)

    def watched_replace(self: Path, target: Path) -> Path:
        calls.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    replace_file(tmp_path / "a.bin", b"x")
    assert calls == ["sync", "replace", "sync"]  # the file, its new name, the folder


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"cannot make .*file/inside .*: name another folder"):
        make_folder(tmp_path / "file" / "inside")
    make_folder(tmp_path / "new" / "inside")
    make_folder(tmp_path / "new" / "inside")
    assert (tmp_path / "new" / "inside").is_dir()


@pytest.mark.parametrize("can_exchange", [True, False])
def test_folders_are_swapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    pending, place = tmp_path / ".a.pending", tmp_path / "a"
    for folder in (pending, place):
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    files.swap_folders(pending, place)
    assert (place / "name").read_text() == ".a.pending"
    assert (pending / "name").read_text() == "a"
    assert {path.name for path in tmp_path.iterdir()} == {".a.pending", "a"}


def test_a_folder_is_put_back_after_a_kill_in_a_swap(tmp_path: Path) -> None:
    pending, place = tmp_path / ".a.pending", tmp_path / "a"
    (tmp_path / ".a.former").mkdir()
    files.restore_folder(pending, place)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    files.restore_folder(pending, place)
    assert place.is_dir()


def test_what_is_missing_is_named_with_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    near = f"{tmp_path}/photso (did you mean {tmp_path}/photos?)"
    assert describe_missing(tmp_path / "photso") == f"there is no folder or file {near}"
    with restricted_reading([tmp_path / "photos"]):  # names beside it are not told
        missing = describe_missing(tmp_path / "photso", "folder")
    assert missing == f"there is no folder {tmp_path}/photso"
    assert describe_missing("") == "there is no folder or file without a name"
