from __future__ import annotations

import torch
from torch import Tensor

from cilf.clustering.kmeans import Clusters
from cilf.learners.cilf.pseudo_labels import PseudoLabelled


def column(*values: float) -> Tensor:
    return torch.tensor(values)[:, None]


def pool(memory: Tensor, true: list[int]) -> PseudoLabelled:
    clusters = Clusters(column(0.0, 10.0), torch.tensor([0, 0, 1]), n_known=1)
    return PseudoLabelled.of(
        column(0.0, 2.0, 9.0), clusters, memory, torch.tensor(true, dtype=torch.long)
    )


def test_batches_draw_from_the_easy_part_and_from_the_memory() -> None:
    rows = pool(column(5.0, 6.0), [0, 0]).batch(
        torch.tensor([1]), 4, 3, torch.Generator().manual_seed(0)
    )
    assert rows[:4].tolist() == [1, 1, 1, 1]
    assert set(rows[4:].tolist()) <= {3, 4}
    assert len(rows) == 7


def test_without_a_memory_nothing_is_replayed() -> None:
    rows = pool(column(), []).batch(torch.tensor([0, 2]), 5, 3, torch.Generator().manual_seed(0))
    assert set(rows.tolist()) <= {0, 2}
    assert len(rows) == 5


def test_known_centres_follow_the_memory_and_free_ones_the_window() -> None:
    replayed = pool(column(5.0, 7.0), [0, 0])
    assert replayed.followed(replayed.x, column(0.0, 10.0), beta=0.5).tolist() == [[6.0], [9.0]]


def test_without_a_memory_known_centres_are_annealed_towards_the_window() -> None:
    alone = pool(column(), [])
    assert alone.followed(alone.x, column(0.0, 10.0), beta=0.5).tolist() == [[0.5], [9.0]]


def test_only_the_window_is_relabelled() -> None:
    replayed = pool(column(10.0, 10.0), [0, 0])
    clusters = replayed.relabelled(replayed.x, column(0.0, 2.5))
    assert clusters.assignment.tolist() == [0, 1, 1]
    assert replayed.labels.tolist() == [0, 1, 1, 0, 0]
