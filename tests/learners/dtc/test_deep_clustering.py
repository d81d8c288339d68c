"""Deep clustering: its computations by hand."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core.progress import listen
from cilf.core.random import torch_generator
from cilf.core.types import Array
from cilf.learners.dtc import class_count, deep_clustering
from cilf.learners.dtc.deep_clustering import (
    TemporalEnsemble,
    Tuning,
    divergence,
    principal_clusters,
    principal_head,
    sigmoid_rampup,
    soft_assignments,
    target_distribution,
)
from cilf.nn.augment import make_augmentation
from cilf.nn.network import Network, make_network
from cilf.nn.training import Training

PLAIN = Training(augmentation=None)

CORNERS = [[-4.0, -4.0], [4.0, -4.0], [-4.0, 4.0], [4.0, 4.0], [0.0, 9.0], [0.0, -9.0]]


def blobs(centres: list[list[float]], n: int = 30, seed: int = 0, width: float = 0.4) -> Array:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(c, width, size=(n, 2)) for c in centres]).astype(np.float32)


def entropy(p: Tensor) -> Tensor:
    return -(p * p.log()).sum(1)


# ------------------------------------------------------------------ assignments and targets


def test_assignments_are_those_of_students_t_computed_one_by_one() -> None:
    rng = np.random.default_rng(0)
    z, centres = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    slow = np.zeros((7, 4))
    for i in range(7):
        for k in range(4):
            slow[i, k] = 1 / (1 + sum((z[i, d] - centres[k, d]) ** 2 for d in range(3)))
        slow[i] /= sum(slow[i].tolist())
    fast = soft_assignments(torch.from_numpy(z), torch.from_numpy(centres))
    np.testing.assert_allclose(fast.numpy(), slow, rtol=1e-9)


def test_target_by_hand() -> None:
    q = torch.tensor([[0.8, 0.2], [0.6, 0.4]])
    # Cluster sizes 1.4 and 0.6: .64/1.4 against .04/.6, and .36/1.4 against .16/.6.
    first = (0.64 / 1.4) / (0.64 / 1.4 + 0.04 / 0.6)
    second = (0.36 / 1.4) / (0.36 / 1.4 + 0.16 / 0.6)
    expected = torch.tensor([[first, 1 - first], [second, 1 - second]])
    torch.testing.assert_close(target_distribution(q), expected)


def test_target_is_sharper_where_clusters_are_of_one_size() -> None:
    q = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
    p = target_distribution(q)
    assert bool((entropy(p) < entropy(q)).all())
    assert bool((entropy(target_distribution(p)) < entropy(p)).all())
    torch.testing.assert_close(p.argmax(1), q.argmax(1))


def test_target_holds_large_clusters_back() -> None:
    q = torch.tensor([[0.9, 0.1]] * 9 + [[0.5, 0.5]])
    assert float(target_distribution(q)[-1, 0]) < 0.5


def test_divergence_is_the_mean_over_instances() -> None:
    p, q = torch.tensor([[0.9, 0.1], [0.5, 0.5]]), torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    by_hand = (0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5)) / 2
    assert float(divergence(p, q)) == pytest.approx(by_hand, rel=1e-5)
    assert float(divergence(p, p)) == pytest.approx(0.0, abs=1e-7)


def test_a_step_down_the_loss_moves_instances_to_their_centres() -> None:
    centres = torch.tensor([[-1.0, 0.0], [1.0, 0.0]])
    z = torch.tensor([[-0.5, 0.3], [0.4, -0.2], [0.7, 0.1]], requires_grad=True)
    p = target_distribution(soft_assignments(z.detach(), centres))
    (gradient,) = torch.autograd.grad(divergence(p, soft_assignments(z, centres)), z)
    own = centres[soft_assignments(z.detach(), centres).argmax(1)]
    before = (z.detach() - own).square().sum(1)
    after = (z.detach() - 0.1 * gradient - own).square().sum(1)
    assert bool((after < before).all())


def test_ensemble_is_the_weighted_mean_of_all_epochs() -> None:
    ensemble, epochs = TemporalEnsemble(decay=0.6), torch.rand(5, 3, 2)
    for n, q in enumerate(epochs, start=1):
        weights = torch.tensor([0.6 ** (n - 1 - i) for i in range(n)])
        slow = (weights[:, None, None] * epochs[:n]).sum(0) / weights.sum()
        torch.testing.assert_close(ensemble.add(q), slow)


def test_first_epoch_of_the_ensemble_is_not_pulled_to_zero() -> None:
    torch.testing.assert_close(
        TemporalEnsemble(decay=0.6).add(torch.tensor([0.25])), torch.tensor([0.25])
    )


def test_rampup_rises_to_one() -> None:
    values = [sigmoid_rampup(epoch, 5) for epoch in range(8)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(math.exp(-5))
    assert values[2] == pytest.approx(math.exp(-5 * 0.6**2))
    assert values[5:] == [1.0, 1.0, 1.0]
    assert sigmoid_rampup(0, 0) == 1.0


# ------------------------------------------------------------------ the bottleneck and tuning


def test_bottleneck_projects_on_principal_components() -> None:
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(40, 6)) * [9, 5, 3, 1, 1, 1] + 2).astype(np.float32)
    centred = features - features.mean(0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    with torch.no_grad():
        seen = principal_head(torch.from_numpy(features), 3)(torch.from_numpy(features)).numpy()
    np.testing.assert_allclose(np.abs(seen), np.abs(centred @ components[:3].T), atol=1e-3)


def test_bottleneck_may_be_wider_than_there_are_features() -> None:
    features = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    assert principal_head(features, 4)(features)[:, 2:].abs().max() == 0


def network_and_window() -> tuple[Network, Tensor]:
    network = make_network(
        "mlp", (2,), embedding_size=2, width=32, seed=0, device=torch.device("cpu")
    ).train()
    x = torch.from_numpy(blobs(CORNERS[:3], width=0.8))
    network.standardise(x)
    with torch.no_grad():
        for _ in range(30):  # its batch statistics are those of the window, as after training
            network(x)
    return network.eval(), x


def clustering_network(x: Tensor, network: Network) -> Network:
    with torch.no_grad():
        features = network.features(x)
    return principal_clusters(network, features, 3, torch_generator(0, "test"))


@pytest.mark.parametrize("variant", deep_clustering.VARIANTS)
def test_tuning_makes_assignments_surer_and_keeps_clusters(variant: str) -> None:
    network, x = network_and_window()
    clustering = clustering_network(x, network)
    before = deep_clustering.assignments(clustering, x)
    tuning = Tuning(variant=variant, warmup_epochs=3, sharpen_epochs=8, tolerance=None)
    deep_clustering.tune(clustering, x, tuning, PLAIN, seed=0)
    after = deep_clustering.assignments(clustering, x)
    assert float(entropy(after).mean()) < 0.95 * float(entropy(before).mean())
    truth = np.repeat([0, 1, 2], 30)
    assert class_count.clustering_accuracy(truth, after.argmax(1).numpy()) > 0.95


def test_tuning_trains_the_centres_and_leaves_the_first_network_alone() -> None:
    network, x = network_and_window()
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    clustering = clustering_network(x, network)
    centres = clustering.get_parameter("centres").detach().clone()
    tuning = Tuning(warmup_epochs=1, sharpen_epochs=0)
    deep_clustering.tune(clustering, x, tuning, Training(), seed=0)
    assert not torch.equal(clustering.get_parameter("centres"), centres)
    for name, value in network.state_dict().items():
        torch.testing.assert_close(value, weights[name], rtol=0, atol=0)


class Heard(NamedTuple):
    """What tuning looked at, in order: all assignments, and the targets of each epoch."""

    assignments: list[Tensor]
    targets: list[Tensor]


def listened_tuning(monkeypatch: pytest.MonkeyPatch, tuning: Tuning, training: Training) -> Heard:
    """Tune with batches of all instances; each column of their targets is sorted."""
    network, x = network_and_window()
    heard = Heard([], [])

    def assignments(network: Network, x: Tensor) -> Tensor:
        heard.assignments.append(plain_assignments(network, x))
        return heard.assignments[-1]

    def divergence(p: Tensor, q: Tensor) -> Tensor:
        heard.targets.append(ordered(p))
        return plain_divergence(p, q)

    plain_assignments, plain_divergence = deep_clustering.assignments, deep_clustering.divergence
    monkeypatch.setattr(deep_clustering, "assignments", assignments)
    monkeypatch.setattr(deep_clustering, "divergence", divergence)
    deep_clustering.tune(clustering_network(x, network), x, tuning, training, seed=0)
    return heard


def ordered(p: Tensor) -> Tensor:
    return p.sort(0).values


@pytest.mark.parametrize("variant", deep_clustering.VARIANTS)
def test_targets_are_made_anew_of_the_assignments_of_the_variant(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = Tuning(
        variant=variant, warmup_epochs=2, sharpen_epochs=6, refresh=2, ensemble_decay=0.5,
        tolerance=None,
    )  # fmt: skip
    heard = listened_tuning(monkeypatch, tuning, PLAIN.replace(batch_size=90))
    at_first, warm, *later = heard.assignments  # q before, after the warm-up, after each epoch
    assert (len(later), len(heard.targets)) == (6, 2 + 6)

    def of_epochs(n: int) -> Tensor:
        if variant != "tep":
            return later[n - 1]
        weights = [0.5 ** (n - 1 - i) for i in range(n)]
        return sum(w * q for w, q in zip(weights, later, strict=False)) / sum(weights)

    made_of = [at_first, at_first, warm, *[of_epochs(1)] * 2, *[of_epochs(3)] * 2]
    made_of.append(of_epochs(5))
    for target, q in zip(heard.targets, made_of, strict=True):
        torch.testing.assert_close(target, ordered(target_distribution(q)))
    if variant == "tep":  # an average is another target than the last assignments
        last = ordered(target_distribution(later[2]))
        assert float((last - ordered(target_distribution(of_epochs(3)))).abs().max()) > 0.001


@pytest.mark.parametrize(("tolerance", "epochs"), [(None, 12), (0.6, 4), (0.1, 7), (0.0, 10)])
def test_tuning_ends_when_clusters_hardly_change(
    tolerance: float | None, epochs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, x = network_and_window()
    n_moved = {3: 45, 6: 5}  # of 90 instances, after these epochs of a new target
    done: list[int] = []

    def moving(network: Network, x: Tensor) -> Tensor:
        cluster = torch.arange(90) % 3
        for epoch, n in n_moved.items():
            cluster[:n] += len(done) > epoch
        return 0.1 + 0.7 * F.one_hot(cluster % 3, 3).float()

    clustering = clustering_network(x, network)
    monkeypatch.setattr(deep_clustering, "assignments", moving)
    tuning = Tuning(warmup_epochs=0, sharpen_epochs=12, refresh=3, tolerance=tolerance)
    with listen(lambda stage, number, total: done.append(number)):
        deep_clustering.tune(clustering, x, tuning, PLAIN, seed=0)
    assert len(done) == epochs


def consistency(
    variant: str, *, rampup: int, augmentation: str | None = None
) -> tuple[deep_clustering._Consistency, Network, Tensor]:
    """The term for a linear network of images, with weight 3."""

    def flat(shape: tuple[int, ...]) -> nn.Module:
        return nn.Flatten()

    network = make_network(
        flat, (4, 4), embedding_size=2, width=None, seed=0, device=torch.device("cpu")
    )
    network.register_parameter("centres", nn.Parameter(torch.tensor([[0.0, 1.0], [1.0, 0.0]])))
    x = torch.rand(6, 1, 4, 4, generator=torch_generator(0, "images"))
    tuning = Tuning(variant=variant, consistency=3.0, rampup=rampup)
    return deep_clustering._Consistency(network, x, tuning, augmentation, seed=5), network, x


def squared_difference(one: Tensor, two: Tensor) -> float:
    pairs = zip(one.flatten().tolist(), two.flatten().tolist(), strict=True)
    return sum((a - b) ** 2 for a, b in pairs) / one.numel()


ROWS, Q = torch.tensor([4, 0, 1]), torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])


def test_te_compares_with_the_average_over_epochs() -> None:
    term, _, _ = consistency("te", rampup=2)
    assert term(Q, ROWS).item() == 0  # there is no average yet
    averaged = torch.linspace(0.0, 1.0, 12).view(6, 2)
    difference = squared_difference(Q, averaged[[4, 0, 1]])
    assert difference > 0.01
    for weight in (3 * math.exp(-5 / 4), 3.0, 3.0):
        term.next_epoch(averaged)
        assert term(Q, ROWS).item() == pytest.approx(weight * difference, rel=1e-5)


def test_pi_compares_with_another_augmentation() -> None:
    term, network, x = consistency("pi", rampup=0, augmentation="shift")
    augment = make_augmentation("shift", x)
    assert augment is not None
    rng, seen = torch_generator(5, "second view"), []
    for _ in range(2):
        with torch.no_grad():
            other = network(augment(x[ROWS], rng))
        there = soft_assignments(other, network.get_parameter("centres").detach())
        seen.append(3 * squared_difference(Q, there))
        assert term(Q, ROWS).item() == pytest.approx(seen[-1], rel=1e-5)
    assert abs(seen[0] - seen[1]) > 0.001


def test_pi_trains_both_views() -> None:
    term, network, _ = consistency("pi", rampup=0)
    term(Q, ROWS).backward()
    for name in ("head.weight", "centres"):
        slope = network.get_parameter(name).grad
        assert slope is not None
        assert float(slope.norm()) > 0.001


@pytest.mark.parametrize("variant", ["baseline", "tep"])
def test_other_variants_compare_with_nothing(variant: str) -> None:
    term, _, _ = consistency(variant, rampup=0)
    term.next_epoch(torch.zeros(6, 2))
    assert term(Q, ROWS).item() == 0


def test_the_term_of_te_changes_what_is_learned() -> None:
    def tuned(variant: str, weight: float) -> Tensor:
        network, x = network_and_window()
        clustering = clustering_network(x, network)
        tuning = Tuning(
            variant=variant, consistency=weight, rampup=0, warmup_epochs=0, sharpen_epochs=4,
            tolerance=None,
        )  # fmt: skip
        deep_clustering.tune(clustering, x, tuning, PLAIN, seed=0)
        return deep_clustering.assignments(clustering, x)

    baseline = tuned("baseline", 10.0)
    torch.testing.assert_close(tuned("te", 0.0), baseline)
    assert float((tuned("te", 10.0) - baseline).abs().max()) > 0.01
