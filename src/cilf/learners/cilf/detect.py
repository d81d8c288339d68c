"""Our detector: clusters in a space made for the window, calibrated by held-out instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from cilf.clustering import p_values
from cilf.clustering.class_count import COUNT_RULES
from cilf.clustering.evidence import (
    LEAST_K_MAX,
    CountRule,
    Evidence,
    centres_to_try,
    measure_validity,
)
from cilf.clustering.kmeans import Clusters, refine, semi_supervised_kmeans
from cilf.clustering.unexplained_mass import UnexplainedMass
from cilf.core import validation
from cilf.core.content_sample import hash_rows, sample_by_content, smallest_class_seen
from cilf.core.distances import squared_distances
from cilf.core.notices import warn_once
from cilf.core.parameters import Part
from cilf.core.rows import Converted
from cilf.core.types import Array
from cilf.learners.cilf.decision import (
    Decision,
    Scores,
    average_novelty,
    decide,
    measure_novelty,
    novelty_threshold,
    weigh_by_class,
)
from cilf.learners.cilf.embedding import Embedding, Labelled, Loss
from cilf.learners.cilf.placement import LearnedHead, Placed, Placement
from cilf.learners.cilf.readout import Readouts
from cilf.learners.cilf.window_head import Blend, WindowHead, add_excess
from cilf.nn.space import Space
from cilf.nn.training import Training
from cilf.nn.views import VIEWS

AUTO = "auto"
N_STARTS, N_FINE_STARTS = 5, 3  # of k-means with few novel centres, and with many
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
    readouts: Readouts

    @cached_property
    def labelled(self) -> Labelled:
        """All labelled instances, those of the memory first."""
        memory, held_out = self.memory, self.held_out
        return Labelled(torch.cat([memory.x, held_out.x]), torch.cat([memory.y, held_out.y]))

    @cached_property
    def labelled_views(self) -> list[Tensor]:
        """The labelled instances in each view, computed once."""
        return self.embedding.views(self.labelled.x)

    def split(self, points: Tensor) -> tuple[p_values.Labelled, p_values.Labelled]:
        """Points of the labelled instances, as those of the memory and those held out."""
        n = len(self.memory.y)
        return (
            p_values.Labelled(points[:n], self.memory.y),
            p_values.Labelled(points[n:], self.held_out.y),
        )

    @cached_property
    def ranking(self) -> p_values.Ranking:
        """The held-out instances, by their distances in the embedding."""
        return p_values.Ranking.of_classes(*self.split(self.labelled_views[0]))

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.embedding.network.device

    def prepare_reading(self) -> None:
        """Rank the labelled instances once, before instances are read in several processes."""
        if self._ranks_alone:
            _ = self.ranking

    @property
    def _ranks_alone(self) -> bool:
        return not self.has_frozen_features and len(self.labelled.y) > 0

    def read(self, views: list[Tensor]) -> Reading:
        """The known class of each instance, and its p-value alone."""
        p = None
        if self._ranks_alone:
            p = self.ranking.rank(views[0]).p
        return Reading(self.readouts.score(views).argmax(1), p)


class Reading(NamedTuple):
    """What the views of instances say about each of them alone."""

    label: Tensor  # (n,) position of the known class
    novelty_p: Tensor | None  # (n,) None if the embedding does not decide


class DetectorResult(NamedTuple):
    """The result of a detector on a window."""

    decision: Decision
    novelty: Tensor  # whatever the number of novel classes is
    n_novel: int
    count_probability: Mapping[int, float]  # of each number of novel classes
    curve: Mapping[int, float]  # number of novel classes -> validity
    points: Tensor  # in the space that was clustered
    reading: Reading | None = None  # by the learner's own network


class TransformedWindow(NamedTuple):
    """A window in the space that was made for it."""

    space: Space
    points: Tensor
    known: Tensor  # centres of the known classes
    memory: p_values.Labelled
    held_out: p_values.Labelled
    views: list[Tensor]  # of the window

    def cluster(self, n_novel: int, generator: torch.Generator) -> Clusters:
        """k-means with novel centres beside those of the known classes, which stay."""
        n_starts = N_STARTS if n_novel <= LEAST_K_MAX else N_FINE_STARTS
        return semi_supervised_kmeans(
            self.points, self.known, n_novel, generator=generator, n_starts=n_starts
        )

    @property
    def labelled(self) -> p_values.Labelled:
        """All labelled instances, those of the memory first."""
        memory, held_out = self.memory, self.held_out
        return p_values.Labelled(
            torch.cat([memory.points, held_out.points]), torch.cat([memory.labels, held_out.labels])
        )

    def start_head(self, seed: int) -> WindowHead | None:
        """A head for the window; None if there are no labelled instances to compare it with."""
        if len(self.labelled.labels) == 0:
            return None
        generator = torch.Generator().manual_seed(seed)
        return WindowHead.start(self.points, self.known, self.labelled, generator)

    def measure_margins(self, clusters: Clusters) -> Scores:
        """How much nearer a novel centre is than a known one."""
        return Scores(*(measure_novelty(x, clusters) for x in (self.points, self.held_out.points)))

    def threshold(self, held_out: Tensor, false_novel: float, strict: bool) -> float:
        """The novelty that few known instances exceed, in the mixture of classes of the window."""
        nearest = squared_distances(self.points, self.known).argmin(1)
        sizes = torch.bincount(nearest, minlength=len(self.known)).to(self.points)
        weights = weigh_by_class(self.held_out.labels, sizes)
        return novelty_threshold(held_out, false_novel, strict, weights)


class Search(NamedTuple):
    """The novel classes of a window, and all that assigns its instances."""

    window: TransformedWindow
    tried: Mapping[int, Clusters]
    head: WindowHead | None
    clusters: Clusters
    threshold: float
    decision: Decision
    novelty: Tensor
    n_novel: int
    count_probability: Mapping[int, float]
    curve: Mapping[int, float]


@dataclass(frozen=True, kw_only=True, repr=False)
class Detector(Part):
    """Cluster a window in several views at once, without training on it.

    A window of more than ``sample_size`` instances is clustered and counted on a random sample of
    them. All instances are then assigned, in blocks, to what was found in the sample. A class is
    found if the sample has six of its instances or more.

    Parameters
    ----------
    k_max : int or None, default=None
        Largest number of novel centres that a window is clustered with. None follows the size of
        the window: one for every 8 instances, 64 at most.
    count : CountRule, default=UnexplainedMass()
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
    head_weight : float, default=0.5
        Weight, in novelty and decisions, of the head that learns where the window has more
        instances than its known classes explain. 0 leaves the head out.
    head_rounds : int, default=2
        Number of times that the head learns the clusters from its own answers. 0 leaves instances
        in the clusters of the nearest centres.
    sample_size : int, default=20000
        Largest number of instances that the classes of a window are searched in. A larger number
        shows smaller classes in large windows, at a proportional cost of time and memory.
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {
        "k_max": validation.optional(validation.whole(1)),
        "cluster_on": validation.among([AUTO, *VIEWS]),
        "space_size": validation.whole(1),
        "whitening": validation.in_range(0.0, 1.0),
        "false_novel": validation.in_range(0.0, 1.0),
        "strict": validation.flag,
        "head_weight": validation.in_range(0.0),
        "head_rounds": validation.whole(0),
        "sample_size": validation.whole(1),
    }
    alternatives: ClassVar[Mapping[str, Mapping[str, type[Part]]]] = {"count": COUNT_RULES}

    k_max: int | None = None
    count: CountRule = UnexplainedMass()
    cluster_on: str = AUTO
    space_size: int = 64
    whitening: float = 0.5
    false_novel: float = 0.05
    strict: bool = False
    head_weight: float = 0.5
    head_rounds: int = 2
    sample_size: int = 20_000

    def takes_sample(self, n: int, n_novel: int | None) -> bool:
        """Whether a window of so many instances is searched in a sample of them."""
        return n > max(self.sample_size, n_novel or 0)

    def detect(self, x: Tensor, n_novel: int | None, model: Model, seed: int) -> DetectorResult:
        """Find the novel classes of a window. Estimate their number if ``n_novel`` is None."""
        found = self._search(x, n_novel, model, seed)
        return DetectorResult(
            found.decision, found.novelty, found.n_novel, found.count_probability, found.curve,
            found.window.points, model.read(found.window.views),
        )  # fmt: skip

    def detect_by_sample(
        self, x: Converted, n_novel: int | None, model: Model, seed: int
    ) -> DetectorResult:
        """Search a sample of a large window, and assign all instances to what was found.

        The instances of the sample, and those equal to them, keep what the search says of them.
        Instances are assigned where they are; only the sample and the results come here.
        """
        size = max(self.sample_size, n_novel or 0)
        (keys,) = x.map(lambda block: (hash_rows(block.cpu().numpy(), seed),))
        sample = sample_by_content(keys, size)
        warn_once(
            f"the novel classes are searched in a random sample of {size} of {len(x)} instances: "
            f"classes of fewer than {smallest_class_seen(len(x), size)} may be missed "
            "(detector.sample_size)."
        )
        found = self._search(x.take(sample.rows), n_novel, model, seed)
        placement, space, device = self._make_placement(found), found.window.space, model.device
        model.prepare_reading()

        def assign(block: Tensor) -> tuple[Array, ...]:
            views = model.embedding.views(block)
            points = space.transform(self._choose_views(views, model))
            label, p = model.read(views)
            assigned = (points, *placement.place(points), label, *(() if p is None else (p,)))
            return tuple(part.cpu().numpy() for part in assigned)

        joined = (torch.from_numpy(part).to(device) for part in x.map(assign))
        points, novelty, nearest, cluster, label, *p = joined
        twins = torch.from_numpy(sample.twins).to(device)
        of_sample = Placed(found.novelty, found.decision.label, found.decision.cluster)
        whole = Placed(novelty, nearest, cluster).replace_twins(of_sample, twins)
        return DetectorResult(
            Decision(whole.label, whole.cluster), whole.novelty, found.n_novel,
            found.count_probability, found.curve, points, Reading(label, p[0] if p else None),
        )  # fmt: skip

    def _make_placement(self, found: Search) -> Placement:
        """What assigns instances that the search did not see as it assigned those that it saw."""
        tried = [clusters.novel for k, clusters in found.tried.items() if k]
        return Placement(tried, found.clusters, found.threshold, self._generalise_head(found))

    def _generalise_head(self, found: Search) -> LearnedHead | None:
        head, clusters, points = found.head, found.clusters, found.window.points
        if head is None:
            return None
        n_known, n_classes = clusters.n_known, len(clusters.centres)
        margins, excess = found.window.measure_margins(clusters), head.excess(0).window
        scores = self._score(margins, head).window
        distances = squared_distances(points, clusters.centres)
        is_novel = (scores > found.threshold) & (n_classes > n_known)
        confirms = n_classes > n_known and self.head_rounds > 0
        n_rounds = self.head_rounds if confirms else 0
        assignment = head.converge(distances, n_known, is_novel, n_rounds)
        average = average_novelty(dict.fromkeys(found.tried, points), found.tried)
        return LearnedHead(
            regression=head.generalise(assignment, n_classes),
            novelty_blend=Blend.measure(average, excess, self.head_weight),
            score_blend=Blend.measure(margins.window, excess, self.head_weight),
            confirms=confirms,
        )

    def _search(self, x: Tensor, n_novel: int | None, model: Model, seed: int) -> Search:
        window = self._transform(x, model)
        generator = torch.Generator().manual_seed(seed)
        tried = {k: window.cluster(k, generator) for k in centres_to_try(self.k_max, len(x))}
        head = window.start_head(seed) if self.head_weight > 0 else None
        average = average_novelty(dict.fromkeys(tried, window.points), tried)
        novelty = self._score(Scores(average, average[:0]), head).window
        evidence = self._gather_evidence(window, tried, n_novel, seed)
        centres, probability = self.count.find(evidence, n_novel)
        clusters = refine(window.points, window.known, centres)
        threshold, decision = self._decide(window, clusters, head)
        return Search(
            window, tried, head, clusters, threshold, decision, novelty, len(centres), probability,
            evidence.curve,
        )  # fmt: skip

    def _score(self, margins: Scores, head: WindowHead | None) -> Scores:
        """Novelty by the margins between centres, and by the head."""
        if head is None:
            return margins
        return add_excess(margins, head.excess(len(margins.held_out)), self.head_weight)

    def _decide(
        self, window: TransformedWindow, clusters: Clusters, head: WindowHead | None
    ) -> tuple[float, Decision]:
        """The threshold, and the class or the cluster of each instance."""
        margins = window.measure_margins(clusters)
        scores = self._score(margins, head)
        threshold = window.threshold(scores.held_out, self.false_novel, self.strict)
        if head is None:
            return threshold, decide(window.points, clusters, threshold)
        return threshold, head.decide(
            window.points, clusters, margins.window, scores.window, threshold, self.head_rounds
        )

    def _transform(self, x: Tensor, model: Model) -> TransformedWindow:
        """The window in a space that is fitted to it and to all labelled instances.

        Held-out instances have the same part in the space as those of the window, so that they
        can be compared.
        """
        embedding = model.embedding
        seen = embedding.views(x)
        views, centres, labelled = (
            self._choose_views(each, model)
            for each in (seen, embedding.centres, model.labelled_views)
        )
        space = Space.fit(
            labelled, model.labelled.y, views, centres,
            size=self.space_size, whitening=self.whitening,
        )  # fmt: skip
        memory, held_out = model.split(space.transform(labelled))
        return TransformedWindow(
            space, space.transform(views), space.transform(centres), memory, held_out, seen
        )

    def _choose_views(self, views: Sequence[Tensor], model: Model) -> list[Tensor]:
        if self.cluster_on == AUTO:
            return list(views[-1:] if model.has_frozen_features else views)
        return list(views[: VIEWS.index(self.cluster_on) + 1])

    def _gather_evidence(
        self,
        window: TransformedWindow,
        tried: Mapping[int, Clusters],
        n_novel: int | None,
        seed: int,
    ) -> Evidence:
        """The clusterings that were tried, and one with as many centres as there are classes."""
        generator = torch.Generator().manual_seed(seed)
        clusterings = dict(tried)
        if n_novel is not None and n_novel not in clusterings:
            clusterings[n_novel] = window.cluster(n_novel, generator)
        points = dict.fromkeys(clusterings, window.points)
        step = 1 + len(window.points) // CURVE_SIZE
        return Evidence(
            clusterings=clusterings,
            points=points,
            memory=dict.fromkeys(clusterings, window.memory),
            held_out=dict.fromkeys(clusterings, window.held_out),
            curve={} if n_novel is not None else measure_validity(points, tried, step),
            generator=generator,
        )
