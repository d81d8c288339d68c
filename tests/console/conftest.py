"""A store with a window of two clusters without names, made without a model."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("fastapi")
pytest.importorskip("PIL")
pytest.importorskip("uvicorn")

from fastapi.testclient import TestClient

from cilf.console import window_view
from cilf.console.app import make_app
from cilf.console.gallery import encode_png, write_gallery
from cilf.console.guard import Access
from cilf.console.service import MEMORY, Console
from cilf.console.store import DONE, Event, Store
from cilf.console.verbs import VERBS

from .servers import missing_postgres, postgres

PLACES = {"cat": (0.0, 0.0), "dog": (9.0, 0.0), "cow": (0.0, 9.0), "hen": (9.0, 9.0)}
COWS, HENS = 1, 2  # clusters
URL = "http://127.0.0.1:8377"
SIZES = {"cat": 20, "dog": 10, "cow": 12, "hen": 8}


def put_window(
    console: Console,
    title: str = "first",
    seed: int = 0,
    n: int = 1,
    source: Path | None = None,
    stack: dict[int, int] | None = None,
) -> int:
    """Add a window with cats and dogs, which are known, and cows and hens, which are not.

    Args:
        source: a folder for the files of the instances, larger than their thumbnails.
        stack: row -> the row that it is a near-duplicate of.
    """
    rng = np.random.default_rng(seed)
    classes = [name for name, size in SIZES.items() for _ in range(size * n)]
    embedding = np.array([rng.normal(PLACES[name], 0.5) for name in classes], dtype=np.float32)
    pictures = rng.integers(0, 255, (len(classes), 8, 8), dtype=np.uint8)
    number = console.store.add_window(title, str(source or "nowhere"), budget=10)
    ids = [f"{name}-{i}" for i, name in enumerate(classes)]
    if source is not None:
        ids = [f"{one}.png" for one in ids]
        for one, picture in zip(ids, pictures, strict=True):
            (source / one).write_bytes(encode_png(np.kron(picture, np.ones((12, 12), np.uint8))))
    stacks = np.arange(len(ids))
    for row, first in (stack or {}).items():
        stacks[row] = first
    put_known(console)
    write_gallery(
        console.folder(number),
        ids=np.array(ids),
        label=np.array([name if name in ("cat", "dog") else "dog" for name in classes]),
        novelty=np.linspace(0, 1, len(classes)).astype(np.float32),
        cluster=np.array([{"cow": 0, "hen": 1}.get(name, -1) for name in classes]),
        embedding=embedding,
        places=((embedding + 2) / 13).astype(np.float32),
        form="images",
        thumbs=[encode_png(picture) for picture in pictures],
        stack=stacks,
    )
    facts = {
        "n": len(classes),
        "n_novel": (SIZES["cow"] + SIZES["hen"]) * n,
        "n_clusters": 2,
        "known": {"cat": SIZES["cat"] * n, "dog": SIZES["dog"] * n},
        "version": 1,
        "memory": "kept-1",
        "drift": {},
        "seconds": 1.0,
    }
    console.store.change_window(number, status=DONE, facts=facts)
    return number


def put_known(console: Console) -> None:
    """Write what the model keeps: three cats and two dogs."""
    kept = ["cat"] * 3 + ["dog"] * 2
    rng = np.random.default_rng(1)
    write_gallery(
        console.store.folder / MEMORY / "kept-1",
        ids=np.array([f"kept {row}" for row in range(len(kept))]),
        label=np.array(kept),
        novelty=np.zeros(len(kept), dtype=np.float32),
        cluster=np.full(len(kept), -1),
        embedding=np.array([rng.normal(PLACES[name], 0.5) for name in kept], dtype=np.float32),
        places=np.zeros((len(kept), 2), dtype=np.float32),
        form="images",
        thumbs=[encode_png(rng.integers(0, 255, (8, 8), dtype=np.uint8)) for _ in kept],
    )


def act(console: Console, window: int, verb: str, **fields: Any) -> Event:
    """Use a verb as a request does."""
    return console.act(window, verb, VERBS[verb].body(**fields))


def put_model(store: Store) -> None:
    fit = {"event": "fit", "version": 1, "before": None, "time": "2026-01-01T00:00:00+00:00"}
    fit |= {"labels": {"cat": 30, "dog": 30}, "new_classes": ["cat", "dog"], "data": "zoo"}
    store.put_fact(
        "model",
        {
            "version": 1,
            "classes": ["cat", "dog"],
            "sizes": {name: {"since": 1, "n_labels": 30} for name in ("cat", "dog")},
            "events": [fit],
            "learner": "cilf",
            "shape": [8, 8],
        },
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path)
    put_model(made)
    yield made
    made.close()


@pytest.fixture
def console(store: Store) -> Console:
    """A model of cats and dogs, and window 1."""
    made = Console(store, store.folder / "model")
    put_window(made)
    return made


@pytest.fixture
def client(console: Console) -> Iterator[TestClient]:
    with TestClient(make_app(console, Access()), base_url=URL) as made:
        yield made


def restart(console: Console) -> Console:
    """The console of another process on the same store."""
    return Console(console.store, console.model_path)


Clusters = dict[int, tuple[str | None, str, int]]  # number -> name, status, size


def list_clusters(console: Console, window: int = 1) -> Clusters:
    found = window_view.list_clusters(console, window)
    return {one["cluster"]: (one["name"], one["status"], one["size"]) for one in found}


def get_clusters(client: TestClient) -> Clusters:
    """The clusters of window 1 by REST."""
    found = client.get("/api/windows/1/clusters").json()["clusters"]
    return {one["cluster"]: (one["name"], one["status"], one["size"]) for one in found}


def post(client: TestClient, verb: str, status: int = 200, **body: Any) -> Any:
    """Use a verb on window 1 by REST."""
    answer = client.post(f"/api/windows/1/{verb}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


# ----------------------------------------------------------------- PostgreSQL


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL database that all tests share."""
    pytest.importorskip("psycopg")
    reason = missing_postgres()
    if reason is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="cilf-postgres-") as folder:
        Path(folder).chmod(0o755)  # another user starts it
        with postgres(Path(folder) / "server") as url:
            yield url


@pytest.fixture
def new_database(postgres_url: str) -> str:
    """The URL of an empty PostgreSQL database."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres_url.replace("/postgres", f"/{name}")
