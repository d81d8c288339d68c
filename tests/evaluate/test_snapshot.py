from __future__ import annotations

import tracemalloc
from dataclasses import fields, replace

import numpy as np
import pytest

from cilf.core import Detection, Window
from cilf.data import Dataset, Split
from cilf.evaluate import snapshot
from cilf.evaluate.run import Step, steps
from cilf.evaluate.snapshot import excerpts, flat_map, main_directions, take_snapshot, thumbnails
from cilf.learners.iforest import IForest
from cilf.stream import Stream, single_novel


@pytest.fixture(scope="module")
def step(stream: Stream) -> Step:
    return next(steps(IForest(n_estimators=20).fit(*stream.initial), stream))


def test_a_small_window_is_kept_whole(step: Step) -> None:
    kept = take_snapshot(step, seed=0)
    found = step.detection
    assert kept.ids.tolist() == step.window.ids.tolist()
    assert kept.truth.tolist() == step.window.y.tolist()
    assert set(kept.truth[kept.novel].tolist()) == set(step.window.novel)
    assert kept.cluster.tolist() == found.cluster.tolist()
    assert kept.map.shape == (len(found), 2)
    assert np.array_equal(kept.thumbnails, step.window.X)
    assert kept.sizes.sum() == found.is_novel.sum()
    assert [int(m) if m else None for m in kept.matched] == [
        step.matching.get(cluster) for cluster in range(found.n_novel)
    ]


def test_of_a_large_window_a_part_is_kept(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MAX_INSTANCES", 20)
    kept, other = take_snapshot(step, seed=0), take_snapshot(step, seed=1)
    assert len(kept.ids) == len(set(kept.ids)) == len(kept.map) == 20
    assert kept.ids.tolist() != other.ids.tolist()
    place = {id_: row for row, id_ in enumerate(step.window.ids)}
    rows = [place[id_] for id_ in kept.ids]
    assert np.array_equal(kept.thumbnails, step.window.X[rows])
    assert np.array_equal(kept.truth, step.window.y[rows])
    assert kept.sizes.sum() == step.detection.is_novel.sum()  # of the whole window


def test_snapshots_are_the_same_every_time(step: Step) -> None:
    np.random.seed(0)  # noqa: NPY002 - the generator that must stay as it is
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = take_snapshot(step, seed=3)
    np.random.random(5)  # noqa: NPY002
    second = take_snapshot(step, seed=3)
    for field in fields(first):
        assert np.array_equal(getattr(first, field.name), getattr(second, field.name))
    np.random.seed(0)  # noqa: NPY002
    take_snapshot(step, seed=3)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_a_window_without_findings_has_a_snapshot(step: Step) -> None:
    nothing = replace(step.detection, cluster=np.full(len(step.detection), -1), n_novel=0)
    kept = take_snapshot(replace(step, detection=nothing, matching={}, novel=()), seed=0)
    assert len(kept.matched) == len(kept.sizes) == 0
    assert not kept.novel.any()


def test_of_texts_excerpts_are_kept(monkeypatch: pytest.MonkeyPatch, step: Step) -> None:
    monkeypatch.setattr(snapshot, "MAX_INSTANCES", 20)
    about = {"cats": "The cat\n\t sat ", "dogs": "A dog  ran ", "birds": "Birds sing "}
    y = np.repeat(list(about), 30)
    X = np.array([about[label] * (i + 1) for i, label in enumerate(y.tolist())], dtype=object)
    ids = np.array([f"pets/{i}.txt" for i in range(len(y))])
    data = Dataset("pets", Split(X, y, ids), Split(X[::10], y[::10], ids[::10]))
    window = single_novel(data, n_initial=2, vanishing=0).window(1)
    told = replace(step, window=window, detection=hashed(window), novel=window.novel, matching={})
    kept = take_snapshot(told, seed=0)
    assert kept.thumbnails.shape == (20, 0, 0)
    texts = dict(zip(ids.tolist(), X.tolist(), strict=True))
    whole = [" ".join(texts[id_].split()) for id_ in kept.ids.tolist()]
    assert kept.texts.tolist() == [text[:200] for text in whole]
    assert max(len(text) for text in whole) > 200


def hashed(window: Window) -> Detection:
    """A detection that finds nothing new, in a space where each word has a direction."""
    n = len(window.y)
    embedding = np.zeros((n, 16), np.float32)
    for row, text in enumerate(window.X):
        for word in text.split():
            embedding[row, sum(word.encode()) % 16] += 1
    return Detection(
        novelty=embedding[:, 0], label=window.y, cluster=np.full(n, -1), n_novel=0, curve={},
        embedding=embedding,
    )  # fmt: skip


def test_images_and_vectors_have_no_text(step: Step) -> None:
    assert take_snapshot(step, seed=0).texts.tolist() == [""] * len(step.window.y)
    assert excerpts(np.ones((2, 3), np.float32)).tolist() == ["", ""]


def test_of_a_window_no_more_is_copied_than_is_kept(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MAX_INSTANCES", 20)
    n = 10_000
    X = np.broadcast_to(np.float32(0.5), (n, 96, 96, 3))  # a gigabyte, if somebody copied it
    window = Window(1, X, np.zeros(n, np.int64), novel=(), known=(0,))
    none = np.zeros(n, np.float32)
    found = Detection(none, window.y, np.full(n, -1), 0, {}, embedding=np.zeros((n, 2)))
    tracemalloc.start()
    try:
        kept = take_snapshot(
            replace(step, window=window, detection=found, label=found.label, novel=()), seed=0
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert kept.thumbnails.shape == (20, 32, 32, 3)
    assert peak < 20_000_000


def test_the_map_keeps_groups_apart() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 30)
    embedding = rng.normal(20.0 * groups[:, None], 1.0, size=(60, 5)).astype(np.float32)
    flat = flat_map(embedding, seed=0)
    distances = np.linalg.norm(flat[:, None] - flat, axis=2) + 1e9 * np.eye(60)
    assert np.array_equal(groups[distances.argmin(axis=1)], groups)


@pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 1), (3, 8), (9, 2), (10, 1), (12, 40)])
def test_tiny_windows_have_a_finite_map(n: int, d: int) -> None:
    embedding = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    flat = flat_map(embedding, seed=0)
    assert flat.shape == (n, 2)
    assert flat.dtype == np.float32
    assert np.isfinite(flat).all()


def test_instances_that_coincide_have_a_map() -> None:
    assert not flat_map(np.ones((20, 4), np.float32), seed=0).any()


def test_main_directions_keep_distances_in_the_plane() -> None:
    points = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    before = np.linalg.norm(points[:, None] - points, axis=2)
    flat = main_directions(points)
    assert np.allclose(np.linalg.norm(flat[:, None] - flat, axis=2), before, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((3, 8, 8), (3, 8, 8)),
        ((3, 28, 28, 1), (3, 28, 28)),
        ((3, 32, 32, 3), (3, 32, 32, 3)),
        ((3, 20, 20, 4), (3, 20, 20, 3)),
        ((3, 96, 64, 3), (3, 32, 21, 3)),
        ((3, 2, 100), (3, 1, 25)),
        ((3, 12), (3, 1, 12)),
        ((3, 300), (3, 1, 100)),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_thumbnails_are_small_bytes(
    shape: tuple[int, ...], expected: tuple[int, ...], dtype: type
) -> None:
    X = np.random.default_rng(0).integers(0, 256, size=shape).astype(dtype)
    made = thumbnails(X)
    assert made.shape == expected
    assert made.dtype == np.uint8


def test_floats_are_scaled_by_their_range_and_bytes_are_left() -> None:
    image = np.array([[[-1.0, 0.0], [0.5, 1.0]]], np.float32)
    assert thumbnails(image).tolist() == [[[0, 128], [191, 255]]]
    dark = np.array([[[0, 9]]], np.uint8)
    assert thumbnails(dark).tolist() == [[[0, 9]]]
    assert not thumbnails(np.full((2, 3, 3), 7.0, np.float32)).any()


def test_vectors_are_scaled_feature_by_feature() -> None:
    X = np.array([[0.0, 1000.0], [1.0, 3000.0]], np.float32)
    assert thumbnails(X).tolist() == [[[0, 0]], [[255, 255]]]


def test_large_images_are_averaged() -> None:
    X = np.zeros((1, 64, 64), np.uint8)
    X[:, ::2] = 100
    assert np.unique(thumbnails(X)).tolist() == [50]
