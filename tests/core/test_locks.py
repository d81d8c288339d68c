from __future__ import annotations

import os
from pathlib import Path

import pytest

from cilf.core import locks
from cilf.core.locks import hold_lock
from cilf.errors import BadInput


def test_the_second_one_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    file = tmp_path / "new" / "lock"
    with hold_lock(file, tmp_path):
        holder = rf"another command is changing .* \(process {os.getpid()} on .*, since 20.* UTC\)"
        with pytest.raises(BadInput, match=holder), hold_lock(file, tmp_path):
            pass
    with hold_lock(file, tmp_path):
        pass
    assert file.exists()


def test_a_lock_that_is_removed_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with pytest.raises(ZeroDivisionError), hold_lock(file, tmp_path, remove=True):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_its_holder_removes_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for a removed file would hold a lock that nobody else sees."""
    file, lock, calls = tmp_path / "lock", locks._lock, []

    def remove_and_lock(opened: object, folder: Path) -> None:
        if not calls:
            file.unlink()
        calls.append(opened)
        lock(opened, folder)  # type: ignore[arg-type]

    monkeypatch.setattr(locks, "_lock", remove_and_lock)
    with hold_lock(file, tmp_path):
        monkeypatch.undo()
        assert len(calls) == 2
        with pytest.raises(BadInput, match="another command"), hold_lock(file, tmp_path):
            pass
