"""The learnable step of our detector: a head that is trained on the window, without its labels.

The head is a kernel ridge regression on the points of the window and of all labelled instances. It
learns two things. The first is what tells the window from labelled instances: where the window has
more instances than its known classes explain, an instance is more likely novel. The second, once
novel classes were counted, is a class or a cluster for each instance. Labelled instances keep their
class. Every prediction leaves the instance itself out, so that the head cannot repeat the label
that it was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.clustering.kmeans import Clusters
from cilf.clustering.p_values import Labelled
from cilf.core.distances import exact_distances, squared_distances
from cilf.learners.cilf.decision import NEAREST_CENTRE, Decision, Scores, assign, nearest_novel

N_LANDMARKS = 512  # instances whose kernels are the features of the regression
RIDGE = 3.0  # on the weights of the regression, in instances
LEAST_WEIGHT = 0.01  # of a labelled instance whose class seems to be absent
JITTER = 1e-4  # on the kernel of the landmarks
TINY = 1e-12


class Kernel(NamedTuple):
    """A Gaussian kernel with some landmarks."""

    landmarks: Tensor  # (m, d)
    width: Tensor  # squared distance at which it falls to 1/e
    factor: Tensor  # (m, m) of the kernel of the landmarks, after Cholesky

    def compare(self, points: Tensor) -> Tensor:
        """The kernel of each point and each landmark: (n, m)."""
        squares = squared_distances(points.double(), self.landmarks.double())  # points may be far
        return torch.exp(squares.to(points) / -self.width)


class Regression(NamedTuple):
    """What a head has learned, for instances that it did not learn from."""

    kernel: Kernel
    weights: Tensor  # (m, t) of the landmarks
    offset: Tensor  # (t,)

    def predict(self, points: Tensor) -> Tensor:
        """The prediction for each point: (n, t)."""
        return self.kernel.compare(points) @ self.weights + self.offset


@dataclass(frozen=True)
class WindowHead:
    """A weighted ridge regression on kernel features, whose predictions leave out one instance."""

    kernel: Kernel
    features: Tensor  # (n, m) of the window, then of the labelled instances
    weights: Tensor  # (n,) of the instances
    labels: Tensor  # (n - n_window,) of the labelled instances
    n_window: int

    @classmethod
    def start(
        cls, window: Tensor, known: Tensor, labelled: Labelled, generator: torch.Generator
    ) -> WindowHead:
        """A head for a window. ``known`` are the centres of the known classes.

        The labelled instances of a class weigh together as many as the instances of the window
        whose nearest class it is: known classes may have any proportions in the window.
        """
        sizes = torch.bincount(squared_distances(window, known).argmin(1), minlength=len(known))
        counts = torch.bincount(labelled.labels, minlength=len(known)).clamp_min(1)
        own = (sizes / counts)[labelled.labels].clamp_min(LEAST_WEIGHT)
        points = torch.cat([window, labelled.points])
        weights = torch.cat([own.new_ones(len(window)), own]).to(points)
        kernel, features = fit_kernel(points, generator)
        return cls(kernel, features, weights, labelled.labels, len(window))

    def excess(self, n_held_out: int) -> Scores:
        """How much more the window is there than labelled instances, from -1 to 1.

        ``n_held_out`` of the labelled instances, the last ones, are held out.
        """
        found = self.leave_out(self._sides())[:, 0]
        return Scores(found[: self.n_window], found[len(found) - n_held_out :])

    def classify(self, assignment: Tensor, n_classes: int) -> Tensor:
        """Scores of known classes and clusters for the window, if these were its clusters."""
        return self.leave_out(self._one_hot(assignment, n_classes))[: self.n_window]

    def decide(
        self,
        points: Tensor,
        clusters: Clusters,
        margins: Tensor,
        scores: Tensor,
        threshold: float,
        n_rounds: int,
    ) -> Decision:
        """Known or novel by the scores, and the cluster that the head gives each novel instance.

        The head learns from its own answers, ``n_rounds`` times. An instance between the threshold
        and 0, nearer to a known centre, is novel only if the head says so: by its cluster, or by
        the excess, which raises the scores above the ``margins``.
        """
        n_known, n_classes = clusters.n_known, len(clusters.centres)
        distances = squared_distances(points, clusters.centres)
        is_novel, cluster = scores > threshold, nearest_novel(distances, n_known)
        if n_classes > n_known and n_rounds > 0:
            assignment = self.converge(distances, n_known, is_novel, n_rounds)
            answers = self.classify(assignment, n_classes)
            is_novel &= confirm_novel(answers, n_known, margins, scores)
            cluster = answers[:, n_known:].argmax(1)
        return assign(distances, n_known, is_novel, cluster)

    def converge(self, distances: Tensor, n_known: int, is_novel: Tensor, n_rounds: int) -> Tensor:
        """The class or cluster of each instance after some rounds of learning from own answers."""
        label, cluster = distances[:, :n_known].argmin(1), nearest_novel(distances, n_known)
        assignment = torch.where(is_novel, n_known + cluster, label)
        for _ in range(n_rounds):
            answers = self.classify(assignment, distances.shape[1])
            label, cluster = answers[:, :n_known].argmax(1), answers[:, n_known:].argmax(1)
            assignment = torch.where(is_novel, n_known + cluster, label)
        return assignment

    def generalise(self, assignment: Tensor, n_classes: int) -> Regression:
        """What the head has learned of the window, for instances that are not in it.

        The first value of its predictions is the excess. The scores of the known classes and the
        clusters follow.
        """
        targets = torch.cat([self._sides(), self._one_hot(assignment, n_classes)], 1)
        mean = self._mean(targets)
        weighted = self.features.T @ (self.weights[:, None] * (targets - mean))
        on_features = torch.cholesky_solve(weighted, self._gram_factor)
        weights = torch.linalg.solve_triangular(self.kernel.factor.T, on_features, upper=True)
        return Regression(self.kernel, weights, mean)

    def _sides(self) -> Tensor:
        """1 for each instance of the window, and -1 for each labelled one: (n, 1)."""
        sides = self.features.new_full((len(self.features), 1), -1.0)
        sides[: self.n_window] = 1.0
        return sides

    def _one_hot(self, assignment: Tensor, n_classes: int) -> Tensor:
        targets = F.one_hot(torch.cat([assignment, self.labels]), n_classes)
        return targets.to(self.features)

    def _mean(self, targets: Tensor) -> Tensor:
        mean: Tensor = self.weights @ targets / self.weights.sum()
        return mean

    def leave_out(self, targets: Tensor) -> Tensor:
        """The prediction of each instance by a regression on all others: (n, t)."""
        centred = targets - self._mean(targets)
        fitted = self._projection @ (self._projection.T @ (self.weights[:, None] * centred))
        rest: Tensor = (centred - fitted) / (1 - self._leverage).clamp_min(TINY)[:, None]
        return targets - rest

    @cached_property
    def _gram_factor(self) -> Tensor:
        gram = self.features.T @ (self.weights[:, None] * self.features)
        gram.diagonal().add_(RIDGE)
        factor: Tensor = torch.linalg.cholesky(gram)
        return factor

    @cached_property
    def _projection(self) -> Tensor:
        """Features in which the regression has the identity as its Gram matrix: (n, m)."""
        solved: Tensor = torch.linalg.solve_triangular(
            self._gram_factor, self.features.T, upper=False
        )
        return solved.T

    @cached_property
    def _leverage(self) -> Tensor:
        """The share of each instance in its own prediction."""
        return self.weights * self._projection.square().sum(1)


def confirm_novel(answers: Tensor, n_known: int, margins: Tensor, scores: Tensor) -> Tensor:
    """Whether instances above the threshold are novel, by the answers of a head."""
    is_cluster = answers[:, n_known:].amax(1) > answers[:, :n_known].amax(1)
    return is_cluster | (scores > NEAREST_CENTRE) | (scores > margins)


class Blend(NamedTuple):
    """How the excess of a window is added to margins of novelty."""

    scale: Tensor
    middle: Tensor

    @classmethod
    def measure(cls, margins: Tensor, excess: Tensor, weight: float) -> Blend | None:
        """The blend for a window with these values; None if the excess is the same everywhere."""
        spread = _deviation(excess)
        if float(spread) <= TINY:
            return None
        beyond = margins > NEAREST_CENTRE
        sides = [excess[side].mean() for side in (beyond, ~beyond) if bool(side.any())]
        return cls(weight * _deviation(margins) / spread, torch.stack(sides).mean())

    def add(self, margins: Tensor, excess: Tensor) -> Tensor:
        """The margins with the excess."""
        return margins + self.scale * (excess - self.middle)


def add_excess(margins: Scores, excess: Scores, weight: float) -> Scores:
    """Margins of novelty with the excess of the window, which has ``weight`` times their deviation.

    The excess is measured from the middle between instances nearer to known and to novel centres.

    >>> margins = Scores(torch.tensor([-1.0, 1.0]), torch.tensor([-1.0]))
    >>> add_excess(margins, Scores(torch.tensor([0.0, 0.5]), torch.tensor([0.5])), weight=0.5)
    Scores(window=tensor([-1.5000,  1.5000]), held_out=tensor([-0.5000]))
    """
    blend = Blend.measure(margins.window, excess.window, weight)
    if blend is None:
        return margins
    return Scores(*(blend.add(*pair) for pair in zip(margins, excess, strict=True)))


def _deviation(values: Tensor) -> Tensor:
    """The standard deviation; 0 for a single value."""
    deviation: Tensor = (values - values.mean()).square().mean().sqrt()
    return deviation


def fit_kernel(points: Tensor, generator: torch.Generator) -> tuple[Kernel, Tensor]:
    """A kernel with some of the points as landmarks, and features of all points: (n, m).

    The products of the features are those of the kernel, after Nyström. It falls to 1/e at the
    median squared distance. With few points, all are landmarks.

    >>> _, features = fit_kernel(torch.tensor([[0.0], [1.0], [3.0]]), torch.Generator())
    >>> (features @ features.T).round(decimals=2)[0]
    tensor([1.0000, 0.3700, 0.0000])
    """
    chosen = torch.randperm(len(points), generator=generator)[:N_LANDMARKS].to(points.device)
    squares = exact_distances(points, points[chosen]).square()
    width = squares.median().clamp_min(TINY)
    kernel = torch.exp(-squares / width)
    own = kernel[chosen]
    own.diagonal().add_(JITTER)
    factor = torch.linalg.cholesky(own)
    features: Tensor = torch.linalg.solve_triangular(factor, kernel.T, upper=False)
    return Kernel(points[chosen], width, factor), features.T
