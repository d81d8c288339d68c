from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.metrics import adjusted_rand_score

from cilf.clustering.validity_curve import largest
from cilf.errors import BadConfig
from cilf.learners import load
from cilf.learners.iforest import IForest

CORNERS = {"a": (-8, -8), "b": (8, -8)}


def around(points: list[tuple[float, float]], n: int = 30, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(point, 0.5, size=(n, 2)) for point in points])


@pytest.fixture
def learner() -> IForest:
    X = around(list(CORNERS.values()))
    return IForest(n_estimators=50, contamination=0.05).fit(X, np.repeat(list(CORNERS), 30))


def test_novelty_is_that_of_scikit_learns_forest() -> None:
    X, window = around([(-8, -8), (8, -8)]), around([(0, 8), (8, -8)], seed=1)
    learner = IForest(n_estimators=20, seed=4).fit(X, ["a", "b"] * 30)
    forest = IsolationForest(n_estimators=20, random_state=learner._forest.random_state)
    forest.fit(learner.embed(X))
    found = learner.detect(window)
    assert found.novelty.tolist() == np.float32(-forest.score_samples(found.embedding)).tolist()
    assert found.is_novel.tolist() == (forest.predict(found.embedding) == -1).tolist()
    assert 0 < found.is_novel.sum() < len(window)


def test_vectors_are_scaled_by_feature() -> None:
    X = around([(-8, -8), (8, -8)])
    embedded = IForest(n_estimators=5).fit(X, ["a", "b"] * 30).embed(X)
    np.testing.assert_allclose(embedded, (X - X.mean(0)) / X.std(0), atol=1e-4)


def test_finds_as_many_novel_classes_as_there_are(learner: IForest) -> None:
    window = around([(0, 20), (-30, 0), (30, 40)], seed=1)
    found = learner.detect(window)
    assert found.n_novel == 3
    assert adjusted_rand_score(np.repeat([0, 1, 2], 30), found.cluster) == 1.0
    assert largest(found.curve) == 3


def test_one_class_unless_splitting_is_worth_it(learner: IForest) -> None:
    window = around([(0, 20)], seed=1)
    learner.set_params(clustering__least_silhouette=0.7)
    assert learner.detect(window).n_novel == 1
    learner.set_params(clustering__least_silhouette=-1.0)
    assert learner.detect(window).n_novel > 1


def test_finds_no_more_than_k_max(learner: IForest) -> None:
    window = around([(0, 20), (-30, 0), (30, 40)], seed=1)
    found = learner.set_params(clustering__k_max=2).detect(window)
    assert found.n_novel == 2
    assert set(found.curve) == {1, 2}


@pytest.mark.parametrize("cluster_all", [False, True])
@pytest.mark.parametrize("n_novel", [0, 1, 2, 5])
def test_as_many_as_asked_for(learner: IForest, n_novel: int, cluster_all: bool) -> None:
    learner.set_params(clustering__cluster_all=cluster_all)
    found = learner.detect(around(list(CORNERS.values()), seed=2), n_novel=n_novel)
    assert found.n_novel == n_novel
    assert sorted(set(found.cluster.tolist()) - {-1}) == list(range(n_novel))


def test_the_most_novel_are_taken_when_too_few_are_marked(learner: IForest) -> None:
    window = np.concatenate([np.repeat([[-8.0, -8.0]], 5, axis=0), [[-8.0, -9.3], [-6.7, -8.0]]])
    learner._forest.offset_ = -1.0  # nothing is novel
    assert learner.detect(window).n_novel == 0
    assert np.flatnonzero(learner.detect(window, n_novel=2).is_novel).tolist() == [5, 6]


def test_paper_clusters_known_and_novel_together() -> None:
    assert (
        IForest.paper().get_params()
        == IForest().set_params(clustering__cluster_all=True).get_params()
    )
    assert IForest.paper(seed=3).get_params()["seed"] == 3
    with pytest.raises(BadConfig, match="did you mean 'seed'"):
        IForest.paper(sed=3)


def test_clusters_that_are_mostly_marked_are_novel(learner: IForest) -> None:
    window = around([*CORNERS.values(), (0, 40), (60, 0)], seed=1)
    found = learner.set_params(clustering__cluster_all=True).detect(window)
    truth = np.repeat([-1, -1, 0, 1], 30)
    assert found.n_novel == 2
    assert adjusted_rand_score(truth, found.cluster) == 1.0
    assert not found.is_novel[:60].any()


def test_the_forest_stays_and_names_are_learned(learner: IForest) -> None:
    window = around([(0, 20)], seed=1)
    before = learner.detect(window)
    learner.update(around([(0, 20)], seed=2), ["c"] * 30)
    after = learner.detect(window)
    assert after.novelty.tolist() == before.novelty.tolist()
    assert set(before.label.tolist()) <= {"a", "b"}
    assert set(after.label.tolist()) == {"c"}
    assert set(learner.predict(around([(8, -8)], seed=3)).tolist()) == {"b"}


def test_memory_and_sample_are_bounded() -> None:
    X = around([(-8, -8), (8, -8)], n=100)
    learner = IForest(n_estimators=5, sample_size=50, memory_size=12).fit(X, ["a", "b"] * 100)
    for name in "cde":
        learner.update(X, [name] * 200)
    arrays, _ = learner._get_state()
    assert len(arrays["sample"]) == 50
    assert np.bincount(arrays["memory.y"]).tolist() == [3, 3, 2, 2, 2]


def test_parameters_changed_after_the_fit_do_not_reach_the_forest(
    learner: IForest, tmp_path: Path
) -> None:
    window = around([(0, 20)], seed=1)
    before = learner.detect(window).novelty
    learner.set_params(n_estimators=3, seed=8).save(tmp_path / "model")
    assert load(tmp_path / "model").detect(window).novelty.tolist() == before.tolist()


def test_images_are_scaled_as_a_whole() -> None:
    images = np.zeros((4, 3, 3), dtype=np.uint8)
    images[:2, 1, 1] = 200
    images[0, 0, 0] = 1  # hardly varies: must not count as much as the middle
    learner = IForest(n_estimators=5).fit(images, ["dot", "dot", "blank", "blank"])
    z = learner.embed(images)
    assert z.shape == (4, 9)
    assert abs(z[0, 0] - z[1, 0]) < 0.1 * abs(z[1, 4] - z[2, 4])


def test_colour_channels_are_scaled_apart() -> None:
    images = np.random.default_rng(0).integers(0, 256, size=(6, 4, 4, 3)).astype(np.uint8)
    z = IForest(n_estimators=5).fit(images, ["a", "b"] * 3).embed(images)
    by_channel = z.reshape(-1, 3)
    np.testing.assert_allclose(by_channel.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(by_channel.std(0), 1, atol=1e-5)


def test_constant_data() -> None:
    learner = IForest(n_estimators=5).fit(np.ones((4, 2)), ["a", "b", "a", "b"])
    found = learner.detect(np.ones((3, 2)), n_novel=2)
    assert np.isfinite(found.novelty).all()
    assert sorted(set(found.cluster.tolist()) - {-1}) == [0, 1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_estimators", 0),
        ("max_samples", 1.5),
        ("max_features", 0.0),
        ("contamination", 0.6),
        ("contamination", "none"),
        ("clustering__k_max", 0),
        ("clustering__least_silhouette", 2),
        ("sample_size", 0),
        ("memory_size", None),
    ],
)
def test_parameters_that_cannot_work_are_refused(name: str, value: object) -> None:
    with pytest.raises(BadConfig, match=name.replace("__", ".")):
        IForest().set_params(**{name: value}).fit(around([(0, 0), (9, 9)]), ["a", "b"] * 30)


def test_values_however_far_away_are_novel(learner: IForest) -> None:
    found = learner.detect(np.full((5, 2), 1e30))
    assert found.is_novel.all()
    assert np.isfinite(found.embedding).all()
