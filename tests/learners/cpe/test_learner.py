from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from cilf.errors import BadConfig
from cilf.learners.cpe.learner import CPE
from cilf.learners.cpe.prototype_ensemble import PrototypeEnsemble, PrototypeSettings
from cilf.nn.network import embed
from cilf.nn.training import Training


def around(points: list[tuple[float, float]], n: int = 40, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(point, 1.0, size=(n, 2)) for point in points])


@pytest.fixture(scope="module")
def learner() -> CPE:
    return CPE(epochs=8, embedding_size=16).fit(
        around([(-9, 0), (9, 0)], 80), ["a"] * 80 + ["b"] * 80
    )


def flat(shape: tuple[int, ...]) -> nn.Module:
    return nn.Flatten()


def test_the_loss_is_the_sum_of_its_terms() -> None:
    settings = PrototypeSettings(threshold=4.0, pairwise=0.3, beta=2.0)
    rng = torch.Generator().manual_seed(0)
    z = 3 * torch.randn(5, 2, generator=rng)
    made = PrototypeEnsemble(
        3 * torch.randn(4, 2, generator=rng), torch.tensor([0, 0, 1, 1]), torch.ones(4).long()
    )
    y = torch.tensor([0, 1, 0, 1, 0])
    _, own = made.nearest_own(z, y)
    slow, pushed = 0.0, 0
    for point, label, mine in zip(z.tolist(), y.tolist(), own.tolist(), strict=True):
        squares = [math.dist(point, centre) ** 2 for centre in made.centres.tolist()]
        nearest = squares.index(min(squares))
        like = 1 if int(made.labels[nearest]) == label else -1
        pushed += like < 0
        odds = [math.exp(-square / 4.0) for square in squares]
        pull = math.log(1 + math.exp(2 * (4.0 - (8.0 - squares[mine])))) / 2
        push = math.log(1 + math.exp(2 * (4.0 - like * (8.0 - squares[nearest])))) / 2
        slow += (-math.log(odds[mine] / sum(odds)) + 0.3 * (pull + push)) / len(z)
    assert 0 < pushed < len(z)  # both sides of the pairwise loss took part
    assert float(settings.loss(z, own, made)) == pytest.approx(slow, rel=1e-5)


def test_training_steps_down_the_gradient_of_both_losses() -> None:
    """One step of one batch, with Nesterov's momentum 0.9: weights move 1.9 times their slope."""
    X, y = around([(-9, 0), (9, 0), (0, 9)], 10), torch.arange(3).repeat_interleave(10)
    plain = {
        "backbone": flat, "embedding_size": 2, "calibration_size": 0,
        "prototypes": PrototypeSettings(threshold=2.0, pairwise=0.3),
        "training": Training(batch_size=30, learning_rate=0.01, weight_decay=0.0, clip=None),
    }  # fmt: skip
    start = CPE(epochs=0, **plain).fit(X, y.numpy())
    moved = CPE(epochs=1, **plain).fit(X, y.numpy())
    network, layer = start._network, start._network.get_submodule("classifier")
    z = network(torch.from_numpy(X.astype(np.float32)))
    made, own = PrototypeEnsemble.empty(2).assign(z.detach(), y, reach=4.0)
    of_classifier = nn.functional.cross_entropy(layer(z.relu()), y)
    of_prototypes = start.prototypes.loss(z, own, made)
    weights = dict(network.named_parameters())
    assert set(weights) == {"head.weight", "head.bias", "classifier.weight", "classifier.bias"}
    first, second = (
        torch.autograd.grad(loss, list(weights.values()), retain_graph=True, allow_unused=True)
        for loss in (of_classifier, of_prototypes)
    )
    for name, one, two in zip(weights, first, second, strict=True):
        slope = one if two is None else one + two
        step = moved._network.get_parameter(name) - weights[name]
        torch.testing.assert_close(step, -0.01 * 1.9 * slope, rtol=1e-3, atol=1e-6)
        assert float(one.norm()) > 0.001
        assert two is None or float(two.norm()) > 0.001


def test_a_class_of_two_far_modes_gets_two_prototypes() -> None:
    X = around([(-40, 0), (40, 0), (0, 40)], 60)
    learner = CPE(
        backbone=flat,
        embedding_size=2,
        epochs=3,
        prototypes=PrototypeSettings(threshold=0.3),
        training=Training(learning_rate=0.0, batch_size=32),
    )
    learner.fit(X, ["split"] * 120 + ["whole"] * 60)
    assert np.bincount(learner._prototypes.labels.numpy()).tolist() == [2, 1]
    assert learner.predict([[-40, 0], [40, 0], [0, 40]]).tolist() == ["split", "split", "whole"]


def test_there_are_no_more_prototypes_than_allowed() -> None:
    X = around([(-9, 0), (9, 0)], 40)
    few = PrototypeSettings(threshold=0.01, max_prototypes=3)
    learner = CPE(epochs=3, prototypes=few, training=Training(learning_rate=0.0))
    learner.fit(X, ["a"] * 40 + ["b"] * 40)
    assert np.bincount(learner._prototypes.labels.numpy()).max() <= 3


def test_the_class_is_that_of_the_nearest_prototype(learner: CPE) -> None:
    X = around([(0, 0), (9, 0)], seed=1)
    made, z = learner._prototypes, learner.embed(X)
    nearest = [
        min(range(len(made)), key=lambda i: math.dist(point, made.centres[i].tolist()))
        for point in z.tolist()
    ]
    assert learner.predict(X).tolist() == learner.classes_[made.labels[nearest].numpy()].tolist()


def held_out_spreads(learner: CPE) -> np.ndarray:
    held_out = learner._calibration
    spreads = []
    for label in range(len(learner.classes_)):
        own = learner._prototypes.centres[learner._prototypes.labels == label].tolist()
        z = learner.embed(held_out.X[held_out.y == label]).tolist()
        distances = [min(math.dist(point, centre) for centre in own) for point in z]
        spreads.append((np.mean(distances), np.std(distances)))
    return np.array(spreads)


def test_limits_are_mean_and_deviation_of_held_out_distances(learner: CPE) -> None:
    assert np.bincount(learner._calibration.y).tolist() == [20, 20]
    np.testing.assert_allclose(learner._spreads, held_out_spreads(learner), rtol=1e-4)


def test_an_update_measures_the_limits_of_all_classes_anew(learner: CPE) -> None:
    later = copy.deepcopy(learner).update(around([(0, 30)]), ["c"] * 40)
    np.testing.assert_allclose(later._spreads, held_out_spreads(later), rtol=1e-4)
    assert (np.abs(later._spreads[:2] / learner._spreads - 1) > 0.01).any(1).all()


@pytest.mark.parametrize("coefficient", [0.0, 1.0, 2.0, 3.0])
def test_what_lies_beyond_mean_and_deviations_is_novel(learner: CPE, coefficient: float) -> None:
    changed = copy.copy(learner).set_params(std_coefficient=coefficient)
    window = np.concatenate([learner._calibration.X, around([(0, 0)], 20, seed=2)])
    found = changed.detect(window)
    distance, _ = learner._prototypes.nearest(torch.from_numpy(learner.embed(window)))
    positions = (found.label == "b").astype(int)
    mean, deviation = learner._spreads[positions].T
    expected = distance.numpy() > mean + coefficient * deviation
    assert found.is_novel.tolist() == expected.tolist()
    assert found.novelty == pytest.approx(distance.numpy())


def test_as_many_known_instances_are_rejected_as_that_many_deviations_leave_out(
    learner: CPE,
) -> None:
    fresh = around([(-9, 0), (9, 0)], 300, seed=5)

    def rejected(coefficient: float) -> float:
        changed = copy.copy(learner).set_params(std_coefficient=coefficient)
        return float(changed.detect(fresh).is_novel.mean())

    assert 0.05 < rejected(1.0) < 0.35  # a normal distance: 0.16
    assert rejected(4.0) < 0.06  # Chebyshev, whatever the distribution
    assert rejected(0.0) > 0.3


def test_what_is_far_from_all_classes_looks_novel(learner: CPE) -> None:
    found = learner.detect(np.concatenate([around([(-9, 0), (9, 0)], seed=3), around([(0, 30)])]))
    known, novel = found.novelty[:80], found.novelty[80:]
    assert np.median(novel) > np.quantile(known, 0.95)


def test_without_held_out_instances_training_ones_set_the_limits() -> None:
    X, y = around([(-9, 0), (9, 0)], 30), ["a"] * 30 + ["b"] * 30
    learner = CPE(epochs=2, calibration_size=0, embedding_size=8).fit(X, y)
    assert len(learner._calibration) == 0
    z = embed(learner._network, torch.from_numpy(X.astype(np.float32)))
    own = learner._prototypes.nearest_own(z, torch.arange(2).repeat_interleave(30))[0]
    expected = [own[:30].mean(), own[30:].mean()]
    assert learner._spreads[:, 0] == pytest.approx(np.array(expected), rel=1e-5)


def test_an_update_grows_the_classifier_and_finds_prototypes_for_the_class(learner: CPE) -> None:
    before = _old_logits(learner)
    later = copy.deepcopy(learner).set_params(update_epochs=0).update(around([(0, 30)]), ["c"] * 40)
    assert torch.equal(_old_logits(later)[:, :2], before)
    later = copy.deepcopy(learner).update(around([(0, 30)]), ["c"] * 40)
    assert set(later._prototypes.labels.tolist()) == {0, 1, 2}
    assert later._spreads.shape == (3, 2)
    assert np.bincount(later._calibration.y).tolist() == [20, 20, 13]
    predicted = later.predict(around([(-9, 0), (9, 0), (0, 30)], seed=4))
    assert np.mean(predicted == np.repeat(["a", "b", "c"], 40)) > 0.95
    fresh = around([(0, 30)], seed=4)
    assert np.median(later.detect(fresh).novelty) < np.median(learner.detect(fresh).novelty)


def _old_logits(learner: CPE) -> torch.Tensor:
    z = torch.from_numpy(learner.embed(around([(-9, 0), (9, 0)])))
    with torch.no_grad():
        logits: torch.Tensor = learner._network.get_submodule("classifier")(z.relu())
    return logits


def test_without_memory_old_classes_keep_a_prototype_and_their_limits(learner: CPE) -> None:
    X, y = around([(-9, 0), (9, 0)], 30), ["a"] * 30 + ["b"] * 30
    plain = CPE(epochs=2, calibration_size=0, memory_size=0, embedding_size=8).fit(X, y)
    before = plain._spreads.copy()
    plain.update(around([(0, 30)]), ["c"] * 40)
    assert set(plain._prototypes.labels.tolist()) == {0, 1, 2}
    assert plain._spreads[:2].tolist() == before.tolist()
    assert np.isfinite(plain._spreads).all()


def test_a_network_that_is_not_trained_has_a_prototype_for_each_class() -> None:
    learner = CPE(epochs=0, embedding_size=8).fit(
        around([(-9, 0), (9, 0)], 9), ["a"] * 9 + ["b"] * 9
    )
    assert learner._prototypes.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "value"),
    [("prototypes__threshold", 0.0), ("prototypes__pairwise", -1.0), ("prototypes__beta", 0.0),
     ("prototypes__max_prototypes", 0), ("embedding_size", 0), ("std_coefficient", -1.0),
     ("calibration_size", -1)],
)  # fmt: skip
def test_what_cannot_work_is_refused(name: str, value: float) -> None:
    with pytest.raises(BadConfig, match=name.replace("__", ".")):
        CPE().set_params(**{name: value}).fit(around([(-9, 0), (9, 0)], 5), ["a", "b"] * 5)
