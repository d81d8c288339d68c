"""A store with a window of two kinds that nobody has named, made without a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("fastapi")
pytest.importorskip("PIL")

from cilf.console.gallery import png, write_gallery
from cilf.console.service import Console
from cilf.console.store import DONE, Store

PLACES = {"cat": (0.0, 0.0), "dog": (9.0, 0.0), "cow": (0.0, 9.0), "hen": (9.0, 9.0)}
SIZES = {"cat": 20, "dog": 10, "cow": 12, "hen": 8}


def put_window(console: Console, name: str = "first", seed: int = 0, n: int = 1) -> int:
    """A window with cats and dogs, which are known, and cows and hens, which are not."""
    rng = np.random.default_rng(seed)
    kinds = [kind for kind, size in SIZES.items() for _ in range(size * n)]
    embedding = np.array([rng.normal(PLACES[kind], 0.5) for kind in kinds], dtype=np.float32)
    pictures = rng.integers(0, 255, (len(kinds), 8, 8), dtype=np.uint8)
    number = console.store.add_window(name, "nowhere", budget=10)
    write_gallery(
        console.folder(number),
        ids=np.array([f"{kind}-{i}" for i, kind in enumerate(kinds)]),
        label=np.array([kind if kind in ("cat", "dog") else "dog" for kind in kinds]),
        novelty=np.linspace(0, 1, len(kinds)).astype(np.float32),
        cluster=np.array([{"cow": 0, "hen": 1}.get(kind, -1) for kind in kinds]),
        embedding=embedding,
        places=((embedding + 2) / 13).astype(np.float32),
        form="images",
        thumbs=[png(picture) for picture in pictures],
    )
    facts = {
        "n": len(kinds),
        "n_novel": (SIZES["cow"] + SIZES["hen"]) * n,
        "kinds": 2,
        "known": {"cat": SIZES["cat"] * n, "dog": SIZES["dog"] * n},
        "version": 1,
        "drift": {},
        "seconds": 1.0,
    }
    console.store.change_window(number, status=DONE, facts=facts)
    return number


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
