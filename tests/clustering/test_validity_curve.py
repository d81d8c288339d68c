"""Rules that read the validity curve."""

import math

import pytest
import torch

from cilf.clustering.evidence import CountRule, Evidence
from cilf.clustering.kmeans import Clusters
from cilf.clustering.validity_curve import Curvature, Silhouette, largest, sharpest_bend


def test_curves_with_undefined_values() -> None:
    assert largest({0: math.nan, 1: 0.2, 2: 0.5}) == 2
    assert largest({0: math.nan}) == 0
    assert sharpest_bend({0: math.nan, 1: 0.1, 2: 0.9, 3: 0.88, 4: 0.86}) == 2
    assert sharpest_bend({0: 0.3, 1: 0.6}) == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.9, 0.7, 0.6, 0.55], 0),  # it only falls
        ([0.2, 0.4, 0.5, 0.9], 3),  # it only rises
        ([0.9, 0.1, 0.5, 0.4], 0),  # a valley bends most, but up
        ([0.1, 0.6, 0.62, 0.65, 0.6], 3),  # it bends most where it still rises
        ([0.5, 0.6, 0.5, 0.61, 0.2], 3),
        ([0.5, 0.9, 0.6, 0.95, 0.9], 1),  # not the highest of the maxima
        ([0.5, 0.5, 0.5], 0),
    ],
)
def test_the_bend_is_a_maximum_and_may_be_an_end(values: list[float], expected: int) -> None:
    assert sharpest_bend(dict(enumerate(values))) == expected


def test_a_maximum_at_an_end_bends_as_one_that_falls_on_both_sides() -> None:
    assert sharpest_bend({0: 0.6, 1: 0.5, 2: 0.69, 3: 0.6}) == 2
    assert sharpest_bend({0: 0.65, 1: 0.5, 2: 0.69, 3: 0.6}) == 0


@pytest.mark.parametrize(("rule", "expected"), [(Silhouette(), 3), (Curvature(), 1)])
def test_the_centres_are_those_of_the_chosen_clustering(rule: CountRule, expected: int) -> None:
    nobody = torch.zeros(0, dtype=torch.long)
    clusterings = {k: Clusters(torch.full((2 + k, 1), float(k)), nobody, 2) for k in range(5)}
    curve = {0: 0.1, 1: 0.6, 2: 0.5, 3: 0.65, 4: 0.6}
    evidence = Evidence(clusterings, {}, {}, nobody, curve, torch.Generator())
    assert rule.find_centres(evidence).tolist() == [[float(expected)]] * expected
