"""Our detector: clusters in a space made for the window, calibrated by held-out instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from cilf.clustering.class_count import COUNT_RULES
from cilf.clustering.evidence import CountRule, Evidence, counts_to_try, measure_validity
from cilf.clustering.excess_mass import ExcessMass
from cilf.clustering.kmeans import Clusters, refine, semi_supervised_kmeans
from cilf.core import validation
from cilf.core.parameters import Part
from cilf.learners.cilf.decision import Decision, decide, measure_novelty, novelty_threshold
from cilf.learners.cilf.embedding import Embedding, Labelled, Loss
from cilf.nn.space import Space
from cilf.nn.training import Training
from cilf.nn.views import VIEWS

AUTO = "auto"
CURVE_SIZE = 1000  # instances that the validity curve is measured on, about


@dataclass(frozen=True)
class Model:
    """The fitted state that a detector uses."""

    embedding: Embedding
    memory: Labelled
    held_out: Labelled  # known instances that no training saw
    loss: Loss
    training: Training
    has_frozen_features: bool  # whether instances are vectors of a frozen network


class DetectorResult(NamedTuple):
    """The result of a detector on a window."""

    decision: Decision
    n_novel: int
    curve: Mapping[int, float]  # number of novel classes -> validity
    points: Tensor  # in the space that was clustered


class TransformedWindow(NamedTuple):
    """A window in the space that was made for it."""

    points: Tensor
    known: Tensor  # centres of the known classes
    held_out: Tensor
    held_out_labels: Tensor

    def cluster(self, n_novel: int, generator: torch.Generator) -> Clusters:
        """k-means with novel centres beside those of the known classes, which stay."""
        return semi_supervised_kmeans(self.points, self.known, n_novel, generator=generator)


@dataclass(frozen=True, kw_only=True, repr=False)
class Detector(Part):
    """Cluster a window in several views at once, without training on it.

    Parameters
    ----------
    k_max : int, default=8
        Largest number of novel classes to look for in one window. No more than one
        class for every 16 instances, plus one, is tried.
    count : CountRule, default=ExcessMass()
        Rule for the number of novel classes, one of ``COUNT_RULES``.
    cluster_on : {"auto", "embedding", "features", "inputs"}, default="auto"
        Views to cluster on: the embedding alone, with the backbone's features, or with the inputs
        too. "auto" takes all three. It takes the inputs alone if they are vectors of a frozen
        network.
    space_size : int, default=64
        Number of dimensions of the space that is clustered.
    whitening : float, default=0.5
        Degree, from 0 to 1, to which distances are measured in deviations within the known
        classes.
    false_novel : float, default=0.05
        Share of known instances that may be called novel beside novel ones.
    strict : bool, default=False
        Whether to keep to ``false_novel`` where known and novel classes overlap. Many novel
        instances are missed there. If False, an instance that is nearest to a novel centre is
        novel in any case.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "k_max": validation.whole(1),
        "cluster_on": validation.among([AUTO, *VIEWS]),
        "space_size": validation.whole(1),
        "whitening": validation.in_range(0.0, 1.0),
        "false_novel": validation.in_range(0.0, 1.0),
        "strict": validation.flag,
    }
    alternatives: ClassVar[Mapping[str, Mapping[str, type[Part]]]] = {"count": COUNT_RULES}

    k_max: int = 8
    count: CountRule = ExcessMass()
    cluster_on: str = AUTO
    space_size: int = 64
    whitening: float = 0.5
    false_novel: float = 0.05
    strict: bool = False

    def detect(self, x: Tensor, n_novel: int | None, model: Model, seed: int) -> DetectorResult:
        """Find the novel classes of a window. Estimate their number if ``n_novel`` is None."""
        generator = torch.Generator().manual_seed(seed)
        window = self._transform(x, model)
        curve: Mapping[int, float] = {}
        if n_novel is None:
            clusters, curve = self._count(window, generator)
        else:
            clusters = window.cluster(n_novel, generator)
        known_novelty = measure_novelty(window.held_out, clusters)
        threshold = novelty_threshold(known_novelty, self.false_novel, self.strict)
        decision = decide(window.points, clusters, threshold)
        return DetectorResult(decision, len(clusters.novel), curve, window.points)

    def _transform(self, x: Tensor, model: Model) -> TransformedWindow:
        """The window in a space that is fitted to it and to the memory."""
        embedding, memory = model.embedding, model.memory
        views = self._choose_views(embedding.views(x), model)
        known = self._choose_views(embedding.views(memory.x), model)
        space = Space.fit(known, memory.y, views, size=self.space_size, whitening=self.whitening)
        return TransformedWindow(
            points=space.transform(views),
            known=space.transform(self._choose_views(embedding.centres, model)),
            held_out=space.transform(self._choose_views(embedding.views(model.held_out.x), model)),
            held_out_labels=model.held_out.y,
        )

    def _choose_views(self, views: Sequence[Tensor], model: Model) -> list[Tensor]:
        if self.cluster_on == AUTO:
            return list(views[-1:] if model.has_frozen_features else views)
        return list(views[: VIEWS.index(self.cluster_on) + 1])

    def _count(
        self, window: TransformedWindow, generator: torch.Generator
    ) -> tuple[Clusters, Mapping[int, float]]:
        """The clusters of as many novel classes as the rule finds, and the validity curve."""
        counts = counts_to_try(self.k_max, len(window.points))
        clusterings = {k: window.cluster(k, generator) for k in counts}
        points = dict.fromkeys(counts, window.points)
        step = 1 + len(window.points) // CURVE_SIZE
        evidence = Evidence(
            clusterings=clusterings,
            points=points,
            held_out=dict.fromkeys(counts, window.held_out),
            held_out_labels=window.held_out_labels,
            curve=measure_validity(points, clusterings, step),
            generator=generator,
        )
        centres = self.count.find_centres(evidence)
        return refine(window.points, window.known, centres), evidence.curve
