from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from cilf.console import uploads
from cilf.console.gallery import encode_png
from cilf.console.store import Store


def picture(side: int = 8) -> bytes:
    return encode_png(np.zeros((side, side), np.uint8))


def packed(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return content.getvalue()


def upload(client: TestClient, *files: tuple[str, bytes]) -> Any:
    return client.post("/api/windows/upload", files=[("files", file) for file in files])


def kept(store: Store) -> set[str]:
    return {path.name for path in (store.folder / "uploads").rglob("*") if path.is_file()}


def test_images_are_kept_under_safe_names(client: TestClient, store: Store) -> None:
    answer = upload(
        client, ("../../a.png", picture()), ("C:\\b\\a.png", picture()), (".hidden.png", picture())
    )
    assert answer.status_code == 201, answer.text
    assert kept(store) == {"a.png", "a-2.png", "hidden.png"}
    assert answer.json()["status"] == "queued"


def test_long_and_odd_names(client: TestClient, store: Store) -> None:
    for name in ("鳥" * 100 + ".png", "a" * 1000 + ".png", "x\x00\x1by.png", "\u202e\u200b.z.png"):
        file = (name, picture())
        answer = client.post("/api/windows/upload", files=[("files", file)])
        assert answer.status_code == 201, answer.text
        assert answer.json()["name"].isprintable()
    assert all(len(name.encode()) < 255 for name in kept(store))


def test_more_files_than_forms_usually_have(client: TestClient, store: Store) -> None:
    content = picture()
    answer = upload(client, *((f"{number}.png", content) for number in range(1200)))
    assert answer.status_code == 201, answer.text
    assert len(kept(store)) == 1200


def test_more_files_than_an_upload_may_have(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MAX_FILES", 3)
    answer = upload(client, *((f"{number}.png", picture()) for number in range(4)))
    assert answer.status_code == 413
    assert "4 are more than 3" in answer.json()["detail"]
    assert kept(store) == set()


def test_many_files_of_one_name(client: TestClient, store: Store) -> None:
    packed_files = packed({f"{i}/a.png": picture() for i in range(300)})
    assert upload(client, ("some.zip", packed_files)).status_code == 201
    assert kept(store) == {"a.png"} | {f"a-{i}.png" for i in range(2, 301)}


def test_a_link_in_a_zip_is_no_image(client: TestClient, store: Store) -> None:
    link = zipfile.ZipInfo("evil.png")
    link.external_attr = 0o120777 << 16
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr(link, "/etc/passwd")
    assert upload(client, ("link.zip", content.getvalue())).status_code == 400
    assert kept(store) == set()


def test_images_in_a_parquet_table(client: TestClient, store: Store) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def table(rows: list[dict[str, Any]]) -> bytes:
        content = io.BytesIO()
        parquet.write_table(arrow.Table.from_pylist([{"image": row} for row in rows]), content)
        return content.getvalue()

    good = table([{"bytes": picture(), "path": "a.png"}])
    assert upload(client, ("rows.parquet", good)).status_code == 201
    evil = table([{"bytes": picture(), "path": "a.png"}, {"bytes": None, "path": "/etc/x.png"}])
    assert upload(client, ("evil.parquet", evil)).status_code == 400
    assert kept(store) == {"rows.parquet"}


def test_a_zip_gives_its_images_only(client: TestClient, store: Store) -> None:
    files = {
        "../../../tmp/evil.png": picture(),
        "/etc/abs.png": picture(),
        "deep/in/side.PNG": picture(),
        "__MACOSX/._a.png": b"x",
        "notes.txt": b"hello",
        "run.sh": b"#!/bin/sh",
    }
    answer = upload(client, ("some.zip", packed(files)))
    assert answer.status_code == 201, answer.text
    assert kept(store) == {"evil.png", "abs.png", "side.PNG"}


def bomb() -> bytes:
    return packed({"a.png": b"\0" * (30 << 20)})


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("evil.py", b"print()", 400),
        ("evil.pkl", b"\x80\x04.", 400),
        ("evil.svg", b"<svg onload='alert(1)'/>", 400),
        ("no-picture.png", b"GIF89a-not", 400),
        ("text.png", b"#!/bin/sh", 400),
        (".png", picture(), 400),
        ("broken.zip", b"PK\x03\x04", 400),
        ("empty.zip", packed({}), 400),
        ("inside.zip", packed({"a.png": b"not a picture"}), 400),
        ("bomb.zip", bomb(), 413),
        ("large.png", encode_png(np.zeros((2100, 2100), np.uint8)), 413),
        ("paths.csv", b"image\n/etc/secret.png\n", 400),
        ("paths.jsonl", b'{"image": "../secret.png"}\n', 400),
        ("slash.csv", b"image\n/etc/secret.png/\n", 400),
        ("dot.jsonl", b'{"image": "/etc/secret.png/."}\n', 400),
        ("bad.csv", b"\xff\xfe\x00", 400),
        ("bad.jsonl", b"{", 400),
        ("bad.parquet", b"PAR1", 400),
        ("bad.npz", b"PK", 400),
        ("bomb.npz", bomb(), 413),
    ],
)
def test_files_that_are_refused_leave_nothing(
    client: TestClient,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: bytes,
    status: int,
) -> None:
    monkeypatch.setattr(uploads, "MAX_UNPACKED", 20 << 20)
    monkeypatch.setattr(uploads, "MAX_PIXELS", 4_000_000)
    answer = upload(client, (name, content))
    assert answer.status_code == status, answer.text
    assert kept(store) == set()
    assert len(client.get("/api/windows").json()) == 1


def test_a_zip_that_lies_about_its_sizes(client: TestClient, store: Store) -> None:
    content = bytearray(packed({"a.png": b"\0" * 100_000}))
    real = (100_000).to_bytes(4, "little")
    lie = (10).to_bytes(4, "little")
    assert upload(client, ("lie.zip", bytes(content).replace(real, lie))).status_code in (400, 413)
    assert kept(store) == set()


def test_tables_are_kept(client: TestClient, store: Store) -> None:
    assert upload(client, ("rows.csv", b"x,y\n1,2\n3,4\n")).status_code == 201
    assert kept(store) == {"rows.csv"}
    two = upload(client, ("rows.csv", b"x,y\n1,2\n"), ("a.png", picture()))
    assert two.status_code == 400


def test_labelled_uploads_keep_their_class_folders(client: TestClient, store: Store) -> None:
    store.put_fact("model", {"version": None, "events": []})
    files = {f"zoo/{name}/{i}.png": picture() for name in ("cat", "dog & co") for i in range(2)}
    files |= {"zoo/../../../etc/a.png": picture(), "__MACOSX/zoo/cat/._0.png": b"junk"}
    sent = [("files", ("zoo.zip", packed(files)))]
    answer = client.post(
        "/api/model/fit/upload",
        files=sent,
        data={"learner": "iforest", "seed": "3", "backbone": ""},
    )
    assert answer.status_code == 202, answer.text
    (job,) = store.jobs()
    assert (job.about["learner"], job.about["seed"]) == ("iforest", 3)
    folder = Path(job.about["data"])
    assert folder.is_relative_to(store.folder / "uploads")
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*.png")}
    assert {"cat/0.png", "dog _ co/1.png"} <= found
    assert all(".." not in path for path in found)


def test_a_single_folder_above_the_classes_is_skipped(tmp_path: Path) -> None:
    files = packed({f"zoo/train/{name}/a.png": picture() for name in ("cat", "dog")})
    sent = [("zoo.zip", io.BytesIO(files))]
    folder = uploads.save(sent, tmp_path / "up", keeps_folders=True)
    assert folder == tmp_path / "up" / "zoo" / "train"
