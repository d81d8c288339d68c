"""A window above ``sample_size`` is searched in a sample, and assigned one by one."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from cilf import CILF
from cilf.core import Detection, notices, rows
from cilf.core.types import Array

SIZE = 250


def draw(classes: range, n: int, seed: int) -> tuple[Array, Array]:
    """Instances of normal classes, ``n`` of each, in any order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.array(classes), n))
    centres = 2.5 * np.random.default_rng(0).normal(size=(5, 6))
    return (centres[y] + rng.normal(size=(len(y), 6))).astype(np.float32), y


@pytest.fixture(scope="module")
def fitted() -> CILF:
    return CILF(epochs=2).fit(*draw(range(3), 60, 1))


@pytest.fixture(scope="module")
def large() -> Array:
    """Three known classes and two novel ones; some instances occur twice."""
    X = draw(range(5), 110, 2)[0]
    return np.concatenate([X, X[:20]])


def detect(
    learner: CILF, X: Array, size: int = SIZE, n_novel: int | None = 2, **changes: float
) -> Detection:
    detector = {f"detector__{name}": value for name, value in changes.items()}
    return copy.copy(learner).set_params(detector__sample_size=size, **detector).detect(X, n_novel)


@pytest.fixture(scope="module")
def sampled(fitted: CILF, large: Array) -> Detection:
    return detect(fitted, large)


def test_the_sample_finds_what_the_whole_window_shows(
    fitted: CILF, large: Array, sampled: Detection
) -> None:
    whole = detect(fitted, large, size=len(large))
    assert adjusted_rand_score(whole.cluster, sampled.cluster) > 0.9
    assert np.corrcoef(whole.novelty, sampled.novelty)[0, 1] > 0.9
    assert np.array_equal(whole.label, sampled.label)  # the readout sees one instance at a time
    assert np.allclose(whole.novelty_p, sampled.novelty_p)


def test_the_count_is_that_of_the_sample(fitted: CILF, large: Array) -> None:
    found, whole = (detect(fitted, large, size, None) for size in (SIZE, len(large)))
    assert found.n_novel == whole.n_novel == 2
    assert max(found.curve) == 24  # one centre for 8 instances
    assert max(whole.curve) == 64


def test_a_window_of_the_size_is_searched_as_a_whole(fitted: CILF, large: Array) -> None:
    usual = fitted.detect(large)
    for size in (len(large), 10 * len(large)):
        found = detect(fitted, large, size, None)
        assert np.array_equal(found.novelty, usual.novelty)
        assert np.array_equal(found.cluster, usual.cluster)


def test_the_place_in_the_window_does_not_matter(
    fitted: CILF, large: Array, sampled: Detection
) -> None:
    mixed = np.random.default_rng(1).permutation(len(large))
    found = detect(fitted, large[mixed])
    assert np.allclose(found.novelty, sampled.novelty[mixed], atol=1e-4)
    assert np.array_equal(found.cluster, sampled.cluster[mixed])
    _, first, member = np.unique(large, axis=0, return_index=True, return_inverse=True)
    assert len(first) < len(large)
    assert np.allclose(sampled.novelty, sampled.novelty[first][member.ravel()], atol=1e-4)


def test_blocks_change_nothing(
    fitted: CILF, large: Array, sampled: Detection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "BLOCK", 64)
    found = detect(fitted, large)
    assert np.allclose(found.novelty, sampled.novelty, atol=1e-4)
    assert np.array_equal(found.cluster, sampled.cluster)
    assert found.embedding.shape == (len(large), sampled.embedding.shape[1])


@pytest.mark.parametrize("change", [{"head_weight": 0.0}, {"head_rounds": 0}], ids=str)
def test_the_parts_of_the_head_can_be_left_out(
    change: dict[str, float], fitted: CILF, large: Array
) -> None:
    whole, found = (detect(fitted, large, size, **change) for size in (len(large), SIZE))
    assert adjusted_rand_score(whole.cluster, found.cluster) > 0.9


@pytest.mark.parametrize("n_novel", [0, 3])
def test_a_given_number_of_clusters_has_members_each(
    n_novel: int, fitted: CILF, large: Array
) -> None:
    found = detect(fitted, large, SIZE, n_novel)
    assert set(found.cluster.tolist()) == {-1, *range(n_novel)}


def test_more_clusters_than_the_sample_has_instances(fitted: CILF, large: Array) -> None:
    found = detect(fitted, large, 5, n_novel=9)
    assert set(found.cluster.tolist()) >= set(range(9))


def test_a_notice_names_the_smallest_class(
    fitted: CILF, large: Array, caplog: pytest.LogCaptureFixture
) -> None:
    notices.forget()
    detect(fitted, large)
    assert f"sample of {SIZE} of {len(large)} instances" in caplog.text
