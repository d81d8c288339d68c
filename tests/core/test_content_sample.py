"""A sample by content is random, and the same in whatever order instances come."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

from cilf.core.content_sample import (
    ContentSample,
    hash_rows,
    sample_by_content,
    smallest_class_seen,
)
from cilf.core.types import Array

RNG = np.random.default_rng(0)
FORMS = {
    "rows": RNG.normal(size=(5000, 3)).astype(np.float32),
    "bytes": RNG.integers(0, 256, size=(5000, 7, 1, 3), dtype=np.uint8),
}


def sample(X: Array, size: int, seed: int) -> ContentSample:
    return sample_by_content(hash_rows(X, seed), size)


@pytest.mark.parametrize("form", FORMS)
def test_the_order_of_the_instances_does_not_matter(form: str) -> None:
    X = FORMS[form]
    mixed = RNG.permutation(len(X))
    one, other = sample(X, 700, seed=1), sample(X[mixed], 700, seed=1)
    assert np.array_equal(X[one.rows], X[mixed][other.rows])
    assert len(np.unique(one.rows)) == 700
    assert np.array_equal(np.sort(np.flatnonzero(one.twins >= 0)), np.sort(one.rows))
    assert np.array_equal(one.twins[one.rows], np.arange(700))


def test_another_seed_draws_others() -> None:
    one, other = (sample(FORMS["rows"], 500, seed=seed) for seed in (0, 1))
    assert len(np.intersect1d(one.rows, other.rows)) < 150


def test_every_instance_is_equally_likely() -> None:
    counts = np.zeros(200)
    for seed in range(100):
        counts[sample(FORMS["rows"][:200], 50, seed).rows] += 1
    assert counts.sum() == 5000
    assert 8 < counts.min() < counts.max() < 45  # 25 are expected


def coincident() -> Array:
    X = np.zeros((4000, 2), dtype=np.float32)
    X[:400] = 1
    return X


def test_equal_instances_are_drawn_one_by_one() -> None:
    drawn = sample(coincident(), 1000, seed=0)
    assert 60 < (drawn.rows < 400).sum() < 140
    assert len(np.unique(drawn.rows)) == 1000
    twins = coincident()[drawn.rows][drawn.twins]
    assert np.array_equal(twins, coincident())  # all are equal to a sampled one


def test_the_smallest_class_comes_up_six_times() -> None:
    size = smallest_class_seen(100_000, 20_000)
    assert hypergeom.sf(5, 100_000, size, 20_000) >= 0.95
    assert hypergeom.sf(5, 100_000, size - 1, 20_000) < 0.95
