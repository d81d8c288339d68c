"""The rule "excess mass", on data where the answer is plain."""

import math

import numpy as np
import pytest
import torch

from cilf.clustering.evidence import Evidence
from cilf.clustering.excess_mass import (
    PRIOR_SIZE,
    ExcessMass,
    SizeTest,
    elect_count,
    expect_known,
    merge_clusters,
    separation,
    separation_threshold,
    separations,
)
from cilf.clustering.kmeans import Clusters, semi_supervised_kmeans

KNOWN = torch.tensor([[0.0, 0, 0, 0], [12.0, 0, 0, 0], [0.0, 12, 0, 0]])
NOVEL = torch.tensor([[12.0, 12, 0, 0], [0.0, 0, 12, 0], [0.0, 0, 0, 12]])


def around(centres: torch.Tensor, n: int, seed: int) -> torch.Tensor:
    noise = np.random.default_rng(seed).normal(size=(len(centres) * n, 4))
    return centres.repeat_interleave(n, 0) + torch.tensor(noise, dtype=torch.float32)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def find_centres(
    rule: ExcessMass,
    z: torch.Tensor,
    known: torch.Tensor,
    held_out: torch.Tensor,
    k_max: int,
    seed: int = 0,
) -> torch.Tensor:
    """What the rule finds in a window beside equally many held-out instances of known classes."""
    generator = torch.Generator().manual_seed(seed)
    counts = range(k_max + 1)
    clusterings = {k: semi_supervised_kmeans(z, known, k, generator=generator) for k in counts}
    labels = torch.arange(len(known)).repeat_interleave(len(held_out) // len(known))
    return rule.find_centres(
        Evidence(
            clusterings=clusterings,
            points=dict.fromkeys(counts, z),
            held_out=dict.fromkeys(counts, held_out),
            held_out_labels=labels,
            curve={},
            generator=generator,
        )
    )


def counted(z: torch.Tensor, seed: int, **changes: float) -> int:
    rule = ExcessMass(**({"z_value": 1.0, "separation": 0.2} | changes))
    return len(find_centres(rule, z, KNOWN, around(KNOWN, 20, seed), k_max=6))


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
        expected = expect_known(clusters, held_out[:n], labels[:n])
        rule = ExcessMass(expected_weight=1.0, z_value=1.0, min_share=0.4)
        return [2 + i for i in range(1) if SizeTest(clusters, expected, rule).is_class(i)]

    assert real(48) == []
    assert real(40) == [2]
    assert real(0) == [2]


def test_what_is_explained_by_hand() -> None:
    centres = torch.tensor([[0.0], [10.0], [20.0]])
    clusters = Clusters(centres, torch.tensor([0] * 30 + [1] * 30 + [2] * 40), n_known=2)
    held_out = torch.tensor([[0.0]] * 4 + [[10.0]] * 4 + [[20.0]] * 2)
    expected, deviation = expect_known(clusters, held_out, torch.tensor([0] * 4 + [1] * 6))
    average = ((0 / 4 + 2 / 6) / 2 * 10 + 1) / (10 + 2)
    total, variance = 0.0, 0.0
    for strays, n_held_out in ((0, 4), (2, 6)):  # of the two classes, in the third cluster
        share = (strays + PRIOR_SIZE * average) / (n_held_out + PRIOR_SIZE)
        n = 30 / (1 - share)
        total += n * share
        variance += n**2 * share * (1 - share) / (n_held_out + PRIOR_SIZE + 1) + n * share
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
        found.append(float(expect_known(clusters, held_out, labels)[0][2]))
    assert found[1] > 1.5 * found[0]


def test_no_more_known_instances_are_expected_than_there_are() -> None:
    centres = torch.tensor([[0.0], [20.0]])
    clusters = Clusters(centres, torch.tensor([0] * 5 + [1] * 5), n_known=1)
    held_out = torch.tensor([[0.0]] + [[20.0]] * 9)
    expected, _ = expect_known(clusters, held_out, torch.zeros(10, dtype=torch.long))
    assert float(expected.sum()) == pytest.approx(10.0, rel=0.1)


def test_clusterings_that_had_no_centre_to_spare_do_not_vote() -> None:
    assert elect_count({0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 4, 6: 5, 7: 4}) == 4
    assert elect_count({0: 0, 1: 1, 2: 2}) == 2
    assert elect_count({0: 0, 1: 0, 2: 0}) == 0
    assert elect_count({0: 0}) == 0


def test_separation_is_d_prime_for_many_instances() -> None:
    rng = np.random.default_rng(0)
    a = torch.tensor(rng.normal(0, 1, size=(4000, 2)), dtype=torch.float32)
    b = torch.tensor(rng.normal((5, 0), 1, size=(4000, 2)), dtype=torch.float32)
    assert separation(a, b) == pytest.approx(5.0, abs=0.15)
    assert separation(b, a) == pytest.approx(separation(a, b), rel=1e-5)


def test_separation_is_not_fooled_by_many_dimensions() -> None:
    """Two random parts of one cloud: a line through their means separates them, seemingly."""
    z = torch.randn(24, 400, generator=seeded())
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
    distances = separations(groups)
    assert merge_clusters(
        distances, [0, 1, 2], closest=separation_threshold(known, 0.15, seeded())
    ) == [[0, 1], [2]]
    assert merge_clusters(distances, [0, 1, 2], closest=0.0) == [[0], [1], [2]]
    assert merge_clusters(distances, [], closest=1.0) == []


def test_what_was_joined_is_as_far_from_others_as_its_parts_on_average() -> None:
    distances = np.array([[0.0, 1, 3], [1, 0, 6], [3, 6, 0]], dtype=np.float32)
    assert merge_clusters(distances, [0, 1, 2], closest=4.0) == [[0, 1], [2]]  # (3 + 6) / 2
    assert merge_clusters(distances, [0, 1, 2], closest=5.0) == [[0, 1, 2]]
    assert merge_clusters(distances, [0, 2], closest=4.0) == [[0, 2]]


def test_apart_goes_from_halves_of_a_class_to_whole_classes() -> None:
    known = [around(KNOWN[c : c + 1], 200, seed=c) for c in range(3)]
    steps = [separation_threshold(known, leniency, seeded()) for leniency in (0.0, 0.5, 1.0)]
    assert steps[0] == pytest.approx(2.65, abs=0.4)  # a normal density cut in the middle
    assert steps[2] == pytest.approx(12.0, abs=1.0)  # as KNOWN was made
    assert steps[1] == pytest.approx(math.sqrt(steps[0] * steps[2]))


def test_a_class_of_few_instances_says_nothing_about_halves() -> None:
    assert separation_threshold([torch.randn(5, 2, generator=seeded())], 0.15, seeded()) == 0.0
    alone = [around(KNOWN[:1], 50, seed=0)]
    assert separation_threshold(alone, 0.9, seeded()) == pytest.approx(
        separation_threshold(alone, 0.0, seeded())
    )


def test_a_large_class_that_many_centres_cut_into_parts_is_still_one() -> None:
    """Each part is too small to be a class by itself where centres are many."""
    known = torch.eye(4) * 20
    z = torch.cat([around(known, 400, seed=0), around(torch.full((1, 4), 20.0), 400, seed=1)])
    held_out = around(known, 20, seed=2)
    for seed in range(3):
        assert len(find_centres(ExcessMass(z_value=1.0), z, known, held_out, 8, seed)) == 1


def test_groups_that_cannot_be_told_apart_are_not_separation_threshold() -> None:
    """All instances at one place: the leave-one-out line may point the wrong way."""
    same = torch.ones(20, 3)
    assert separation(same[:10], same[10:]) == 0.0
    assert separation_threshold([same, same.clone()], 0.3, seeded()) == 0.0


def test_a_class_of_far_clumps_is_novel_though_no_clump_is_a_class() -> None:
    """Many centres find the clumps, each too small; a single one gathers them all."""
    known = torch.eye(4)[:2] * 60
    clumps = torch.tensor([0.0, 0.0, 60.0, 60.0]) + 25 * torch.eye(4)
    z = torch.cat([around(known, 32, seed=0), around(clumps, 8, seed=1)])
    held_out = around(known, 10, seed=2)
    novel = find_centres(ExcessMass(), z, known, held_out, k_max=7)
    assert len(novel) == 1
    assert float((novel[0] - clumps.mean(0)).norm()) < 3


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"min_share": 5.0}, 0), ({"separation": 1.0}, 1), ({"expected_weight": 1e3}, 0),
     ({"z_value": 1e3}, 0), ({}, 2)],
)  # fmt: skip
def test_each_parameter_changes_the_count(changes: dict[str, float], expected: int) -> None:
    """Two novel classes are closer to each other than known classes are."""
    novel = torch.tensor([[12.0, 12, 0, 0], [12.0, 12, 7, 0]])
    z = torch.cat([around(KNOWN, 100, seed=0), around(novel, 100, seed=1)])
    assert counted(z, 2, **changes) == expected
