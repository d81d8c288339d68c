"""The rule "unexplained mass", on made-up classes where the answer is plain."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from cilf.clustering.unexplained_mass import UnexplainedMass, count_probability, elect

from .blobs import KNOWN, NOVEL, around, gather, label, nothing


def make_window(n_novel: int, seed: int, n: int = 60) -> Tensor:
    known, novel = around(KNOWN, n, seed), around(NOVEL[:n_novel], n, seed + 50)
    return torch.cat([known, novel])


def count(window: Tensor, *, seed: int = 0, **changes: Any) -> int:
    return len(UnexplainedMass(**changes).find_centres(gather(window, seed=seed)))


def nearest_novel(centres: Tensor) -> list[int]:
    """The true class that each centre lies at; -1 if none is near."""
    distances = torch.cdist(centres, NOVEL)
    return torch.where(distances.amin(1) < 3, distances.argmin(1), -1).tolist()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_novel", range(5))
def test_separated_classes_are_counted_right(n_novel: int, seed: int) -> None:
    centres = UnexplainedMass().find_centres(gather(make_window(n_novel, seed), seed=seed))
    assert sorted(nearest_novel(centres)) == list(range(n_novel))


@pytest.mark.parametrize(
    ("known", "novel"),
    [
        ((100, 10, 30), (12, 60)),
        ((0, 0, 100), (15, 15)),
        ((200, 200, 200), (20, 150)),
        ((20, 20, 20), (200, 30)),
        ((0, 0, 0), (50, 50)),
    ],
)
def test_classes_of_unequal_sizes_are_counted_right(
    known: tuple[int, ...], novel: tuple[int, ...]
) -> None:
    window = torch.cat([around(KNOWN, known, seed=0), around(NOVEL[:2], novel, seed=1)])
    assert count(window) == 2


@pytest.mark.parametrize("known", [(200, 0, 0), (100, 10, 1), (1, 1, 1), (0, 300, 3), (9, 9, 90)])
def test_no_mixture_of_known_classes_is_novel(known: tuple[int, ...]) -> None:
    quiet = [count(around(KNOWN, known, seed), seed=seed) for seed in range(5)]
    assert quiet == [0] * 5


def test_without_held_out_instances_the_memory_serves() -> None:
    for n_novel in (0, 2):
        evidence = gather(make_window(n_novel, seed=0), held_out=nothing())
        assert len(UnexplainedMass().find_centres(evidence)) == n_novel


def test_without_a_memory_held_out_instances_serve() -> None:
    for n_novel in (0, 2):
        held_out = label(KNOWN, 40, seed=9)
        evidence = gather(make_window(n_novel, seed=0), memory=nothing(), held_out=held_out)
        assert len(UnexplainedMass().find_centres(evidence)) == n_novel


def test_without_labelled_instances_nothing_is_found_and_a_given_number_is_kept() -> None:
    evidence = gather(make_window(2, seed=0), memory=nothing(), held_out=nothing())
    assert len(UnexplainedMass().find_centres(evidence)) == 0
    assert sorted(nearest_novel(UnexplainedMass().find(evidence, 2)[0])) == [0, 1]


def test_the_alarm_decides_whether_anything_is_novel() -> None:
    novel, known = make_window(2, seed=0), make_window(0, seed=0)
    assert count(novel, alarm=1e3) == 0
    assert count(novel, alarm=0.0) == 2
    assert count(known, alarm=0.0) >= 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, 2), ({"separation": 1.0}, 1), ({"support": 1e3}, 1), ({"quantile": 0.0}, 2)],
    ids=str,
)
def test_each_parameter_changes_the_count(changes: dict[str, float], expected: int) -> None:
    """Two novel classes are closer to each other than known classes are."""
    novel = torch.stack([NOVEL[0], NOVEL[0] + torch.eye(8)[7] * 8])
    window = torch.cat([around(KNOWN, 100, seed=0), around(novel, 100, seed=1)])
    assert count(window, **changes) == expected


@pytest.mark.parametrize(("n", "is_found"), [(3, False), (5, False), (10, True), (20, True)])
def test_a_class_of_fewer_than_six_instances_raises_no_alarm(n: int, is_found: bool) -> None:
    window = torch.cat([around(KNOWN, 60, seed=0), around(NOVEL[:1], n, seed=1)])
    assert (count(window) > 0) == is_found


def test_a_small_class_counts_only_if_it_lies_far_from_larger_ones() -> None:
    """Of two classes that lie as close as parts of one, the small one does not count."""
    far, near = NOVEL[1], NOVEL[0] + torch.eye(8)[7] * 4
    known, large = around(KNOWN, 100, seed=0), around(NOVEL[:1], 100, seed=1)
    for place, expected in ((far, 2), (near, 1)):
        assert count(torch.cat([known, large, around(place[None], 20, seed=2)])) == expected
    equal = torch.cat([known, large, around(near[None], 100, seed=2)])
    assert count(equal, even_share=0.6) >= count(equal, even_share=2.0)


def test_a_large_class_that_many_centres_split_is_still_one() -> None:
    for seed in range(3):
        window = torch.cat([around(KNOWN, 400, seed), around(NOVEL[:1], 400, seed + 50)])
        assert count(window, seed=seed) == 1


@pytest.mark.parametrize("n_true", [0, 1, 3])
@pytest.mark.parametrize("n_given", [1, 2, 3, 5, 8, 12])
def test_a_given_number_is_kept_with_centres_that_have_members(n_given: int, n_true: int) -> None:
    counts = [*range(9), *([n_given] if n_given > 8 else [])]
    window = make_window(n_true, seed=1)
    evidence = gather(window, counts)
    centres, probability = UnexplainedMass().find(evidence, n_given)
    assert centres.shape == (n_given, 8)
    assert probability == {n_given: 1.0}
    assert bool(torch.isfinite(centres).all())
    assert len(torch.unique(centres, dim=0)) == n_given
    nearest = torch.cdist(window, torch.cat([KNOWN, centres])).argmin(1)
    assert n_true < n_given or set(nearest.tolist()) >= set(range(3, 3 + n_given))


@pytest.mark.parametrize("n_true", [1, 2, 3, 4])
def test_the_true_number_given_finds_the_true_classes(n_true: int) -> None:
    centres, _ = UnexplainedMass().find(gather(make_window(n_true, seed=2)), n_true)
    assert sorted(nearest_novel(centres)) == list(range(n_true))


def test_fewer_than_there_are_merges_classes_and_keeps_all_of_their_mass() -> None:
    evidence = gather(make_window(4, seed=0))
    centres, _ = UnexplainedMass().find(evidence, 2)
    assert len(centres) == 2
    weights = torch.cdist(NOVEL, centres).argmin(1)
    assert set(weights.tolist()) == {0, 1}


def test_found_and_given_numbers_have_the_same_centres() -> None:
    evidence = gather(make_window(3, seed=0))
    found, _ = UnexplainedMass().find(evidence, None)
    given, _ = UnexplainedMass().find(evidence, len(found))
    assert torch.equal(found, given)


def test_no_class_is_found_if_none_is_wanted() -> None:
    centres, probability = UnexplainedMass().find(gather(make_window(2, seed=0)), 0)
    assert centres.shape == (0, 8)
    assert probability == {0: 1.0}


def test_a_clustering_without_novel_centres_is_certain_of_none() -> None:
    centres, probability = UnexplainedMass().find(gather(make_window(2, seed=0), [0]), None)
    assert len(centres) == 0
    assert probability == {0: 1.0}


@pytest.mark.parametrize("n_novel", range(5))
def test_the_true_number_is_the_most_likely(n_novel: int) -> None:
    _, probability = UnexplainedMass().find(gather(make_window(n_novel, seed=3)), None)
    assert sum(probability.values()) == pytest.approx(1.0)
    assert max(probability, key=lambda k: probability[k]) == n_novel


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10])
def test_windows_of_few_instances_do_no_harm(n: int) -> None:
    window = around(NOVEL[:1], n, seed=0)
    evidence = gather(window, [0, 1])
    for n_novel in (None, 1):
        centres, probability = UnexplainedMass().find(evidence, n_novel)
        assert bool(torch.isfinite(centres).all())
        assert sum(probability.values()) == pytest.approx(1.0)
    assert len(UnexplainedMass().find(evidence, 1)[0]) == 1


def test_equal_instances_do_no_harm() -> None:
    evidence = gather(NOVEL[:1].repeat(40, 1), range(6))
    assert len(UnexplainedMass().find_centres(evidence)) == 1
    assert UnexplainedMass().find(evidence, 3)[0].shape == (3, 8)


def test_clusterings_that_had_no_centre_to_spare_do_not_vote() -> None:
    assert elect({1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 6: 5, 7: 4}) == [4, 5, 4]
    assert elect({1: 1, 2: 2}) == [2]
    assert elect({1: 0, 2: 0}) == [0]


def test_clusterings_with_fewer_centres_than_there_are_classes_do_not_vote() -> None:
    assert elect({1: 0, 2: 1, 4: 2, 8: 5, 16: 7}) == [5, 7]


@pytest.mark.parametrize("votes", [[1], [2, 2, 3], [0, 0, 1], [12, 13, 15], [60, 64]])
@pytest.mark.parametrize("support", [0.0, 5.5, 9.0, 20.0])
def test_probabilities_sum_to_one(votes: list[int], support: float) -> None:
    found = count_probability(votes, support)
    assert sum(found.values()) == pytest.approx(1.0)
    assert all(0 < p <= 1 for p in found.values())
    assert list(found) == sorted(found)


def test_the_probability_peaks_at_the_votes_or_at_none_by_the_support() -> None:
    peaks = [
        max(found, key=lambda k: found[k])
        for found in (count_probability([3, 3, 4], support) for support in (1.0, 4.0, 9.0, 15.0))
    ]
    assert peaks == [0, 0, 3, 3]
    novel = [1 - count_probability([3, 3, 4], support).get(0, 0.0) for support in (1.0, 6.5, 9.0)]
    assert novel == sorted(novel)
    assert novel[1] == pytest.approx(0.5, abs=0.01)


def test_larger_numbers_are_less_certain() -> None:
    few, many = (count_probability([n] * 5, 20.0) for n in (2, 20))
    assert few[2] > 2 * many[20]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_novel", [2, 3])
def test_a_window_of_novel_classes_alone_keeps_all_of_them(n_novel: int, seed: int) -> None:
    window = around(NOVEL[:n_novel], 80, seed)
    assert count(window, seed=seed) == n_novel
