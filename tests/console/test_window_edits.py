from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from cilf.console import window_edits
from cilf.console.service import Conflict, Console, NotFound
from cilf.console.store import DONE, PENDING, RUNNING, Store, Update
from cilf.errors import BadInput

from .conftest import act, put_window


def upload(console: Console, *windows: int) -> Path:
    """Let windows show one uploaded file."""
    folder = console.store.folder / "uploads" / "abc"
    folder.mkdir(parents=True)
    (folder / "new.csv").write_text("x\n1\n")
    for window in windows:
        console.store.change_window(window, source=str(folder / "new.csv"))
    return folder


def test_a_window_is_renamed_by_one_person_at_a_time(console: Console) -> None:
    assert window_edits.rename_window(console, 1, " Monday ", seen="first").name == "Monday"
    with pytest.raises(Conflict, match="somebody else has renamed window 1"):
        window_edits.rename_window(console, 1, "Tuesday", seen="first")
    with pytest.raises(BadInput, match="name is blank"):
        window_edits.rename_window(console, 1, "  ")
    with pytest.raises(NotFound):
        window_edits.rename_window(console, 9, "Tuesday")


def test_archived_windows_are_shown_on_demand(client: TestClient, console: Console) -> None:
    second = put_window(console, "second")
    body = {"archived": True}
    assert client.put(f"/api/windows/{second}/archived", json=body).json()["archived"]
    assert [row["archived"] for row in client.get("/api/windows").json()] == [False, True]
    page = client.get("/").text
    assert "1 archived window<" in page
    assert page.index("1. first") < page.index("archived window") < page.index("2. second")
    assert client.get(f"/windows/{second}").status_code == 200
    for _ in range(2):
        client.put(f"/api/windows/{second}/archived", json={"archived": False})
    assert "archived window" not in client.get("/").text


def test_a_deleted_window_is_gone_with_its_files(client: TestClient, console: Console) -> None:
    second = put_window(console, "second")
    folder = upload(console, 1, second)
    act(console, 1, "name", clusters=[1], name="cow")
    assert client.post("/api/windows/1/delete", json={"seen": "first"}).status_code == 200
    assert not console.folder(1).exists()
    assert folder.exists()  # the other window shows it
    assert console.store.events(1) == []
    for path in ("/windows/1", "/api/windows/1", "/api/windows/1/clusters"):
        assert client.get(path).status_code == 404
    assert client.post("/api/windows/1/delete", json={}).status_code == 404
    window_edits.delete_window(console, second)
    assert not folder.exists()
    assert client.get("/").status_code == client.get("/stream").status_code == 200
    assert put_window(console, "third") == 3  # no number is used twice


def test_what_lies_elsewhere_is_not_removed(console: Console, tmp_path: Path) -> None:
    own = tmp_path / "photos"
    own.mkdir()
    console.store.change_window(1, source=str(own))
    window_edits.delete_window(console, 1)
    assert own.exists()


def test_a_killed_deletion_is_finished_later(
    console: Console, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = upload(console, 1)
    with monkeypatch.context() as patched:
        patched.setattr(window_edits, "finish_deletions", lambda _: None)
        window_edits.delete_window(console, 1)
    assert folder.exists()
    assert store.windows() == []
    window_edits.finish_deletions(store)
    assert not folder.exists()
    assert not console.folder(1).exists()
    assert [row.source for row in store.deleted_windows()] == [""]


def test_windows_that_cannot_be_deleted_now(console: Console, store: Store) -> None:
    with pytest.raises(Conflict, match="somebody else has renamed"):
        window_edits.delete_window(console, 1, seen="Monday")
    waiting, running = store.add_job("detect", 1), store.add_job("update", 1)
    store.change_job(running, status=RUNNING)
    with pytest.raises(Conflict, match="a job of window 1 is running"):
        window_edits.delete_window(console, 1)
    ended = store.job(waiting)
    assert ended is not None
    assert ended.problem == "the window was deleted."
    store.change_job(running, status=DONE)
    store.add_update(Update(running, 1, 2, 1, PENDING, {}))
    with pytest.raises(BadInput, match="waits for a decision"):
        window_edits.delete_window(console, 1)
    store.decide(running, "kept")
    window_edits.delete_window(console, 1)
    assert store.window(1) is None
