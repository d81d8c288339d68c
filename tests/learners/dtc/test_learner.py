"""Deep transfer clustering: its computations by hand, the count of classes, blobs found."""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.clustering.kmeans import semi_supervised_kmeans
from cilf.core.progress import listening
from cilf.core.random import torch_generator
from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners.dtc import class_count, deep_clustering
from cilf.learners.dtc.class_count import Cut, Probes
from cilf.learners.dtc.deep_clustering import (
    TemporalEnsemble,
    divergence,
    principal_clusters,
    principal_head,
    sigmoid_rampup,
    soft_assignments,
    target_distribution,
)
from cilf.learners.dtc.learner import DTC
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
    tuning = DTC(
        variant=variant, warmup_epochs=3, sharpen_epochs=8, training=PLAIN, settled=None
    )._tuning()
    deep_clustering.tune(clustering, x, tuning, seed=0)
    after = deep_clustering.assignments(clustering, x)
    assert float(entropy(after).mean()) < 0.95 * float(entropy(before).mean())
    truth = np.repeat([0, 1, 2], 30)
    assert class_count.clustering_accuracy(truth, after.argmax(1).numpy()) > 0.95


def test_tuning_trains_the_centres_and_leaves_the_first_network_alone() -> None:
    network, x = network_and_window()
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    clustering = clustering_network(x, network)
    centres = clustering.get_parameter("centres").detach().clone()
    tuning = DTC(warmup_epochs=1, sharpen_epochs=0)._tuning()
    deep_clustering.tune(clustering, x, tuning, seed=0)
    assert not torch.equal(clustering.get_parameter("centres"), centres)
    for name, value in network.state_dict().items():
        torch.testing.assert_close(value, weights[name], rtol=0, atol=0)


class Heard(NamedTuple):
    """What tuning looked at, in order: all assignments, and the targets of each epoch."""

    assignments: list[Tensor]
    targets: list[Tensor]


def listened_tuning(monkeypatch: pytest.MonkeyPatch, tuning: deep_clustering.Tuning) -> Heard:
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
    deep_clustering.tune(clustering_network(x, network), x, tuning, seed=0)
    return heard


def ordered(p: Tensor) -> Tensor:
    return p.sort(0).values


@pytest.mark.parametrize("variant", deep_clustering.VARIANTS)
def test_targets_are_made_anew_of_the_assignments_of_the_variant(
    variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = DTC(
        variant=variant, warmup_epochs=2, sharpen_epochs=6, refresh=2, ensemble_decay=0.5,
        training=PLAIN.replace(batch_size=90), settled=None,
    )._tuning()  # fmt: skip
    heard = listened_tuning(monkeypatch, tuning)
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


@pytest.mark.parametrize(("settled", "epochs"), [(None, 12), (0.6, 4), (0.1, 7), (0.0, 10)])
def test_tuning_ends_when_clusters_have_settled(
    settled: float | None, epochs: int, monkeypatch: pytest.MonkeyPatch
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
    learner = DTC(warmup_epochs=0, sharpen_epochs=12, refresh=3, training=PLAIN, settled=settled)
    with listening(lambda stage, number, total: done.append(number)):
        deep_clustering.tune(clustering, x, learner._tuning(), seed=0)
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
    tuning = DTC(
        variant=variant,
        consistency=3.0,
        rampup=rampup,
        training=Training(augmentation=augmentation),
    )
    return deep_clustering._Consistency(network, x, tuning._tuning(), seed=5), network, x


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
    draws, seen = torch_generator(5, "second view"), []
    for _ in range(2):
        with torch.no_grad():
            other = network(augment(x[ROWS], draws))
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
        tuning = DTC(
            variant=variant, consistency=weight, rampup=0, warmup_epochs=0, sharpen_epochs=4,
            training=PLAIN, settled=None,
        )._tuning()  # fmt: skip
        deep_clustering.tune(clustering, x, tuning, seed=0)
        return deep_clustering.assignments(clustering, x)

    baseline = tuned("baseline", 10.0)
    torch.testing.assert_close(tuned("te", 0.0), baseline)
    assert float((tuned("te", 10.0) - baseline).abs().max()) > 0.01


# ------------------------------------------------------------------ the number of classes


def slow_semi_supervised_kmeans(free: Array, labelled: list[Array], start: Array) -> Array:
    """Centres, one after the other; labelled instances count in their own class."""
    centres = start.copy()
    for _ in range(50):
        nearest = np.array([np.argmin([((z - c) ** 2).sum() for c in centres]) for z in free])
        for k in range(len(centres)):
            members = list(free[nearest == k]) + (list(labelled[k]) if k < len(labelled) else [])
            if members:
                centres[k] = np.mean(members, axis=0)
    return centres


def test_labelled_instances_count_in_kmeans_as_they_do_one_by_one() -> None:
    rng = np.random.default_rng(3)
    labelled = [rng.normal(c, 0.5, size=(n, 2)) for c, n in (((0, 0), 5), ((4, 0), 9))]
    drifted = ((0.7, 0.3), (4.2, 0.9), (0, 6))
    free = np.concatenate([rng.normal(c, 0.5, size=(8, 2)) for c in drifted])
    means = np.stack([each.mean(0) for each in labelled])
    found = semi_supervised_kmeans(
        torch.from_numpy(free), torch.from_numpy(means), 1,
        known_sizes=torch.tensor([5.0, 9.0]), generator=torch_generator(0, "test"), n_steps=100,
    )  # fmt: skip
    start = np.concatenate([means, free[-1:]])
    slow = slow_semi_supervised_kmeans(free, labelled, start)
    np.testing.assert_allclose(found.centres.numpy(), slow, atol=1e-6)


def cut_blobs(n_novel: int, n_known: int = 3, k_max: int = 4) -> dict[int, list[Cut]]:
    known, there = CORNERS[:n_known], CORNERS[: n_known + n_novel]
    probes = Probes(
        torch.from_numpy(blobs(known, seed=1)), np.repeat(np.arange(n_known), 30), n_known
    )
    return class_count.cuts(
        torch.from_numpy(blobs(there, seed=2)), probes, range(k_max + 1),
        anchor_share=0.6, n_splits=3, generator=torch_generator(0, "test"),
    )  # fmt: skip


@pytest.mark.parametrize("rule", class_count.RULES)
@pytest.mark.parametrize("n_novel", [0, 1, 2, 3])
def test_classes_of_separate_blobs_are_counted(n_novel: int, rule: str) -> None:
    cuts = cut_blobs(n_novel)
    assert class_count.chosen(cuts, rule, tie=0.15) == n_novel
    for cut in cuts[n_novel]:
        assert cut.accuracy == 1.0
        assert class_count.n_filled(cut.assignment, 0.01) == 3 + n_novel


def test_known_classes_that_are_gone_are_no_clusters() -> None:
    probes = Probes(torch.from_numpy(blobs(CORNERS[:3], seed=1)), np.repeat(np.arange(3), 30), 3)
    window = torch.from_numpy(blobs([CORNERS[0], CORNERS[3]], seed=2))
    cuts = class_count.cuts(
        window, probes, [1], anchor_share=0.6, n_splits=3, generator=torch_generator(0, "test")
    )
    assert [class_count.n_filled(cut.assignment, 0.01) for cut in cuts[1]] == [2, 2, 2]


def test_the_average_of_both_numbers_is_rounded_up_and_ties_go_to_the_larger() -> None:
    none = np.zeros(0, dtype=np.int64)
    measures = {0: (0.5, 0.9), 1: (0.4, 0.9), 2: (0.5, 0.8), 3: (0.1, 0.9), 4: (0.2, 0.1)}
    curves = {k: [Cut(none, *both)] for k, both in measures.items()}
    assert class_count.chosen(curves, "silhouette", 0.0) == 2
    assert class_count.chosen(curves, "accuracy", 0.0) == 3
    assert class_count.chosen(curves, "average", 0.0) == 3
    assert class_count.chosen(curves, "accuracy", 0.8) == 4


def test_without_labelled_instances_the_silhouette_decides() -> None:
    probes = Probes(torch.zeros(0, 2), np.zeros(0, dtype=np.int64), 2)
    window = torch.from_numpy(blobs(CORNERS[:3], seed=2))
    cuts = class_count.cuts(
        window, probes, range(4), anchor_share=0.6, n_splits=3,
        generator=torch_generator(0, "test"),
    )  # fmt: skip
    assert class_count.chosen(cuts, "average", tie=0.15) == 1


def test_every_class_is_once_for_validation() -> None:
    y = np.repeat(np.arange(5), 2)
    splits = list(class_count.anchor_splits(y, 0.6, n_splits=9))
    assert [int(split.sum()) for split in splits] == [6, 6, 6]
    assert bool(np.logical_or.reduce([~split for split in splits]).all())


# ------------------------------------------------------------------ the learner


@pytest.fixture(scope="module")
def fitted() -> DTC:
    X = blobs(CORNERS[:3], n=60, seed=1)
    return DTC(epochs=10, training=Training(batch_size=32), sharpen_epochs=20).fit(
        X, np.repeat([0, 1, 2], 60)
    )


@pytest.mark.parametrize("n_novel", [0, 1, 2])
def test_novel_blobs_are_found(fitted: DTC, n_novel: int) -> None:
    # Between and beyond the known classes, where the classifier is unsure.
    novel = [[0.0, 0.0], [4.5, 1.0]][:n_novel]
    X = blobs(CORNERS[:3] + novel, seed=5)
    found = fitted.detect(X)
    truth = np.repeat(np.arange(3 + n_novel), 30)
    assert found.n_novel == n_novel
    assert float(np.mean(found.is_novel == (truth >= 3))) > 0.95
    assert float(np.mean(found.label[truth < 3] == truth[truth < 3])) > 0.95
    if n_novel:
        rows = truth >= 3
        assert class_count.clustering_accuracy(truth[rows], found.cluster[rows]) > 0.95
        assert found.novelty[rows].min() > np.quantile(found.novelty[~rows], 0.9)


def test_the_window_is_tuned_until_it_falls_into_clusters(fitted: DTC) -> None:
    X = blobs([*CORNERS[:3], [0.0, 0.0]], seed=5, width=0.8)
    window = fitted._look(X)
    untuned = copy.copy(fitted).set_params(warmup_epochs=0, sharpen_epochs=0)
    before, after = (each._cluster(window, 4, fill=False).q for each in (untuned, fitted))
    assert after.max(1).mean() > before.max(1).mean() + 0.03
    plain, tuned = (each.detect(X, n_novel=1) for each in (untuned, fitted))
    assert float(np.abs(tuned.novelty - plain.novelty).max()) > 0.01
    assert tuned.embedding is not None
    assert not np.allclose(tuned.embedding, plain.embedding, atol=0.1)


def n_clusters(learner: DTC, X: Array) -> int:
    """The bottleneck has a direction for each."""
    embedding = learner.detect(X).embedding
    assert embedding is not None
    return int(embedding.shape[1])


def test_clusters_are_those_that_are_filled(fitted: DTC) -> None:
    quick = copy.copy(fitted).set_params(k_max=2, warmup_epochs=0, sharpen_epochs=0)
    assert n_clusters(quick, blobs(CORNERS[:3], seed=5)) == 3
    gone = blobs([CORNERS[0], [0.0, 0.0]], seed=5)  # two known classes are
    assert n_clusters(quick, gone) == 2
    uneven = np.concatenate([blobs(CORNERS[:2], 40, seed=5), blobs(CORNERS[2:3], 10, seed=5)])
    assert [
        n_clusters(copy.copy(quick).set_params(least_ratio=ratio), uneven) for ratio in (0.2, 0.3)
    ] == [3, 2]


def test_the_largest_cluster_counts_at_any_ratio(fitted: DTC) -> None:
    X = np.concatenate([blobs(CORNERS[:1], 40, seed=5), blobs(CORNERS[1:3], 10, seed=5)])
    strict = copy.copy(fitted).set_params(least_ratio=1.0, k_max=2, sharpen_epochs=1)
    assert n_clusters(strict, X) == 1


def test_filled_is_what_holds_the_share_and_never_what_is_empty() -> None:
    assignment = np.repeat([0, 1, 3], [10, 5, 1])  # 2 is empty
    filled = {ratio: class_count.n_filled(assignment, ratio) for ratio in (0.0, 0.1, 0.11, 0.5, 1)}
    assert filled == {0.0: 3, 0.1: 3, 0.11: 2, 0.5: 2, 1: 1}


def test_count_that_is_given_is_used(fitted: DTC) -> None:
    found = fitted.detect(blobs(CORNERS[:3], seed=5), n_novel=2)
    assert found.n_novel == 2
    assert found.curve == {}


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("variant", "tepp"), ("count", "best"), ("refresh", 0), ("tie", 2.0), ("settled", -1.0)],
)
def test_what_cannot_work_is_refused(parameter: str, value: object) -> None:
    with pytest.raises(BadConfig, match=parameter):
        DTC().set_params(**{parameter: value})._check_parameters()
