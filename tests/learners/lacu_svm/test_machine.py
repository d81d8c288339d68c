from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize

from cilf.learners.lacu_svm import box_qp
from cilf.learners.lacu_svm import machine as machine_module
from cilf.learners.lacu_svm.machine import (
    Costs,
    Programme,
    WindowProblem,
    mean_bounds,
    plain_machine,
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


class Step(NamedTuple):
    """One convex programme, and the cost of the machine before and after it."""

    rho: float
    before: float
    after: float


def cost(whole: WindowProblem, a: np.ndarray, offset: float, rho: float) -> float:
    """The objective as the module defines it; a violation costs what ``hard`` says."""
    labelled, window = whole.programme.decisions(a, offset)
    hinges = np.maximum(0.0, 1 - whole.y * labelled).sum()
    ramps = np.clip(1 - np.concatenate([window, -window]), 0.0, 1 - whole.costs.ramp).sum()
    norm = a @ box_qp.multiply(whole.programme.kernel, a)
    beyond = whole.hard * violation(whole, labelled, window, rho)
    return float(norm / 2 + whole.costs.C * hinges + whole.window_cost * ramps + beyond)


def violation(whole: WindowProblem, labelled: np.ndarray, window: np.ndarray, rho: float) -> float:
    off = max(0.0, window.mean() - whole.highest, whole.lowest - window.mean())
    return float(off + np.maximum(0.0, labelled[whole.y < 0] + rho).sum())


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """The steps of every machine that is trained."""
    made: list[Step] = []
    last: tuple[WindowProblem, float] | None = None
    solve = WindowProblem.solve

    def record(
        whole: WindowProblem, rho: float, beyond: np.ndarray, start: np.ndarray
    ) -> box_qp.Solution:
        nonlocal last
        if last is None or last[0] is not whole:
            last = whole, plain_machine(whole.programme.labelled, whole.y, whole.costs).offset
        found = solve(whole, rho, beyond, start)
        before = cost(whole, start, last[1], rho)
        made.append(Step(rho, before, cost(whole, found.a, found.offset, rho)))
        last = whole, found.offset
        return found

    monkeypatch.setattr(WindowProblem, "solve", record)
    return made


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


def test_the_weight_of_the_mean_goes_to_the_instances_it_is_of() -> None:
    _, whole = problem(2)  # 6 labelled and 8 window instances
    a = np.zeros(len(whole.programme.kernel.rows))
    a[[0, 6, 14, 22, 23]] = [3.0, 1.0, 0.5, -1.0, 5.0]  # the last two are the bounds of the mean
    window, labelled = whole.programme.weights(a), whole.programme.weights(a, "labelled")
    np.testing.assert_allclose(window, [3.0, *[0] * 5, 2.0, *[0.5] * 7])
    np.testing.assert_allclose(labelled, [3 + 2 / 3, *[2 / 3] * 5, 1.5, *[0.0] * 7])
    machines = [
        window_machine(whole.programme, whole.y, EXACT.replace(mean_of=name), 10)
        for name in ("window", "labelled")
    ]
    assert machines[0].offset == machines[1].offset  # only the score differs, not the training


@pytest.mark.parametrize("measure", [rbf, linear])
def test_no_step_of_the_concave_convex_procedure_raises_the_cost(
    measure: Measure, steps: list[Step]
) -> None:
    _, whole = problem(measure=measure)
    for label in range(3):
        y, n_before = signs(np.repeat([0, 1, 2], 20), label), len(steps)
        window_machine(whole.programme, y, EXACT, 10)
        first = steps[n_before]
        assert first.after < first.before - 1.0  # it is worth something
    assert len(steps) > 5
    for step in steps:
        assert step.after <= step.before + 1e-3


def test_constraints_hold_in_the_end(steps: list[Step]) -> None:
    kernel, whole = problem()
    plain = window_machine(whole.programme, whole.y, EXACT, 0)
    machine = window_machine(whole.programme, whole.y, EXACT, 10)
    f = kernel @ machine.weights + machine.offset
    lowest, highest = mean_bounds(float(whole.y.mean()), 1.3)
    assert lowest - 1e-6 <= f[60:].mean() <= highest + 1e-6
    assert f[:60][whole.y < 0].max() <= -steps[-1].rho + 1e-6
    f = kernel @ plain.weights + plain.offset  # which is not so of the machine it started from
    assert violation(whole, f[:60], f[60:], steps[0].rho) > 0.1


def test_a_convex_programme_is_solved_as_by_a_general_solver() -> None:
    """Its primal, over weights, offset and one slack for each hinge, by SLSQP."""
    kernel, whole = problem(3)
    rng = np.random.default_rng(0)
    rho, beyond = 0.6, whole.is_beyond(rng.normal(-0.5, 1.0, size=12))
    assert beyond.any(axis=1).all()
    found = whole.solve(rho, beyond, start=np.zeros(len(whole.programme.kernel.rows)))
    root = np.linalg.cholesky(kernel + 1e-12 * np.eye(21))  # f = root w + b

    def primal(v: np.ndarray) -> float:
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
        primal, start, method="SLSQP", constraints={"type": "ineq", "fun": rooms},
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


def test_constraints_that_cannot_hold_are_weighed(steps: list[Step]) -> None:
    """A window of labelled negatives may not lie, on average, where negatives must."""
    points = around(KNOWN)
    points = np.concatenate([points, points[20:40]])
    whole = WindowProblem(
        Programme.of(rbf(points, points), 60), signs(np.repeat([0, 1, 2], 20), 0), EXACT
    )
    machine = window_machine(whole.programme, whole.y, EXACT, 10)
    f = rbf(points, points) @ machine.weights + machine.offset
    assert np.isfinite(f).all()
    assert all(step.after <= step.before + 1e-3 for step in steps)
