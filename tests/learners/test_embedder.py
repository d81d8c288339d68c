"""Classic learners that see instances through a network of their own, trained on the first fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from cilf import load
from cilf.checks.data import NOVEL, task
from cilf.checks.trial import fit_copy
from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners import IForest, Learner, OneSVM, SENCMaS
from cilf.learners.embedder import Embedder, check_features, measure_scale

FOREST = IForest(n_estimators=20, features="embed")
EMBEDDING: list[Learner] = [FOREST, OneSVM(features="embed"), SENCMaS(features="embed")]


@pytest.fixture
def forest() -> Learner:
    return fit_copy(FOREST)


@pytest.mark.parametrize("learner", EMBEDDING, ids=lambda learner: learner.name)
def test_embedded_instances_are_detected_learned_saved_and_loaded(
    learner: Learner, tmp_path: Path
) -> None:
    data, learner = task(), fit_copy(learner)
    found = learner.detect(data.window.X)
    assert roc_auc_score(data.window.y == NOVEL, found.novelty) > 0.8
    learner.update(*data.answers)
    right = learner.predict(data.fresh.X) == data.fresh.y
    assert right[data.fresh.y == NOVEL].mean() > 0.7
    assert right[data.fresh.y != NOVEL].mean() > 0.7
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for each in (learner, loaded):
        each.update(*data.later)
    one, other = learner.detect(data.window.X), loaded.detect(data.window.X)
    assert one.novelty.tolist() == other.novelty.tolist()
    assert one.cluster.tolist() == other.cluster.tolist()
    assert loaded.predict(data.fresh.X).tolist() == learner.predict(data.fresh.X).tolist()
    assert loaded.embed(data.fresh.X).tolist() == learner.embed(data.fresh.X).tolist()


def test_vectors_are_embedded_too(tmp_path: Path) -> None:
    data = task("vectors")
    learner = fit_copy(FOREST, "vectors")
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert learner.embed(data.fresh.X).shape[1] != data.fresh.X.shape[1]
    assert loaded.embed(data.fresh.X).tolist() == learner.embed(data.fresh.X).tolist()


def test_the_network_was_trained_to_tell_the_first_classes_apart(forest: Learner) -> None:
    """Classes that it was trained on lie farther apart than in raw values."""
    data = task()
    known = data.fresh.y != NOVEL
    X, y = data.fresh.X[known], data.fresh.y[known]

    def right(learner: Learner) -> float:
        return nearest_mean(learner.embed(data.initial.X), data.initial.y, learner.embed(X), y)

    assert right(forest) > 0.95
    assert separation(forest.embed(X), y) > 2 * separation(X.reshape(len(X), -1), y)


def nearest_mean(train: Array, labels: Array, z: Array, truth: Array) -> float:
    names = np.unique(labels)
    means = np.stack([train[labels == name].mean(0) for name in names])
    nearest = np.linalg.norm(z[:, None] - means, axis=2).argmin(1)
    return float(np.mean(names[nearest] == truth))


def separation(z: Array, y: Array) -> float:
    """Variance between classes over variance within them."""
    means = np.stack([z[y == name].mean(0) for name in np.unique(y)])
    within = np.mean([z[y == name].var(0).sum() for name in np.unique(y)])
    return float(means.var(0).sum() / within)


def test_an_update_leaves_the_network_as_it_is(forest: Learner) -> None:
    data = task()
    before = forest.embed(data.fresh.X)
    forest.update(*data.answers)
    assert forest.embed(data.fresh.X).tolist() == before.tolist()


def test_the_seed_decides_the_network(forest: Learner) -> None:
    X = task().fresh.X
    torch.manual_seed(99)
    again = clone(FOREST).fit(*task().initial)
    assert again.embed(X).tolist() == forest.embed(X).tolist()
    other = clone(FOREST).set_params(seed=1).fit(*task().initial)
    assert other.embed(X).tolist() != forest.embed(X).tolist()


def test_a_fit_on_raw_values_forgets_the_network(forest: Learner) -> None:
    forest.set_params(features="raw").fit(*task().initial)
    assert forest.embed(task().fresh.X).shape[1] == 64


def test_scaling_is_by_feature_of_vectors_and_by_channel_of_images() -> None:
    rng = np.random.default_rng(0)
    for shape, axes in [((50, 4), (0,)), ((50, 3, 4), (0, 1, 2)), ((50, 3, 4, 2), (0, 1, 2))]:
        X = rng.normal(3, 2, size=shape)
        mean, std = measure_scale(X)
        np.testing.assert_allclose(mean, X.mean(axes), rtol=1e-12)
        np.testing.assert_allclose(std, X.std(axes), rtol=1e-12)
    assert measure_scale(np.full((5, 2), 7.0))[1].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("value", ["raws", "embedded", None, 3])
def test_unknown_features_are_refused(value: object) -> None:
    with pytest.raises(BadConfig, match="features"):
        check_features("features", value)


def test_views_are_the_scaled_inputs_or_those_of_the_network() -> None:
    data, rng = task("vectors"), torch.Generator().manual_seed(0)
    plain = Embedder.fit(data.fresh.X, np.zeros(len(data.fresh.y), int), features="raw", seed=0)
    (inputs,) = plain.learn_views(data.fresh.X, rng)(data.fresh.X)
    np.testing.assert_allclose(inputs.numpy(), plain.transform(data.fresh.X), rtol=1e-6)
    images = task().fresh
    plain = Embedder.fit(images.X, np.zeros(len(images.y), int), features="raw", seed=0)
    (strengths,) = plain.learn_views(images.X, rng)(images.X)
    assert strengths.shape == (len(images.X), 1024)
    assert float(strengths.mean(0).abs().max()) < 1e-3
    embedder = Embedder.fit(images.X, np.arange(len(images.y)) % 2, features="embed", seed=0)
    output, features, _ = embedder.learn_views(images.X, rng)(images.X[:5])
    assert output.shape == (5, 2)
    np.testing.assert_allclose(features.numpy(), embedder.transform(images.X[:5]), atol=1e-5)
