from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cilf.console import snapshot
from cilf.learners.base import Remembered
from cilf.learners.iforest import IForest

EMBEDDER: Any = SimpleNamespace(embed=lambda X: np.arange(2.0 * len(X)).reshape(-1, 2))


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
        assignments=assignments,
        embedding=embedding,
        instances=lambda rows: X[rows],
        about={"data": "table.parquet"},
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
    gallery = snapshot.build_gallery(tmp_path, make_findings(X, n_known=6), EMBEDDER)
    assert gallery.form == form
    assert gallery.thumb(11)
    assert gallery.features[1].tolist() == [2.0, 3.0]  # of the model itself, not of the detection
    assert gallery.source[:2].tolist() == ["person", "model"]


def test_a_large_window_is_mapped_by_some_of_its_instances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MOST_MAPPED", 20)
    findings = make_findings(np.zeros((60, 4), dtype=np.float32), n_known=50)
    places = snapshot.build_gallery(tmp_path, findings, EMBEDDER).places
    assert places.shape == (60, 2)
    assert np.isfinite(places).all()
    assert 0 <= places.min() <= places.max() <= 1


def test_what_no_file_shows_is_kept_whole(tmp_path: Path) -> None:
    texts = np.array([f"{i} " + "long " * 200 for i in range(12)], dtype=object)
    texts[5] = texts[3].upper()
    gallery = snapshot.build_gallery(tmp_path / "texts", make_findings(texts, n_known=6), EMBEDDER)
    assert gallery.whole(7) == texts[7].encode()
    assert len(gallery.excerpt(7)) < len(texts[7])
    assert gallery.stack[5] == 3
    large = np.random.default_rng(0).integers(0, 255, (12, 60, 90), dtype=np.uint8)
    gallery = snapshot.build_gallery(tmp_path / "large", make_findings(large, n_known=6), EMBEDDER)
    whole = gallery.whole(3)
    assert whole is not None
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(whole))), large[3])
    small = snapshot.build_gallery(
        tmp_path / "small", make_findings(large[:, :8, :8], n_known=6), EMBEDDER
    )
    assert small.whole(3) is None


def test_the_gallery_of_what_a_learner_keeps(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    learner = IForest(seed=0).fit(X, ["ant", "bee"] * 10)
    gallery = snapshot.build_known_gallery(tmp_path, learner)
    kept = learner.remembered()
    assert gallery is not None
    assert kept is not None
    assert gallery.label.tolist() == kept.y.tolist()
    np.testing.assert_allclose(gallery.embedding, learner.embed(kept.X), rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(gallery.directions, axis=1), 1, rtol=1e-5)


def test_vectors_of_a_frozen_network_have_no_pictures(tmp_path: Path) -> None:
    kept = Remembered(np.eye(4), np.array(["ant", "bee"] * 2), np.zeros(4, dtype=bool))
    learner: Any = SimpleNamespace(
        remembered=lambda: kept, instance_shape=(8, 8), embed_remembered=lambda kept: kept.X
    )
    gallery = snapshot.build_known_gallery(tmp_path, learner)
    assert gallery is not None
    assert (gallery.form, gallery.has_pictures) == ("vectors", False)
    np.testing.assert_array_equal(gallery.features, np.eye(4))
