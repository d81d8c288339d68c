"""The rules for the number of novel classes, on data where the answer is plain."""

import math

import numpy as np
import pytest
import torch

from cilf.clustering.class_count import (
    ALIKE,
    Enough,
    apart,
    elected,
    excess_mass,
    explained,
    grouped,
    largest,
    separation,
    separations,
    sharpest_bend,
)
from cilf.clustering.kmeans import Clusters, semi_supervised_kmeans

KNOWN = torch.tensor([[0.0, 0, 0, 0], [12.0, 0, 0, 0], [0.0, 12, 0, 0]])
NOVEL = torch.tensor([[12.0, 12, 0, 0], [0.0, 0, 12, 0], [0.0, 0, 0, 12]])


def around(centres: torch.Tensor, n: int, seed: int) -> torch.Tensor:
    noise = np.random.default_rng(seed).normal(size=(len(centres) * n, 4))
    return centres.repeat_interleave(n, 0) + torch.tensor(noise, dtype=torch.float32)


def draws() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def counted(z: torch.Tensor, seed: int) -> int:
    """What the rule says of a window beside held-out instances of the known classes."""
    held_out, labels = around(KNOWN, 20, seed), torch.arange(3).repeat_interleave(20)
    clusterings = {k: semi_supervised_kmeans(z, KNOWN, k, generator=draws()) for k in range(7)}
    novel = excess_mass(
        clusterings, z, held_out, labels, surplus=0.6, doubt=1, least_share=0.4,
        leniency=0.2, generator=draws(),
    )  # fmt: skip
    return len(novel)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_novel", [0, 1, 2, 3])
def test_separated_classes_are_counted_right(n_novel: int, seed: int) -> None:
    z = torch.cat([around(KNOWN, 100, seed), around(NOVEL[:n_novel], 100, seed + 50)])
    assert counted(z, seed + 100) == n_novel


def test_a_window_without_known_classes_is_counted_by_held_out_ones() -> None:
    assert counted(around(NOVEL[:2], 100, seed=1), seed=2) == 2


def test_a_cluster_that_known_data_explain_is_not_real() -> None:
    centres = torch.tensor([[0.0], [10.0], [11.0]])
    clusters = Clusters(centres, torch.tensor([0] * 20 + [1] * 10 + [2] * 10), n_known=2)
    elsewhere, there = torch.tensor([[0.0], [10.0]] * 20), torch.tensor([[11.2]] * 8)
    held_out = torch.cat([elsewhere, there])
    labels = torch.tensor([0, 1] * 20 + [1] * 8)

    def real(n: int) -> list[int]:
        expected = explained(clusters, held_out[:n], labels[:n])
        enough = Enough(clusters, *expected, surplus=1.0, doubt=1.0, least_share=0.4)
        return [2 + i for i in range(1) if enough.each(i)]

    assert real(48) == []
    assert real(40) == [2]
    assert real(0) == [2]


def test_what_is_explained_by_hand() -> None:
    centres = torch.tensor([[0.0], [10.0], [20.0]])
    clusters = Clusters(centres, torch.tensor([0] * 30 + [1] * 30 + [2] * 40), n_known=2)
    held_out = torch.tensor([[0.0]] * 4 + [[10.0]] * 4 + [[20.0]] * 2)
    expected, deviation = explained(clusters, held_out, torch.tensor([0] * 4 + [1] * 6))
    average = ((0 / 4 + 2 / 6) / 2 * 10 + 1) / (10 + 2)
    total, variance = 0.0, 0.0
    for strays, n_held_out in ((0, 4), (2, 6)):  # of the two classes, in the third cluster
        share = (strays + ALIKE * average) / (n_held_out + ALIKE)
        n = 30 / (1 - share)
        total += n * share
        variance += n**2 * share * (1 - share) / (n_held_out + ALIKE + 1) + n * share
    assert float(expected[2]) == pytest.approx(total)
    assert float(deviation[2]) == pytest.approx(math.sqrt(variance))


def test_a_large_class_explains_more_of_what_strays_from_it() -> None:
    centres = torch.tensor([[0.0], [10.0], [20.0]])
    held_out = torch.tensor([[0.0]] * 20 + [[10.0]] * 15 + [[20.0]] * 5)
    labels = torch.tensor([0] * 20 + [1] * 20)  # only the second class strays
    found = []
    for sizes in ((90, 10), (10, 90)):
        assignment = torch.tensor([0] * sizes[0] + [1] * sizes[1] + [2] * 20)
        clusters = Clusters(centres, assignment, n_known=2)
        found.append(float(explained(clusters, held_out, labels)[0][2]))
    assert found[1] > 1.5 * found[0]


def test_no_more_known_instances_are_expected_than_there_are() -> None:
    centres = torch.tensor([[0.0], [20.0]])
    clusters = Clusters(centres, torch.tensor([0] * 5 + [1] * 5), n_known=1)
    held_out = torch.tensor([[0.0]] + [[20.0]] * 9)
    expected, _ = explained(clusters, held_out, torch.zeros(10, dtype=torch.long))
    assert float(expected.sum()) == pytest.approx(10.0, rel=0.1)


def test_clusterings_that_had_no_centre_to_spare_do_not_vote() -> None:
    assert elected({0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 6: 5, 7: 4}) == 4
    assert elected({0: 0, 1: 1, 2: 2}) == 2
    assert elected({0: 0, 1: 0, 2: 0}) == 0
    assert elected({0: 0}) == 0


def test_separation_is_d_prime_for_many_instances() -> None:
    rng = np.random.default_rng(0)
    a = torch.tensor(rng.normal(0, 1, size=(4000, 2)), dtype=torch.float32)
    b = torch.tensor(rng.normal((5, 0), 1, size=(4000, 2)), dtype=torch.float32)
    assert separation(a, b) == pytest.approx(5.0, abs=0.15)
    assert separation(b, a) == pytest.approx(separation(a, b), rel=1e-5)


def test_separation_is_not_fooled_by_many_dimensions() -> None:
    """Two random parts of one cloud: a line through their means separates them, seemingly."""
    z = torch.randn(24, 400, generator=draws())
    a, b = z[:12], z[12:]
    axis = (a.mean(0) - b.mean(0)) / (a.mean(0) - b.mean(0)).norm()
    naive = float(((a @ axis).mean() - (b @ axis).mean()) / (a @ axis).std())
    assert naive > 3
    assert separation(a, b) < 1


def test_halves_of_one_class_are_joined_and_classes_are_not() -> None:
    one, other = around(NOVEL[:1], 40, seed=3), around(NOVEL[1:2], 40, seed=4)
    halves = one[:, 0] > one[:, 0].median()
    known = [around(KNOWN[c : c + 1], 40, seed=5 + c) for c in range(3)]
    groups = [one[halves], one[~halves], other]
    apart_by = separations(groups)
    assert grouped(apart_by, [0, 1, 2], closest=apart(known, 0.15, draws())) == [[0, 1], [2]]
    assert grouped(apart_by, [0, 1, 2], closest=0.0) == [[0], [1], [2]]
    assert grouped(apart_by, [], closest=1.0) == []


def test_what_was_joined_is_as_far_from_others_as_its_parts_on_average() -> None:
    apart_by = np.array([[0.0, 1, 3], [1, 0, 6], [3, 6, 0]], dtype=np.float32)
    assert grouped(apart_by, [0, 1, 2], closest=4.0) == [[0, 1], [2]]  # (3 + 6) / 2
    assert grouped(apart_by, [0, 1, 2], closest=5.0) == [[0, 1, 2]]
    assert grouped(apart_by, [0, 2], closest=4.0) == [[0, 2]]


def test_apart_goes_from_halves_of_a_class_to_whole_classes() -> None:
    known = [around(KNOWN[c : c + 1], 200, seed=c) for c in range(3)]
    steps = [apart(known, leniency, draws()) for leniency in (0.0, 0.5, 1.0)]
    assert steps[0] == pytest.approx(2.65, abs=0.4)  # a normal density cut in the middle
    assert steps[2] == pytest.approx(12.0, abs=1.0)  # as KNOWN was made
    assert steps[1] == pytest.approx(math.sqrt(steps[0] * steps[2]))


def test_a_class_of_few_instances_says_nothing_about_halves() -> None:
    assert apart([torch.randn(5, 2, generator=draws())], 0.15, draws()) == 0.0
    alone = [around(KNOWN[:1], 50, seed=0)]
    assert apart(alone, 0.9, draws()) == pytest.approx(apart(alone, 0.0, draws()))


def test_curves_with_undefined_values() -> None:
    assert largest({0: math.nan, 1: 0.2, 2: 0.5}) == 2
    assert largest({0: math.nan}) == 0
    assert sharpest_bend({0: math.nan, 1: 0.1, 2: 0.9, 3: 0.88, 4: 0.86}) == 2
    assert sharpest_bend({0: 0.3, 1: 0.6}) == 1


def test_a_large_class_that_many_centres_cut_into_parts_is_still_one() -> None:
    """Each part is too small to be a class by itself where centres are many."""
    known = torch.eye(4) * 20
    z = torch.cat([around(known, 400, seed=0), around(torch.full((1, 4), 20.0), 400, seed=1)])
    held_out, labels = around(known, 20, seed=2), torch.arange(4).repeat_interleave(20)
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        clusterings = {
            k: semi_supervised_kmeans(z, known, k, generator=generator) for k in range(9)
        }
        free = excess_mass(
            clusterings, z, held_out, labels, surplus=0.6, doubt=1.0, least_share=0.4,
            leniency=0.3, generator=generator,
        )  # fmt: skip
        assert len(free) == 1


def test_groups_that_cannot_be_told_apart_are_not_apart() -> None:
    """All instances at one place: the leave-one-out line may point the wrong way."""
    same = torch.ones(20, 3)
    assert separation(same[:10], same[10:]) == 0.0
    assert apart([same, same.clone()], 0.3, draws()) == 0.0


def test_a_class_of_far_clumps_is_novel_though_no_clump_is_a_class() -> None:
    """Many centres find the clumps, each too small; a single one gathers them all."""
    known = torch.eye(4)[:2] * 60
    clumps = torch.tensor([0.0, 0.0, 60.0, 60.0]) + 25 * torch.eye(4)
    z = torch.cat([around(known, 32, seed=0), around(clumps, 8, seed=1)])
    held_out, labels = around(known, 10, seed=2), torch.arange(2).repeat_interleave(10)
    generator = torch.Generator().manual_seed(0)
    clusterings = {k: semi_supervised_kmeans(z, known, k, generator=generator) for k in range(8)}
    free = excess_mass(
        clusterings, z, held_out, labels, surplus=0.6, doubt=1.5, least_share=0.4,
        leniency=0.3, generator=generator,
    )  # fmt: skip
    assert len(free) == 1
    assert float((free[0] - clumps.mean(0)).norm()) < 3
