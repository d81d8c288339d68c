from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cilf.console import snapshot


def make_findings(X: np.ndarray, n_known: int) -> Any:
    n = len(X)
    assignments = SimpleNamespace(
        ids=np.arange(n).astype(str),
        label=np.full(n, "cat"),
        novelty=np.zeros(n, dtype=np.float32),
        cluster=np.where(np.arange(n) < n_known, -1, 0),
        source=np.where(np.arange(n) < 1, "person", "model"),
    )
    embedding = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    return SimpleNamespace(
        assignments=assignments, embedding=embedding, instances=lambda rows: X[rows]
    )


@pytest.mark.parametrize(
    ("X", "form"),
    [
        (np.array(["some text", "more"] * 6), "texts"),
        (np.random.default_rng(0).normal(size=(12, 5)), "strips"),
        (np.zeros((12, 8, 8), dtype=np.uint8), "images"),
    ],
)
def test_forms(tmp_path: Path, X: np.ndarray, form: str) -> None:
    gallery = snapshot.build_gallery(tmp_path, make_findings(X, n_known=6))
    assert gallery.form == form
    assert gallery.thumb(11)
    assert gallery.source[:2].tolist() == ["person", "model"]


def test_a_large_window_is_mapped_by_some_of_its_instances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MOST_MAPPED", 20)
    findings = make_findings(np.zeros((60, 4), dtype=np.float32), n_known=50)
    places = snapshot.build_gallery(tmp_path, findings).places
    assert places.shape == (60, 2)
    assert np.isfinite(places).all()
    assert 0 <= places.min() <= places.max() <= 1
