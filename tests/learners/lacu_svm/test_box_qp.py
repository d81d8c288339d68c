from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from cilf.learners.lacu_svm import box_qp


def random_programme(seed: int, n: int = 12, n_rows: int = 8) -> tuple[np.ndarray, ...]:
    """Matrix, rows, target and box; some variables share a row, some boxes are far from 0."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_rows, 3))
    matrix = np.exp(-np.square(points[:, None] - points).sum(2) / 3)
    rows = rng.integers(n_rows, size=n)
    lower = rng.uniform(-2.0, 0.5, size=n)
    lower[0], upper = -50.0, lower + rng.uniform(0.2, 2.0, size=n)
    upper[0] = 50.0  # so that the sum can be 0
    return matrix, rows, rng.normal(size=n), lower, upper


@pytest.mark.parametrize("seed", range(5))
def test_solution_is_that_of_a_general_solver(seed: int) -> None:
    matrix, rows, target, lower, upper = random_programme(seed)
    full = matrix[np.ix_(rows, rows)]

    def loss(a: np.ndarray) -> float:
        return float(a @ full @ a / 2 - target @ a)

    reference = minimize(
        loss, box_qp.project(np.zeros(len(rows)), lower, upper), method="SLSQP",
        jac=lambda a: full @ a - target, bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": np.sum, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    kernel = box_qp.Kernel.spread(matrix, rows)
    found = box_qp.solve(kernel, target, lower, upper, tolerance=1e-9)
    assert found.gap <= 1e-9
    assert loss(found.a) == pytest.approx(reference.fun, abs=1e-6)
    weights, expected = (np.bincount(rows, a, 8) for a in (found.a, reference.x))
    np.testing.assert_allclose(weights, expected, atol=2e-3)
    assert abs(found.a.sum()) < 1e-9
    assert ((lower <= found.a) & (found.a <= upper)).all()


@pytest.mark.parametrize("joint_moves", [1, 3, 10**9])
def test_joint_moves_change_the_way_and_not_the_end(
    joint_moves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box_qp, "BETWEEN_JOINT_MOVES", joint_moves)
    matrix, rows, target, lower, upper = random_programme(7)
    found = box_qp.solve(box_qp.Kernel.spread(matrix, rows), target, lower, upper, tolerance=1e-9)
    slope = target - matrix[np.ix_(rows, rows)] @ found.a
    rises, falls = found.a < upper, found.a > lower
    assert (slope[rises] <= found.offset + 1e-8).all()  # the conditions of optimality
    assert (slope[falls] >= found.offset - 1e-8).all()


def test_a_joint_move_raises_the_objective_and_stays_in_the_box() -> None:
    matrix, rows, target, lower, upper = random_programme(3)
    full = matrix[np.ix_(rows, rows)]
    a = box_qp.project(np.zeros(len(rows)), lower, upper)
    before = target @ a - a @ full @ a / 2
    slope = target - full @ a
    box_qp.move_jointly(box_qp.Kernel.spread(matrix, rows), a, slope, lower, upper)
    assert target @ a - a @ full @ a / 2 > before + 1e-3
    assert ((lower <= a) & (a <= upper)).all()
    assert abs(a.sum()) < 1e-9
    np.testing.assert_allclose(slope, target - full @ a, atol=1e-9)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_boxes_and_targets_of_a_support_vector_machine_make_that_of_scikit_learn(C: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=80) > 0, 1.0, -1.0)
    matrix = np.exp(-np.square(X[:, None] - X).sum(2) / 3)
    kernel = box_qp.Kernel.spread(matrix, np.arange(80))
    lower, upper = np.where(y > 0, 0, -C), np.where(y > 0, C, 0)
    found = box_qp.solve(kernel, y, lower, upper, tolerance=1e-6)
    reference = SVC(C=C, kernel="precomputed", tol=1e-6).fit(matrix, y)
    decisions = matrix @ found.a + found.offset
    np.testing.assert_allclose(decisions, reference.decision_function(matrix), atol=1e-4)


def test_goes_on_from_a_start() -> None:
    matrix, rows, target, lower, upper = random_programme(2)
    kernel = box_qp.Kernel.spread(matrix, rows)
    end = box_qp.solve(kernel, target, lower, upper, tolerance=1e-9)
    again = box_qp.solve(kernel, target, lower, upper, tolerance=1e-8, start=end.a, max_steps=0)
    assert again.gap <= 1e-8
    assert box_qp.solve(kernel, target, lower, upper, max_steps=1).gap > 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_balanced_is_the_nearest_point(seed: int) -> None:
    _, _, a, lower, upper = random_programme(seed)
    found = box_qp.project(5 * a, lower, upper)
    nearest = minimize(
        lambda x: float(np.square(x - 5 * a).sum()), found, method="SLSQP",
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": np.sum}, options={"ftol": 1e-14},
    )  # fmt: skip
    assert abs(found.sum()) < 1e-9
    np.testing.assert_allclose(found, nearest.x, atol=1e-4)


def test_all_of_one_sign_leaves_only_an_offset() -> None:
    kernel = box_qp.Kernel.spread(np.eye(3), np.arange(3))
    found = box_qp.solve(kernel, -np.ones(3), -np.ones(3), np.zeros(3))
    assert found.a.tolist() == [0, 0, 0]
    assert found.offset == -1
