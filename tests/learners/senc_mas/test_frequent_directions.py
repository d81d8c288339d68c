from __future__ import annotations

import numpy as np
import pytest

from cilf.learners.senc_mas.frequent_directions import Sketch, shrink


def random_rows(n: int = 500, d: int = 30, seed: int = 0) -> np.ndarray:
    """Rows whose directions have quite different lengths."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.geomspace(10, 0.1, d)


def low_rank_rows(rank: int, n: int = 500, d: int = 30, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))


def sketched(A: np.ndarray, size: int) -> np.ndarray:
    return Sketch.empty(size, A.shape[1]).feed(A).rows.astype(np.float64)


def errors(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Eigenvalues of A'A - B'B, ascending, as shares of all squares."""
    values: np.ndarray = np.linalg.eigvalsh(A.T @ A - B.T @ B) / np.square(A).sum()
    return values


DATA = {
    "decaying": random_rows(),
    "isotropic": np.random.default_rng(1).normal(size=(400, 12)),
    "low rank": low_rank_rows(7),
    "one direction, then another": np.repeat(np.eye(5)[[2, 4]], 40, axis=0),
    "with zero rows": np.concatenate([np.zeros((50, 9)), random_rows(60, 9)]),
    "wide": random_rows(50, 200),
    # Rows that are too short to be kept, but many: whoever only drops the shortest never sees them.
    "a strong start, then one weak direction": np.concatenate(
        [np.linspace(6, 9, 30)[:, None] * np.eye(31)[:30], np.repeat(np.eye(31)[30:], 3000, axis=0)]
    ),
}


@pytest.mark.parametrize("size", [4, 5, 10, 20, 50])
@pytest.mark.parametrize("what", DATA)
def test_products_are_missed_by_no_more_than_the_bound(what: str, size: int) -> None:
    A = DATA[what]
    missed = errors(A, sketched(A, size))
    assert missed[-1] <= 2 / size
    assert missed[0] >= -1e-6  # nothing is made up: the difference has no negative direction


def test_the_bound_says_something() -> None:
    """Sketches that keep the first rows, or random ones, break it on the same data."""
    A = np.repeat(np.eye(10), 50, axis=0)
    kept = np.concatenate([A[:40], np.zeros((1, 10))])
    assert errors(A, kept)[-1] > 2 / 40
    assert errors(A, sketched(A, 40))[-1] <= 2 / 40


def only_truncated(A: np.ndarray, size: int) -> np.ndarray:
    """A sketch that keeps the main directions as they are, in place of shortening all."""
    n_kept = (size + 1) // 2 - 1
    kept = A[:0]
    for rows in np.split(A, range(size - n_kept, len(A), size - n_kept)):
        _, values, directions = np.linalg.svd(np.concatenate([kept, rows]), full_matrices=False)
        kept = (values[:, None] * directions)[:n_kept]
    return kept


@pytest.mark.parametrize("size", [4, 5, 10, 20, 50])
def test_truncation_alone_breaks_the_bound(size: int) -> None:
    A = DATA["a strong start, then one weak direction"]
    assert errors(A, only_truncated(A, size))[-1] > 2 / size


@pytest.mark.parametrize("size", [20, 21, 40])
def test_a_matrix_of_low_rank_is_sketched_without_loss(size: int) -> None:
    A = low_rank_rows((size + 1) // 2 - 1)
    np.testing.assert_allclose(sketched(A, size).T @ sketched(A, size), A.T @ A, rtol=1e-4, atol=1)
    one_more = low_rank_rows((size + 1) // 2)
    assert errors(one_more, sketched(one_more, size))[-1] > 1e-3


@pytest.mark.parametrize("k", [0, 3, 8])
def test_what_is_missed_is_bounded_by_what_few_directions_leave(k: int) -> None:
    """The stronger bound: |A - A_k|² / (size / 2 - k), for every k below half the size."""
    A, size = random_rows(), 20
    left = np.square(np.linalg.svd(A, compute_uv=False)[k:]).sum() / np.square(A).sum()
    assert errors(A, sketched(A, size))[-1] <= left / (size / 2 - k)


def test_few_rows_are_kept_as_they_are() -> None:
    A = random_rows(10).astype(np.float32)
    sketch = Sketch.empty(10, 30).feed(A)
    assert sketch.n_filled == 10
    assert sketch.rows.tolist() == A.tolist()


def test_feeding_in_pieces_is_feeding_at_once() -> None:
    A = random_rows(137)
    whole, pieces = Sketch.empty(16, 30).feed(A), Sketch.empty(16, 30)
    for piece in np.array_split(A, 9):
        pieces = pieces.feed(piece)
    assert pieces.n_filled == whole.n_filled
    assert pieces.rows.tolist() == whole.rows.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_holds_in_every_order(seed: int) -> None:
    A = random_rows()[np.random.default_rng(seed).permutation(500)]
    assert errors(A, sketched(A, 12))[-1] <= 2 / 12


def test_sketches_merge() -> None:
    """A sketch that is fed the rows of others keeps the bound for the data of all."""
    parts = np.split(random_rows(), 5)
    merged = Sketch.empty(12, 30)
    for part in parts:
        merged = merged.feed(sketched(part, 12))
    A = np.concatenate(parts)
    missed = errors(A, merged.rows.astype(np.float64))
    assert missed[-1] <= 2 / 12
    assert missed[0] >= -1e-6


def test_turning_and_scaling_the_data_turns_and_scales_the_sketch() -> None:
    A = random_rows()
    turn, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(30, 30)))
    B, turned = sketched(A, 12), sketched(3 * A @ turn, 12)
    np.testing.assert_allclose(
        turned.T @ turned, 9 * turn.T @ (B.T @ B) @ turn, rtol=1e-3, atol=1e-2
    )


def test_shrinking_takes_the_middle_square_from_each_direction() -> None:
    rows = np.diag([5.0, 4.0, 3.0, 2.0, 1.0, 0.5])
    kept, n_filled = shrink(rows)
    assert n_filled == 2
    np.testing.assert_allclose(np.linalg.norm(kept, axis=1)[:2], [4.0, np.sqrt(7.0)], rtol=1e-6)
    assert not kept[2:].any()


def test_feeding_leaves_the_sketch_as_it_was() -> None:
    sketch = Sketch.empty(4, 3).feed(np.eye(3))
    before = sketch.rows.copy()
    sketch.feed(random_rows(20, 3))
    assert sketch.rows.tolist() == before.tolist()
    assert sketch.n_filled == 3


def test_leading_directions_hold_the_energy_asked_for() -> None:
    sketch = Sketch.empty(8, 5).feed(np.diag([4.0, 3.0, 2.0, 1.1, 1.0]))
    for energy, n in [(0.0, 1), (0.5, 1), (0.52, 2), (0.8, 2), (0.82, 3), (0.95, 4)]:
        leading = sketch.main_directions(energy)
        np.testing.assert_allclose(np.abs(leading), np.eye(5)[:n], atol=1e-7)


def test_leading_directions_are_never_a_whole_basis() -> None:
    sketch = Sketch.empty(8, 3).feed(random_rows(8, 3))
    assert sketch.main_directions(1.0).shape == (2, 3)
    assert Sketch.empty(4, 1).feed(np.ones((2, 1))).main_directions(1.0).shape == (1, 1)
    assert np.isfinite(Sketch.empty(4, 3).main_directions(0.9)).all()  # of nothing
