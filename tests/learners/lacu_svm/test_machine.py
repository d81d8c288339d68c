from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize

from cilf.learners.lacu_svm import machine as machine_module
from cilf.learners.lacu_svm.machine import (
    Costs,
    Programme,
    Step,
    WindowProblem,
    hinge,
    mean_bounds,
    ramp_loss,
    signs,
    window_machine,
)

Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]
KNOWN = [(-3, 0), (3, 0), (0, 3)]
NOVEL = (0, -4)
EXACT = Costs(C=1.0, C_window=None, ramp=-0.3, eta=1.3, rho_margin=0.1, tolerance=1e-7)


def around(points: list[tuple[float, float]], n: int = 20, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(point, 0.8, size=(n, 2)) for point in points])


def rbf(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp(-np.square(a[:, None] - b).sum(2) / 8)


def linear(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b.T


def problem(n: int = 20, measure: Measure = rbf) -> tuple[np.ndarray, WindowProblem]:
    """The machine of the first of three classes, in a window that has a fourth."""
    points = np.concatenate([around(KNOWN, n), around([*KNOWN, NOVEL], n, seed=1)])
    kernel = measure(points, points)
    y = signs(np.repeat([0, 1, 2], n), 0)
    return kernel, WindowProblem(Programme.of(kernel, 3 * n), y, EXACT)


def test_losses_by_hand() -> None:
    z = np.array([3.0, 1.0, 0.25, 0.0, -0.3, -0.5, -9.0])
    np.testing.assert_allclose(hinge(z), [0, 0, 0.75, 1, 1.3, 1.5, 10])
    np.testing.assert_allclose(ramp_loss(z, -0.3), [0, 0, 0.75, 1, 1.3, 1.3, 1.3])
    np.testing.assert_allclose(ramp_loss(z, 0.0), [0, 0, 0.75, 1, 1, 1, 1])


def test_window_bounds_by_hand() -> None:
    np.testing.assert_allclose(mean_bounds(-0.6, 1.3), (-0.78, -0.6))
    np.testing.assert_allclose(mean_bounds(-0.8, 1.3), (-0.9, -0.8))  # never asked to lie below
    np.testing.assert_allclose(mean_bounds(0.0, 1.3), (0.0, 0.0))
    # where the official bounds would leave nothing between them
    np.testing.assert_allclose(mean_bounds(-0.96, 1.25), (-1.2, -0.96))
    np.testing.assert_allclose(mean_bounds(0.5, 1.2), (0.4, 0.5))


def test_rho_by_hand() -> None:
    _, whole = problem(2)  # y is + + - - - -
    negatives = [-9.0, -9.0, -9.0, -9.0]
    assert whole.rho(np.array([0.7, 2.0, *negatives])) == pytest.approx(0.8)
    assert whole.rho(np.array([-0.2, 2.0, *negatives])) == 0.5
    assert whole.rho(np.array([0.0, 2.0, *negatives])) == 0.5


def test_the_objective_is_that_of_its_definition() -> None:
    kernel, whole = problem(3)
    rng = np.random.default_rng(0)
    a = rng.normal(size=len(whole.programme.kernel.rows))
    weights, b, rho = whole.programme.weights(a), -0.2, 0.6
    f = kernel @ weights + b
    expected = weights @ kernel @ weights / 2
    for sign, value in zip(whole.y, f[:9], strict=True):
        expected += max(0.0, 1 - sign * value)
        expected += whole.hard * max(0.0, value + rho) * (sign < 0)
    for value in f[9:]:
        for z in (value, -value):
            expected += 9 / 12 * min(1.3, max(0.0, 1 - z))
    mean, (lowest, highest) = f[9:].mean(), mean_bounds(-1 / 3, 1.3)
    expected += whole.hard * (max(0.0, mean - highest) + max(0.0, lowest - mean))
    assert whole.objective(a, b, rho) == pytest.approx(expected)


@pytest.mark.parametrize("measure", [rbf, linear])
def test_no_step_of_the_concave_convex_procedure_raises_the_cost(measure: Measure) -> None:
    _, whole = problem(measure=measure)
    steps: list[Step] = []
    for label in range(3):
        y, n_before = signs(np.repeat([0, 1, 2], 20), label), len(steps)
        window_machine(whole.programme, y, EXACT, 10, steps)
        first = steps[n_before]
        assert first.after < first.before - 1.0  # it is worth something
    assert len(steps) > 5
    for step in steps:
        assert step.after <= step.before + 1e-3


def test_constraints_hold_in_the_end() -> None:
    kernel, whole = problem()
    steps: list[Step] = []
    plain = window_machine(whole.programme, whole.y, EXACT, 0)
    machine = window_machine(whole.programme, whole.y, EXACT, 10, steps)
    f = kernel @ machine.weights + machine.offset
    lowest, highest = mean_bounds(float(whole.y.mean()), 1.3)
    assert lowest - 1e-6 <= f[60:].mean() <= highest + 1e-6
    assert f[:60][whole.y < 0].max() <= -steps[-1].rho + 1e-6
    f = kernel @ plain.weights + plain.offset  # which is not so of the machine it started from
    assert whole.violation(f[:60], f[60:], steps[0].rho) > 0.1


def test_a_convex_programme_is_solved_as_by_a_general_solver() -> None:
    """Its primal, over weights, offset and one slack for each hinge, by SLSQP."""
    kernel, whole = problem(3)
    rng = np.random.default_rng(0)
    rho, beyond = 0.6, whole.beyond(rng.normal(-0.5, 1.0, size=12))
    assert beyond.any(axis=1).all()
    found = whole.solve(rho, beyond, start=np.zeros(len(whole.programme.kernel.rows)))
    root = np.linalg.cholesky(kernel + 1e-12 * np.eye(21))  # f = root w + b

    def cost(v: np.ndarray) -> float:
        w, b, slacks = v[:21], v[21], v[22:]
        f = root @ w + b
        tangents = 9 / 12 * (f[9:][beyond[0]].sum() - f[9:][beyond[1]].sum())
        return float(w @ w / 2 + slacks[:9].sum() + 9 / 12 * slacks[9:].sum() + tangents)

    sign = np.concatenate([whole.y, np.ones(12), -np.ones(12)])
    copies = np.concatenate([np.arange(21), np.arange(9, 21)])

    def rooms(v: np.ndarray) -> np.ndarray:
        f = root @ v[:21] + v[21]
        mean = f[9:].mean()
        off = [whole.highest - mean, mean - whole.lowest, *(-rho - f[:9][whole.y < 0])]
        return np.concatenate([v[22:] - (1 - sign * f[copies]), v[22:], off])

    start = np.concatenate([np.zeros(22), np.ones(33)])
    reference = minimize(
        cost, start, method="SLSQP", constraints={"type": "ineq", "fun": rooms},
        options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    assert reference.success
    f = kernel @ whole.programme.weights(found.a) + found.offset
    np.testing.assert_allclose(f, root @ reference.x[:21] + reference.x[21], atol=1e-4)


def test_without_cost_and_constraints_the_window_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine_module, "HARD", 0.0)
    _, whole = problem()
    free = EXACT.replace(C_window=0.0)
    plain = window_machine(whole.programme, whole.y, free, 0)
    machine = window_machine(whole.programme, whole.y, free, 10)
    np.testing.assert_allclose(machine.weights, plain.weights, atol=1e-5)
    assert machine.offset == pytest.approx(plain.offset, abs=1e-5)


def test_window_instances_leave_the_boundary() -> None:
    kernel, whole = problem()
    margins = []
    for cost in (0.0, 1.0):
        machine = window_machine(whole.programme, whole.y, EXACT.replace(C_window=cost), 10)
        margins.append(np.abs(kernel @ machine.weights + machine.offset)[60:])
    inside = [(margin < 0.9).mean() for margin in margins]
    assert inside[1] < inside[0] - 0.1


def test_constraints_that_cannot_hold_are_weighed() -> None:
    """A window of labelled negatives may not lie, on average, where negatives must."""
    points = around(KNOWN)
    points = np.concatenate([points, points[20:40]])
    whole = WindowProblem(
        Programme.of(rbf(points, points), 60), signs(np.repeat([0, 1, 2], 20), 0), EXACT
    )
    steps: list[Step] = []
    machine = window_machine(whole.programme, whole.y, EXACT, 10, steps)
    f = rbf(points, points) @ machine.weights + machine.offset
    assert np.isfinite(f).all()
    assert all(step.after <= step.before + 1e-3 for step in steps)
