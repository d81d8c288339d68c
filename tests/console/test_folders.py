from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from cilf.console.folders import list_folder
from cilf.console.service import Console
from cilf.errors import BadInput

from .conftest import put_window


@pytest.fixture
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in ("monday/a.png", "monday/b.jpg", "known/cat/c.png", ".hidden/d.png", "notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (folder / "rows.csv").touch()
    (folder / "e.png").touch()
    return folder


def test_folders_and_tables_are_listed(console: Console, data: Path) -> None:
    listed = list_folder(console, str(data))
    assert [(one["name"], one["n_images"], one["n_folders"]) for one in listed["folders"]] == [
        ("known", 0, 1),
        ("monday", 2, 0),
    ]
    assert [one["name"] for one in listed["files"]] == ["rows.csv"]
    assert (listed["n_images"], listed["parent"]) == (1, str(data.parent))


def test_only_what_may_be_read_is_listed(console: Console, data: Path) -> None:
    console.roots = [data]
    (data / "out").symlink_to(data.parent)
    listed = list_folder(console)
    assert listed["path"] == str(data)
    assert listed["parent"] is None
    assert "out" not in [one["name"] for one in listed["folders"]]
    for path in (str(data.parent), str(data / "out"), str(data / ".." / "..")):
        with pytest.raises(BadInput, match="outside"):
            list_folder(console, path)
    with pytest.raises(BadInput, match="is a file"):
        list_folder(console, str(data / "rows.csv"))


def test_several_roots_are_where_one_starts(console: Console, data: Path) -> None:
    console.roots = [data / "monday", data / "known"]
    assert [one["path"] for one in list_folder(console)["folders"]] == [
        str(data / "monday"),
        str(data / "known"),
    ]


def test_one_starts_beside_the_last_window(
    client: TestClient, console: Console, data: Path
) -> None:
    put_window(console, source=data / "monday")
    listed = client.get("/api/folders").json()
    assert listed["path"] == str(data)
    assert client.get("/api/folders?path=/nowhere/at/all").status_code == 400
