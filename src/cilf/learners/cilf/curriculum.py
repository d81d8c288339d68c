"""Algorithm 2 of the paper: curriculum clustering, from certain pseudo-labels to doubtful ones."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.clustering import p_values
from cilf.clustering.class_count import COUNT_RULES
from cilf.clustering.evidence import CountRule, Evidence, counts_to_try, measure_validity
from cilf.clustering.kmeans import Clusters, semi_supervised_kmeans
from cilf.clustering.validity_curve import Curvature
from cilf.core import validation
from cilf.core.distances import squared_distances
from cilf.core.parameters import Part
from cilf.core.random import move_generator, torch_generator
from cilf.learners.cilf.decision import NEAREST_CENTRE, average_novelty, decide
from cilf.learners.cilf.detect import DetectorResult, Model
from cilf.learners.cilf.embedding import Labelled
from cilf.learners.cilf.losses import prototype_logits
from cilf.nn import training
from cilf.nn.network import Network, embed
from cilf.nn.prototypes import anneal, class_means

N_SHARES = 3  # of the window, from which batches are drawn one after another: 0.2, 0.6, 1


class TunedWindow(NamedTuple):
    """A window in a copy of the embedding that was tuned for one number of novel classes."""

    points: Tensor
    clusters: Clusters
    network: Network


@dataclass(frozen=True, kw_only=True, repr=False)
class CurriculumDetector(Part):
    """Tune a copy of the embedding on pseudo-labels, for each number of novel classes.

    The defaults are the paper's choices wherever it states one. The nearest centre decides whether
    an instance is known or novel.

    Parameters
    ----------
    k_max : int or None, default=None
        Largest number of novel classes to look for in one window. None follows the size of the
        window: a quarter of its root, from 8 to 32. No more than one class for every 16 instances,
        plus one, is tried.
    count : CountRule, default=Curvature()
        Rule for the number of novel classes, one of ``COUNT_RULES``.
    gamma : float, default=0.8
        Place of the most confusing instance, which has weight 0, between the least and the most
        uncertain one.
    pace_start : float, default=0.2
        Share of the window, the easiest instances first, that the first batches are drawn from.
        A share of 1 switches the curriculum off.
    pace_growth : float, default=3.0
        Factor by which that share grows.
    pace_every : int, default=10
        Number of batches after which it grows.
    epochs : int, default=20
        Number of rounds of tuning. Pseudo-labels and prototypes are refreshed after each.
    steps : int or None, default=None
        Number of batches in a round. None follows the size of the window: as many batches as hold
        every instance once, and at least ``3 * pace_every``, so that the last ones are drawn from
        the whole window.
    learning_rate : float, default=0.01
        Learning rate of the tuning.
    replay_size : int, default=0
        Number of memory instances with true labels beside each batch of pseudo-labels.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        **dict.fromkeys(["k_max", "steps"], validation.optional(validation.whole(1))),
        "pace_every": validation.whole(1),
        **dict.fromkeys(["epochs", "replay_size"], validation.whole(0)),
        "gamma": validation.in_range(0.0, 1.0),
        "pace_start": validation.in_range(1e-6, 1.0),
        "pace_growth": validation.in_range(1.0),
        "learning_rate": validation.in_range(0.0),
    }
    alternatives: ClassVar[Mapping[str, Mapping[str, type[Part]]]] = {"count": COUNT_RULES}

    k_max: int | None = None
    count: CountRule = Curvature()
    gamma: float = 0.8
    pace_start: float = 0.2
    pace_growth: float = 3.0
    pace_every: int = 10
    epochs: int = 20
    steps: int | None = None
    learning_rate: float = 0.01
    replay_size: int = 0

    def detect(self, x: Tensor, n_novel: int | None, model: Model, seed: int) -> DetectorResult:
        """Find the novel classes of a window. Estimate their number if ``n_novel`` is None."""
        counts = counts_to_try(self.k_max, len(x))
        tuned = {k: self._tune(x, k, model, seed) for k in counts}
        evidence = _gather_evidence(tuned, model, torch_generator(seed, "count"))
        novelty = average_novelty(evidence.points, evidence.clusterings)
        if n_novel is None:
            centres, probability = self.count.find(evidence, None)
            n_novel, curve = len(centres), evidence.curve
        else:
            probability, curve = {n_novel: 1.0}, {}
        if n_novel not in tuned:
            tuned[n_novel] = self._tune(x, n_novel, model, seed)
        points, clusters, _ = tuned[n_novel]
        decision = decide(points, clusters, NEAREST_CENTRE)
        return DetectorResult(decision, novelty, n_novel, probability, curve, points)

    def _weigh(self, z: Tensor, model: Model) -> Tensor:
        prototypes = model.embedding.prototypes
        return weigh_by_confusion(z, prototypes, model.loss.alpha, self.gamma)

    def _tune(self, x: Tensor, n_novel: int, model: Model, seed: int) -> TunedWindow:
        """Train a copy of the network on pseudo-labels, from easy to hard."""
        generator = torch_generator(seed, "curriculum", n_novel)
        network, known = copy.deepcopy(model.embedding.network), model.embedding.prototypes
        z, beta = embed(network, x), model.loss.beta
        weights = self._weigh(z, model)
        clusters = semi_supervised_kmeans(
            z, known, n_novel, generator=generator, beta=beta, weights=weights
        )
        pool = PseudoLabelled.combine(x, clusters, model.memory if self.replay_size else None)
        prototypes, order = clusters.centres, order_by_easiness(weights)
        draws = move_generator(generator, network.device)

        def batches(_: int) -> Iterable[Tensor]:
            for step in range(self.count_steps(len(x), model.training.batch_size)):
                share = pace(step, self.pace_start, self.pace_growth, self.pace_every)
                easy = order[: count_share(share, len(x))].sort().values
                yield pool.draw_batch(easy, model.training.batch_size, self.replay_size, draws)

        def objective(z: Tensor, rows: Tensor) -> Tensor:
            return model.loss.measure(z, pool.labels[rows], prototypes, draws, known)

        settings = model.training.settings(self.epochs, self.learning_rate)
        for _ in training.epochs(
            network, pool.x, batches, objective, settings, seed=seed, purpose="detect"
        ):
            z = embed(network, pool.x)
            prototypes = pool.move_centres(z, prototypes, beta)
            clusters = pool.relabel(z, prototypes)
            order = order_by_easiness(self._weigh(z[: len(x)], model))
        return TunedWindow(z[: len(x)], clusters, network)

    def count_steps(self, n_instances: int, batch_size: int) -> int:
        """The number of batches in a round: the window once, and every share of it."""
        if self.steps is not None:
            return self.steps
        return max(math.ceil(n_instances / batch_size), N_SHARES * self.pace_every)


def _gather_evidence(
    tuned: Mapping[int, TunedWindow], model: Model, generator: torch.Generator
) -> Evidence:
    points = {k: window.points for k, window in tuned.items()}
    clusterings = {k: window.clusters for k, window in tuned.items()}
    return Evidence(
        clusterings=clusterings,
        points=points,
        memory={k: _embed_labelled(window, model.memory) for k, window in tuned.items()},
        held_out={k: _embed_labelled(window, model.held_out) for k, window in tuned.items()},
        curve=measure_validity(points, clusterings),
        generator=generator,
    )


def _embed_labelled(window: TunedWindow, labelled: Labelled) -> p_values.Labelled:
    return p_values.Labelled(embed(window.network, labelled.x), labelled.y)


@dataclass
class PseudoLabelled:
    """A clustered window with pseudo-labels, followed by a memory with true labels."""

    x: Tensor
    labels: Tensor
    n_window: int
    n_known: int

    @classmethod
    def combine(cls, window: Tensor, clusters: Clusters, memory: Labelled | None) -> PseudoLabelled:
        """The window, and the memory if it is replayed."""
        x, labels = window, clusters.assignment.clone()
        if memory is not None:
            x, labels = torch.cat([x, memory.x]), torch.cat([labels, memory.y])
        return cls(x, labels, len(window), clusters.n_known)

    def draw_batch(
        self, easy: Tensor, size: int, replay_size: int, generator: torch.Generator
    ) -> Tensor:
        """``size`` of the easy rows of the window, and ``replay_size`` of the memory's."""
        memory = torch.arange(self.n_window, len(self.x), device=easy.device)
        window = _draw_rows(easy, size, generator)
        return torch.cat([window, _draw_rows(memory, replay_size, generator)])

    def move_centres(self, points: Tensor, centres: Tensor, beta: float) -> Tensor:
        """The centres at their new means; known ones follow the memory, if there is one."""
        n, n_known = self.n_window, self.n_known
        means, counts = class_means(points[:n], self.labels[:n], len(centres))
        novel = anneal(centres[n_known:], means[n_known:], counts[n_known:], beta)
        if len(points) > n:
            means, counts = class_means(points[n:], self.labels[n:], n_known)
            beta = 0.0
        known = anneal(centres[:n_known], means[:n_known], counts[:n_known], beta)
        return torch.cat([known, novel])

    def relabel(self, points: Tensor, centres: Tensor) -> Clusters:
        """Give the window the labels of the nearest centres."""
        window = points[: self.n_window]
        self.labels[: self.n_window] = squared_distances(window, centres).argmin(1)
        return Clusters(centres, self.labels[: self.n_window].clone(), self.n_known)


def _draw_rows(rows: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Draw ``n`` of these rows with replacement; none if there are no rows."""
    if len(rows) == 0:
        return rows
    drawn = torch.randint(len(rows), (n,), generator=generator, device=generator.device)
    return rows[drawn.to(rows.device)]


def weigh_by_confusion(z: Tensor, prototypes: Tensor, alpha: float, gamma: float) -> Tensor:
    """w = (u - threshold)^2 with u = -log of the largest class probability.

    The threshold lies at share ``gamma`` between the smallest and the largest u. Instances that
    are certainly known or certainly novel have large weights, confusing ones small weights.
    """
    u = -F.log_softmax(prototype_logits(z, prototypes, alpha), dim=1).amax(1)
    threshold = (1 - gamma) * u.min() + gamma * u.max()
    return (u - threshold).square()


def order_by_easiness(weights: Tensor) -> Tensor:
    """The instances of a window, those of large weight first.

    >>> order_by_easiness(torch.tensor([0.1, 0.9, 0.5, 0.7])).tolist()
    [1, 3, 2, 0]
    """
    return weights.argsort(descending=True, stable=True)


def count_share(share: float, n: int) -> int:
    """The number of instances in a share of ``n``, rounded up.

    >>> count_share(0.2, 11), count_share(0.2 * 3, 1200)
    (3, 720)
    """
    return min(n, math.ceil(share * n - 1e-6))


def pace(step: int, start: float, growth: float, every: int) -> float:
    """h(l) = min(start * growth^floor(l / every), 1): the share of the window in use.

    >>> [round(pace(step, 0.2, 3, 10), 2) for step in (0, 9, 10, 20)]
    [0.2, 0.2, 0.6, 1.0]
    """
    try:
        return float(min(start * growth ** (step // every), 1.0))
    except OverflowError:  # too large for a float: the whole window
        return 1.0
