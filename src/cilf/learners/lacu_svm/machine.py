"""One machine of LACU-SVM: a class against the rest, with the instances of a window.

Minimise  ½‖w‖² + C Σ hinge(y f(x)) + C_window Σ [ramp(f(u)) + ramp(−f(u))]  over labelled x and
window u, where the mean of f(u) lies between two bounds and f(x) <= −ρ for labelled negatives.
The ramp loss is not convex. The concave-convex procedure (Collobert, Sinz, Weston and Bottou, JMLR
2006) solves a few convex programmes, each by its dual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from cilf.core import validation
from cilf.core.parameters import Part
from cilf.core.types import Array, Bools, Ints
from cilf.learners.lacu_svm import box_qp

LEAST_MEAN = -0.9  # least lower bound of a window's mean decision
FIRST_RHO = 0.5  # while some labelled positive is on the wrong side
WINDOW, LABELLED = "window", "labelled"
HARD = 10.0  # what a unit beyond a constraint costs, against C for every labelled instance


def signs(y: Ints, label: int) -> Array:
    """+1 for this class, -1 for every other."""
    return np.where(y == label, 1.0, -1.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class Costs(Part):
    """The costs and constraints of a machine.

    Parameters
    ----------
    C : float, default=1.0
        Cost of labelled instances on the wrong side.
    C_window : float or None, default=None
        Cost of window instances near the boundary. None is C times the number of labelled
        instances over that of the window's.
    ramp : float, default=-0.3
        Margin below which the cost of a window instance stops growing.
    eta : float, default=1.3
        Factor by which the mean decision of a window may lie below that of the labelled data.
    rho_margin : float, default=0.1
        Distance by which labelled negatives lie farther off than the nearest positive.
    mean_of : {"window", "labelled"}, default="window"
        Instances whose mean has the weight of the bounds of the window's mean decision when
        instances are scored. "window" is the mean that the bounds are about. "labelled" is the mean
        that the authors' package takes instead.
    tolerance : float, default=0.001
        Largest violation of the optimality conditions.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **dict.fromkeys(["C", "tolerance"], validation.in_range(1e-9)),
        "C_window": validation.optional(validation.in_range(0.0)),
        "ramp": validation.in_range(-1.0, 0.0),
        "eta": validation.in_range(1.0),
        "rho_margin": validation.in_range(0.0),
        "mean_of": validation.among((WINDOW, LABELLED)),
    }

    C: float = 1.0
    C_window: float | None = None
    ramp: float = -0.3
    eta: float = 1.3
    rho_margin: float = 0.1
    mean_of: str = WINDOW
    tolerance: float = 1e-3

    def of_window(self, n_labelled: int, n_window: int) -> float:
        """Cost of one window instance."""
        return self.C * n_labelled / n_window if self.C_window is None else self.C_window


def plain_machine(kernel: box_qp.Kernel, y: Array, costs: Costs) -> box_qp.Solution:
    """The support vector machine of labelled data."""
    lower, upper = np.where(y > 0, 0.0, -costs.C), np.where(y > 0, costs.C, 0.0)
    return box_qp.solve(kernel, y, lower, upper, tolerance=costs.tolerance)


class Machine(NamedTuple):
    """f(x) = Σ weights · kernel(point, x) + offset."""

    weights: Array  # (labelled + window,)
    offset: float


class Programme(NamedTuple):
    """The points and variables that the machines of one window share.

    The variables, in order: the labelled instances; the window's as positives; the window's as
    negatives; the bounds of the window's mean, from above and from below; the labelled instances
    again, for the constraint on negatives. The mean is a point of its own: the last one.
    """

    n_labelled: int
    n_window: int
    kernel: box_qp.Kernel
    labelled: box_qp.Kernel  # of the labelled instances alone

    @classmethod
    def of(cls, points: Array, n_labelled: int) -> Programme:
        """From the kernel of labelled instances, then the window's, with each other."""
        n = len(points)
        mean = points[:, n_labelled:].mean(1)
        centre = np.concatenate([mean, [mean[n_labelled:].mean()]])
        matrix = np.block([[points, mean[:, None]], [centre[None]]])
        labelled, window = np.arange(n_labelled), np.arange(n_labelled, n)
        rows = np.concatenate([labelled, window, window, [n, n], labelled])
        alone = box_qp.Kernel.spread(points[:n_labelled, :n_labelled], labelled)
        return cls(n_labelled, n - n_labelled, box_qp.Kernel.spread(matrix, rows), alone)

    def weights(self, a: Array, mean_of: str = WINDOW) -> Array:
        """The weight of each labelled and window instance in f, with a mean of these instances."""
        *own, mean = np.bincount(self.kernel.rows, weights=a)
        labelled, window = np.split(np.array(own), [self.n_labelled])
        shared = window if mean_of == WINDOW else labelled
        shared += mean / len(shared)
        return np.concatenate([labelled, window])

    def decisions(self, a: Array, offset: float) -> tuple[Array, Array]:
        """f of the labelled instances, and f of the window's."""
        f = box_qp.multiply(self.kernel, a) + offset  # of every variable
        return f[: self.n_labelled], f[self.n_labelled : self.n_labelled + self.n_window]


@dataclass
class WindowProblem:
    """The problem of one machine: its cost, its constraints, and its convex programmes."""

    programme: Programme
    y: Array  # (labelled,) +1 or -1
    costs: Costs

    def __post_init__(self) -> None:
        sizes = self.programme.n_labelled, self.programme.n_window
        self.window_cost = self.costs.of_window(*sizes)
        self.hard = HARD * self.costs.C * sizes[0]
        self.lowest, self.highest = mean_bounds(float(self.y.mean()), self.costs.eta)

    def rho(self, f_labelled: Array) -> float:
        """The least distance of negatives from the boundary, beyond the nearest positive."""
        nearest = f_labelled[self.y > 0].min(initial=np.inf)
        return float(nearest + self.costs.rho_margin) if 0 < nearest < np.inf else FIRST_RHO

    def is_beyond(self, f_window: Array) -> Bools:
        """Whether each window instance is beyond the ramp, as positive and as negative: (2, n)."""
        return np.stack([f_window, -f_window]) < self.costs.ramp

    def solve(self, rho: float, beyond: Bools, start: Array) -> box_qp.Solution:
        """The convex programme where what is beyond the ramp costs the same everywhere."""
        n_window, negative = self.programme.n_window, self.y < 0
        flat = self.window_cost * beyond
        target = np.concatenate([
            self.y, np.ones(n_window), -np.ones(n_window), [self.highest, self.lowest],
            np.full(len(self.y), -rho),
        ])  # fmt: skip
        lower = np.concatenate([
            np.where(negative, -self.costs.C, 0.0), -flat[0], flat[1] - self.window_cost,
            [-self.hard, 0.0], np.where(negative, -self.hard, 0.0),
        ])  # fmt: skip
        upper = np.concatenate([
            np.where(negative, 0.0, self.costs.C), self.window_cost - flat[0], flat[1],
            [0.0, self.hard], np.zeros(len(self.y)),
        ])  # fmt: skip
        return box_qp.solve(
            self.programme.kernel, target, lower, upper,
            start=start, tolerance=self.costs.tolerance,
        )  # fmt: skip


def window_machine(programme: Programme, y: Array, costs: Costs, iterations: int) -> Machine:
    """The machine of one class, by the concave-convex procedure.

    It starts from the machine of labelled data. Each step replaces the concave part of the ramp
    losses by its tangent, until a step would repeat the last one.
    """
    problem = WindowProblem(programme, y, costs)
    plain = plain_machine(programme.labelled, y, costs)
    a = np.concatenate([plain.a, np.zeros(len(programme.kernel.rows) - len(y))])
    offset, rho, beyond = plain.offset, np.inf, np.zeros((2, 0), dtype=bool)
    for _ in range(iterations):
        f_labelled, f_window = programme.decisions(a, offset)
        last, rho = (rho, beyond), problem.rho(f_labelled)
        beyond = problem.is_beyond(f_window)
        if abs(last[0] - rho) <= costs.tolerance and np.array_equal(last[1], beyond):
            break
        found = problem.solve(rho, beyond, start=a)
        a, offset = found.a, found.offset
    return Machine(programme.weights(a, costs.mean_of), offset)


def mean_bounds(labelled_mean: float, eta: float) -> tuple[float, float]:
    """The bounds of a window's mean decision.

    Novel instances make it lower than that of labelled data, by a factor up to ``eta``.

    >>> mean_bounds(-0.5, 1.3)
    (-0.65, -0.5)
    """
    lowest = labelled_mean - (eta - 1) * abs(labelled_mean)
    if lowest < LEAST_MEAN <= labelled_mean:
        lowest = LEAST_MEAN
    return lowest, labelled_mean
