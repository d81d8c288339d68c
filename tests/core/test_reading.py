from __future__ import annotations

import os
from pathlib import Path

import pytest

from cilf.core import reading
from cilf.core.reading import OUTSIDE, is_readable, open_file, restricted_reading


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "own.txt").symlink_to(folder / "a.txt")
    return folder


def test_without_a_restriction_every_regular_file_is_opened(inside: Path) -> None:
    with open_file(inside / "link.txt") as file:
        assert file.read() == b"secret"
    assert not is_readable(inside)
    assert not is_readable(inside / "missing.txt")
    assert not is_readable(Path("a\0b"))


@pytest.mark.parametrize("name", ["link.txt", "../secret.txt", "../inside/../secret.txt"])
def test_a_restriction_holds_for_what_a_path_leads_to(inside: Path, name: str) -> None:
    with restricted_reading([inside]):
        with pytest.raises(PermissionError, match=OUTSIDE):
            open_file(inside / name)
        for allowed in ("a.txt", "own.txt", "../inside/a.txt"):
            assert is_readable(inside / allowed)
    assert is_readable(inside / name)


def test_nothing_is_inside_of_no_folder(inside: Path) -> None:
    with restricted_reading([]):
        assert not is_readable(inside / "a.txt")


@pytest.mark.skipif(not reading.DESCRIPTORS.is_dir(), reason="this system does not list open files")
def test_a_path_that_changes_before_it_is_opened(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is resolved to a file inside, and is a link to another one a moment later."""
    swapped, real = inside / "swapped.txt", os.open

    def swap_and_open(path: Path, flags: int) -> int:
        swapped.symlink_to(inside.parent / "secret.txt")
        return real(path, flags)

    monkeypatch.setattr(reading.os, "open", swap_and_open)
    with restricted_reading([inside]), pytest.raises(PermissionError, match=OUTSIDE):
        open_file(swapped)


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_file(tmp_path / "pipe")
