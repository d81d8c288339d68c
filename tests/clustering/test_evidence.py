"""What counting rules get."""

from __future__ import annotations

import pytest
import torch

from cilf.clustering.evidence import (
    CountRule,
    Evidence,
    Marks,
    centres_to_try,
    counts_to_try,
    measure_validity,
)
from cilf.clustering.kmeans import Clusters
from cilf.clustering.p_values import Labelled
from cilf.clustering.silhouette import silhouette
from cilf.clustering.validity_curve import Silhouette


@pytest.mark.parametrize(("n_instances", "most"), [(0, 1), (15, 1), (16, 2), (1000, 8)])
def test_classes_that_would_be_tiny_are_not_tried(n_instances: int, most: int) -> None:
    assert list(counts_to_try(8, n_instances)) == list(range(most + 1))


@pytest.mark.parametrize(
    ("n_instances", "most"), [(40, 3), (500, 8), (1156, 8), (1157, 9), (5000, 18), (10**6, 32)]
)
def test_without_k_max_the_largest_number_follows_the_window(n_instances: int, most: int) -> None:
    assert list(counts_to_try(None, n_instances)) == list(range(most + 1))


def test_validity_is_measured_on_every_so_manieth_instance() -> None:
    z = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    clusters = Clusters(z[:2], torch.arange(30) // 15, n_known=1)
    assert measure_validity({1: z}, {1: clusters}) == {1: silhouette(z, clusters.assignment)}
    every_third = silhouette(z[::3], clusters.assignment[::3])
    assert measure_validity({1: z}, {1: clusters}, step=3) == {1: every_third}


@pytest.mark.parametrize(
    ("n_instances", "expected"),
    [
        (0, [0, 1]),
        (15, [0, 1]),
        (16, [0, 1, 2]),
        (64, [*range(9)]),
        (95, [*range(9)]),
        (96, [*range(9), 12]),
        (400, [*range(9), 12, 16, 24, 32, 48]),
        (10**6, [*range(9), 12, 16, 24, 32, 48, 64]),
    ],
)
def test_a_window_has_a_novel_centre_for_eight_instances_at_most(
    n_instances: int, expected: list[int]
) -> None:
    assert centres_to_try(None, n_instances) == expected


@pytest.mark.parametrize(
    ("k_max", "expected"), [(1, [0, 1]), (10, [*range(9)]), (12, [*range(9), 12])]
)
def test_no_more_novel_centres_than_k_max(k_max: int, expected: list[int]) -> None:
    assert centres_to_try(k_max, 1000) == expected


def gather(marks: Marks | None = None) -> Evidence:
    """One known centre at 0, one novel one at 10."""
    clusters = Clusters(torch.tensor([[0.0], [10.0]]), torch.tensor([0, 1]), n_known=1)
    return Evidence(
        clusterings={0: Clusters(clusters.centres[:1], torch.tensor([0, 0]), 1), 1: clusters},
        points=dict.fromkeys((0, 1), torch.tensor([[1.0], [9.0]])),
        memory=dict.fromkeys((0, 1), Labelled(torch.tensor([[9.0], [8.0]]), torch.tensor([0, 0]))),
        held_out=dict.fromkeys(
            (0, 1), Labelled(torch.tensor([[1.0], [7.0]]), torch.tensor([0, 0]))
        ),
        curve={0: 0.1, 1: 0.9},
        generator=torch.Generator(),
        marks=marks,
    )


def test_labelled_instances_are_in_the_cluster_of_the_nearest_centre() -> None:
    clusters, labels = gather().assign_labelled(1)
    assert clusters.tolist() == [1, 1, 0, 1]  # the memory, and what is held out
    assert labels.tolist() == [0, 0, 0, 0]
    assert gather().assign_labelled(0)[0].tolist() == [0, 0, 0, 0]


def test_labelled_instances_that_are_not_marked_are_in_known_clusters() -> None:
    true, false = torch.tensor([True, True]), torch.tensor([False, False])
    marks = Marks(memory=torch.tensor([True, False]), held_out=true)
    assert gather(marks).assign_labelled(1)[0].tolist() == [1, 0, 0, 1]
    marks = Marks(memory=false, held_out=false)
    assert gather(marks).assign_labelled(1)[0].tolist() == [0, 0, 0, 0]


class TakesOne(CountRule):
    def find_centres(self, evidence: Evidence) -> torch.Tensor:
        return evidence.clusterings[1].novel


@pytest.mark.parametrize("rule", [TakesOne(), Silhouette()])
def test_a_rule_is_certain_of_what_it_finds_unless_it_says_otherwise(rule: CountRule) -> None:
    centres, probability = rule.find(gather(), None)
    assert centres.tolist() == [[10.0]]
    assert probability == {1: 1.0}
    centres, probability = rule.find(gather(), 0)
    assert len(centres) == 0
    assert probability == {0: 1.0}
