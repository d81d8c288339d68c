"""Algorithm 2 of the paper: its weights, order and pace, and the tuning on pseudo-labels."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from cilf import CILF
from cilf.clustering.kmeans import Clusters
from cilf.core.types import Array
from cilf.learners.cilf import curriculum
from cilf.learners.cilf.curriculum import CurriculumDetector, PseudoLabelled
from cilf.learners.cilf.embedding import Labelled, Loss
from cilf.nn.network import as_tensor

QUICK = CurriculumDetector(epochs=2, steps=3, k_max=3, pace_every=2)


def with_detector(fitted: CILF, **changes: Any) -> CILF:
    return copy.copy(fitted).set_params(detector=QUICK.replace(**changes))


def test_the_curve_has_every_count_that_was_tuned_for(fitted: CILF, window: Array) -> None:
    found = with_detector(fitted).detect(window)
    assert sorted(found.curve) == [0, 1, 2, 3]


@pytest.mark.parametrize("n_novel", [0, 1, 3, 5])
def test_novelty_is_the_same_whatever_number_is_given(
    n_novel: int, fitted: CILF, window: Array
) -> None:
    learner = with_detector(fitted)
    assert np.array_equal(learner.detect(window, n_novel).novelty, learner.detect(window).novelty)


def test_no_novel_class_is_tuned_for_like_any_other_number(fitted: CILF, window: Array) -> None:
    tuned = with_detector(fitted).detect(window, n_novel=0)
    assert not tuned.is_novel.any()
    assert not np.allclose(tuned.embedding, fitted.embed(window), atol=1e-3)


def test_tuning_leaves_the_learner_and_changes_the_copy(fitted: CILF, window: Array) -> None:
    before = fitted.embed(window)
    tuned = with_detector(fitted).detect(window, n_novel=2)
    frozen = with_detector(fitted, epochs=0).detect(window, n_novel=2)
    assert np.array_equal(fitted.embed(window), before)
    assert np.allclose(frozen.embedding, before, atol=1e-5)
    assert not np.allclose(tuned.embedding, before, atol=1e-3)


@pytest.mark.parametrize(
    "change",
    [{"gamma": 0.2}, {"pace_start": 1.0}, {"pace_growth": 1.0}, {"pace_every": 6}, {"epochs": 1},
     {"steps": 5}, {"learning_rate": 0.001}, {"replay_size": 16}],
    ids=str,
)  # fmt: skip
def test_each_parameter_changes_the_tuning(
    change: dict[str, Any], fitted: CILF, window: Array
) -> None:
    usual = with_detector(fitted).detect(window, n_novel=2)
    changed = with_detector(fitted, **change).detect(window, n_novel=2)
    assert not np.allclose(usual.embedding, changed.embedding, atol=1e-5)


def measured_prototypes(
    fitted: CILF, window: Array, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> list[Tensor]:
    """The prototypes of each batch of the tuning for two novel classes."""
    seen: list[Tensor] = []
    measure = Loss.measure

    def spy(self: Loss, z: Tensor, y: Tensor, prototypes: Tensor, *rest: Any) -> Tensor:
        seen.append(prototypes)
        return measure(self, z, y, prototypes, *rest)

    monkeypatch.setattr(Loss, "measure", spy)
    learner = with_detector(fitted, **changes)
    x = as_tensor(window, learner._network.device)
    learner.detector._tune(x, 2, learner._model(), seed=0)
    return seen


def test_the_loss_starts_from_the_prototypes_of_the_weighted_kmeans(
    fitted: CILF, window: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measured_prototypes(fitted, window, monkeypatch)[0]
    z, known = torch.from_numpy(fitted.embed(window)), fitted._centres[0]
    weights = curriculum.weigh_by_confusion(z, known, fitted.loss.alpha, QUICK.gamma)
    nearest = torch.cdist(z, first).argmin(1)
    for label, prototype in enumerate(first):
        own = weights * (nearest == label)
        mean = (own[:, None] * z).sum(0) / own.sum()
        expected = mean if label >= len(known) else 0.8 * known[label] + 0.2 * mean
        assert torch.allclose(prototype, expected, atol=1e-3)


def test_batches_follow_the_window_unless_their_number_is_given(
    fitted: CILF, window: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = measured_prototypes(fitted, window, monkeypatch, steps=None, epochs=1)
    assert len(usual) == 3 * QUICK.pace_every  # 75 instances fill two batches of 64
    assert QUICK.replace(steps=None).count_steps(1000, 64) == 16
    assert QUICK.replace(steps=7).count_steps(1000, 64) == 7


def test_the_pace_starts_afresh_in_every_epoch(
    fitted: CILF, window: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[int] = []
    draw = PseudoLabelled.draw_batch

    def spy(self: PseudoLabelled, easy: Tensor, *rest: Any) -> Tensor:
        shares.append(len(easy))
        return draw(self, easy, *rest)

    monkeypatch.setattr(PseudoLabelled, "draw_batch", spy)
    measured_prototypes(fitted, window, monkeypatch, steps=3, pace_every=1, epochs=2)
    assert shares == [15, 45, 75] * 2


def test_confusion_weights_by_hand() -> None:
    prototypes = torch.tensor([[0.0], [4.0]])
    z = torch.tensor([[0.0], [2.0], [9.0]])
    alpha, gamma = 0.3, 0.8
    u = []
    for point in (0.0, 2.0, 9.0):
        odds = np.exp([-alpha * point**2, -alpha * (point - 4.0) ** 2])
        u.append(-np.log(odds.max() / odds.sum()))
    threshold = 0.2 * min(u) + 0.8 * max(u)
    expected = [(value - threshold) ** 2 for value in u]
    found = curriculum.weigh_by_confusion(z, prototypes, alpha, gamma)
    assert found.tolist() == pytest.approx(expected, rel=1e-4)


def test_pace_grows_to_the_whole_window() -> None:
    shares = [curriculum.pace(step, 0.2, 3.0, 10) for step in range(40)]
    assert shares == sorted(shares)
    assert shares[:10] == [0.2] * 10
    assert shares[20:] == [1.0] * 20


def test_pace_stays_at_the_whole_window_however_long_it_grows() -> None:
    assert curriculum.pace(10**6, 0.2, 3.0, 10) == 1.0


def column(*values: float) -> Tensor:
    return torch.tensor(values)[:, None]


def pool(*memory: float) -> PseudoLabelled:
    """A window of three instances; the memory is of class 0."""
    clusters = Clusters(column(0.0, 10.0), torch.tensor([0, 0, 1]), n_known=1)
    labelled = Labelled(column(*memory), torch.zeros(len(memory), dtype=torch.long))
    return PseudoLabelled.combine(column(0.0, 2.0, 9.0), clusters, labelled if memory else None)


def test_batches_draw_from_the_easy_part_and_from_the_memory() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = pool(5.0, 6.0).draw_batch(torch.tensor([1]), 4, 3, generator)
    assert rows[:4].tolist() == [1, 1, 1, 1]
    assert set(rows[4:].tolist()) <= {3, 4}
    assert len(rows) == 7


def test_without_a_memory_nothing_is_replayed() -> None:
    rows = pool().draw_batch(torch.tensor([0, 2]), 5, 3, torch.Generator().manual_seed(0))
    assert set(rows.tolist()) <= {0, 2}
    assert len(rows) == 5


def test_known_centres_follow_the_memory_and_novel_ones_are_annealed() -> None:
    replayed = pool(5.0, 7.0)
    moved = replayed.move_centres(replayed.x, column(0.0, 10.0), beta=0.5)
    assert moved.tolist() == [[6.0], [9.5]]


def test_without_a_memory_all_centres_are_annealed_towards_the_window() -> None:
    alone = pool()
    assert alone.move_centres(alone.x, column(0.0, 10.0), beta=0.5).tolist() == [[0.5], [9.5]]


def test_only_the_window_is_relabelled() -> None:
    replayed = pool(10.0, 10.0)
    clusters = replayed.relabel(replayed.x, column(0.0, 2.5))
    assert clusters.assignment.tolist() == [0, 1, 1]
    assert replayed.labels.tolist() == [0, 1, 1, 0, 0]
