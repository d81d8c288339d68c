from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from cilf import load
from cilf.checks.data import KNOWN, NOVEL, task
from cilf.errors import BadConfig
from cilf.learners import Learner
from cilf.learners.senc_mas.frequent_directions import Sketch
from cilf.learners.senc_mas.learner import SENCMaS, similarities

Kept = Callable[[Learner], Any]
AXES = {"a": 0, "b": 1, "c": 2, "d": 3}


def along(names: str, n: int = 60, seed: int = 0) -> np.ndarray:
    """Images of one bright stripe, of a strength that varies, on noise: few directions matter."""
    rng = np.random.default_rng(seed)
    stripes = np.repeat([np.eye(8)[AXES[name]] for name in names], n, axis=0)
    bright = 100 * rng.uniform(1, 2, size=(len(stripes), 1, 1)) * stripes[:, :, None]
    return bright + rng.normal(0, 5, size=(len(stripes), 8, 8))


def named(names: str, n: int = 60) -> list[str]:
    return list(np.repeat(list(names), n))


@pytest.fixture
def learner() -> SENCMaS:
    return SENCMaS().fit(along("ab"), named("ab"))


def unit_rows(learner: SENCMaS, X: np.ndarray) -> np.ndarray:
    """One instance at a time, with the constant coordinate."""
    rows = []
    for z in learner.embed(X).astype(np.float64):
        row = np.array([*z, learner._length])
        rows.append(row / np.sqrt(row @ row))
    return np.array(rows)


def slow_similarity(row: np.ndarray, sketch: Sketch, energy: float) -> float:
    """By the eigenvectors of B'B, and what is left of the row outside of them."""
    B = sketch.rows.astype(np.float64)
    values, vectors = np.linalg.eigh(B.T @ B)
    n = next(k for k in range(1, len(values)) if values[-k:].sum() >= energy * values.sum())
    main = vectors[:, -n:]
    outside = row - main @ (main.T @ row)
    return float(np.sqrt(1 - outside @ outside))


def test_novelty_is_what_lies_outside_the_sketch_of_all_known_data(learner: SENCMaS) -> None:
    window = along("abc", n=5, seed=1)
    found = learner.detect(window)
    expected = [
        1 - slow_similarity(row, learner._global, 0.95) for row in unit_rows(learner, window)
    ]
    np.testing.assert_allclose(found.novelty, expected, atol=1e-6)


def test_names_are_those_of_the_most_similar_sketch(learner: SENCMaS) -> None:
    window = along("ab", n=5, seed=1)
    expected = [
        max("ab", key=lambda name: slow_similarity(row, learner._local["ab".index(name)], 0.95))
        for row in unit_rows(learner, window)
    ]
    assert learner.predict(window).tolist() == expected == named("ab", 5)
    assert learner.detect(window).label.tolist() == expected


def test_sketches_are_fed_the_training_instances_that_are_not_held_out() -> None:
    X, y = along("ab", n=9), np.array(named("ab", 9))
    learner = SENCMaS(sketch_size=40, calibration_size=3).fit(X, y)
    held_out = learner._calibration
    assert np.bincount(held_out.y).tolist() == [3, 3]
    kept = [not (X.astype(np.float32)[i] == held_out.X).all(axis=(1, 2)).any() for i in range(18)]
    rows = unit_rows(learner, X[kept])
    assert learner._global.n_filled == 12
    np.testing.assert_allclose(learner._global.rows[:12], rows, atol=1e-6)
    np.testing.assert_allclose(learner._local[1].rows[:6], rows[6:], atol=1e-6)


@pytest.mark.parametrize("accepted", [0.5, 0.8, 0.95])
def test_the_threshold_rejects_the_share_announced(accepted: float, held_out: Kept) -> None:
    learner = SENCMaS(accepted_share=accepted, calibration_size=100).fit(
        along("ab", n=400), named("ab", 400)
    )
    kept = held_out(learner)
    rejected = learner.detect(kept.X).is_novel.mean()
    assert len(kept.y) == 200
    assert rejected == pytest.approx(1 - accepted, abs=1 / 200)
    fresh = learner.detect(along("ab", n=400, seed=1)).is_novel.mean()
    assert fresh == pytest.approx(1 - accepted, abs=0.05)


def test_each_class_has_the_threshold_of_its_own_held_out_instances() -> None:
    X, y = along("abc"), named("abc")
    learner = SENCMaS(accepted_share=0.8).fit(np.concatenate([X, along("d", 2)]), [*y, "d", "d"])
    held_out = learner._calibration
    similarity = np.array(
        [slow_similarity(row, learner._global, 0.95) for row in unit_rows(learner, held_out.X)]
    )
    expected = [np.quantile(similarity[held_out.y == label], 0.2) for label in range(3)]
    expected.append(np.quantile(similarity, 0.2))  # of the class too small to hold any out
    np.testing.assert_allclose(learner._thresholds(), expected, atol=1e-6)
    window = along("abc", seed=1)
    found = learner.detect(window)
    thresholds = np.array(expected)[["abcd".index(name) for name in found.label]]
    clear = np.abs(1 - found.novelty - thresholds) > 1e-5
    assert (found.is_novel == (1 - found.novelty < thresholds))[clear].all()


def test_a_novel_class_is_found_learned_and_then_known(learner: SENCMaS) -> None:
    window = along("abc", seed=1)
    before = learner.detect(window)
    assert before.is_novel[120:].all()
    assert before.is_novel[:120].mean() < 0.2
    learner.update(along("c", seed=2), named("c"))
    after = learner.detect(window)
    assert learner.predict(window).tolist() == named("abc")
    assert after.is_novel[120:].mean() < 0.4  # 20 held-out instances make a rough threshold
    assert learner.detect(along("d", seed=3)).is_novel.all()


def test_digits_of_a_new_class_are_recognised_after_an_update() -> None:
    data = task()
    learner = SENCMaS().fit(*data.initial)
    assert roc_auc_score(data.window.y == NOVEL, learner.detect(data.window.X).novelty) > 0.9
    learner.update(*data.answers)
    right = learner.predict(data.fresh.X) == data.fresh.y
    assert right[data.fresh.y == NOVEL].mean() > 0.8
    assert right[np.isin(data.fresh.y, KNOWN)].mean() > 0.9


def test_an_update_feeds_the_sketches_of_its_classes_and_that_of_all(learner: SENCMaS) -> None:
    old_a, old_b, old_all = learner._local[0], learner._local[1], learner._global
    X = along("b", n=7, seed=4)
    learner.update(X, named("b", 7))
    rows = unit_rows(learner, X)  # the class is complete in the calibration: nothing is held out
    assert learner._local[0] is old_a or learner._local[0].rows.tolist() == old_a.rows.tolist()
    np.testing.assert_allclose(learner._local[1].rows, old_b.feed(rows).rows, atol=1e-6)
    np.testing.assert_allclose(learner._global.rows, old_all.feed(rows).rows, atol=1e-6)


def test_what_lies_on_opposite_sides_is_told_apart() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 1.0, size=(30, 2)) for c in (-6, 6)])
    learner = SENCMaS().fit(X, ["a"] * 30 + ["b"] * 30)
    assert learner.predict([[-6.0, -6.0], [6.0, 6.0]]).tolist() == ["a", "b"]


def test_the_constant_coordinate_is_as_long_as_a_vector(learner: SENCMaS) -> None:
    assert learner._length == pytest.approx(np.sqrt(64), rel=1e-6)  # of scaled values
    blank = SENCMaS().fit(np.ones((6, 2)), ["a", "b"] * 3)
    assert blank._length == 1.0


def test_held_out_instances_are_bounded(held_out: Kept) -> None:
    learner = SENCMaS(memory_size=10).fit(along("ab"), named("ab"))
    assert held_out(learner).counts == [5, 5]
    learner.update(along("cd", seed=1), named("cd"))
    assert held_out(learner).counts == [3, 3, 2, 2]


def test_nothing_is_novel_without_held_out_instances() -> None:
    learner = SENCMaS(memory_size=0).fit(along("ab"), named("ab"))
    assert learner.detect(along("c", seed=1)).n_novel == 0
    assert learner.detect(along("c", seed=1), n_novel=1).n_novel == 1


def test_the_size_of_sketches_is_that_of_the_fit(learner: SENCMaS, tmp_path: Path) -> None:
    learner.set_params(sketch_size=8).update(along("c", seed=1), named("c"))
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, SENCMaS)
    assert [len(s.rows) for s in [loaded._global, *loaded._local]] == [100] * 4
    assert [s.n_filled for s in loaded._local] == [s.n_filled for s in learner._local]


def test_similarity_is_one_inside_and_zero_outside() -> None:
    sketch = Sketch.empty(4, 3).feed(np.eye(3)[[0, 0, 1]])
    rows = np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0], [0.0, -0.6, 0.8]])
    np.testing.assert_allclose(similarities(rows, sketch, 1.0), [1.0, 0.0, 0.6], atol=1e-7)


def test_values_however_far_away_have_finite_novelty(learner: SENCMaS) -> None:
    found = learner.detect(np.full((5, 8, 8), 1e30))
    assert np.isfinite(found.novelty).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sketch_size", 3),
        ("energy", 1.1),
        ("accepted_share", -0.1),
        ("calibration_size", 0),
        ("features", "row"),
    ],
)
def test_parameters_that_cannot_work_are_refused(name: str, value: object) -> None:
    with pytest.raises(BadConfig, match=name):
        SENCMaS().set_params(**{name: value}).fit(along("ab"), named("ab"))
