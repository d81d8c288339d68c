"""DTC: a classifier's features are tuned on the window until it falls into clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cilf.clustering.kmeans import fill_empty
from cilf.clustering.novel_clusters import novel_shares
from cilf.core import Detection, validation
from cilf.core.distances import squared_distances
from cilf.core.random import derived_seed, torch_generator
from cilf.core.types import Array, Bools, Floats, Ints
from cilf.learners.dtc import class_count, deep_clustering
from cilf.learners.dtc.class_count import Probes
from cilf.learners.with_classifier import ClassifierLearner
from cilf.nn import training
from cilf.nn.classifier import unsureness
from cilf.nn.network import as_tensor, embed, to_numpy


class Window(NamedTuple):
    """A window as the classifier sees it."""

    x: Tensor  # (n, ...)
    features: Tensor  # (n, f)
    label: Ints  # (n,)
    unsure: Floats  # (n,) 1 - the largest softmax probability
    marked: Bools  # (n,) whether it is unsure as few known instances are


class Clustered(NamedTuple):
    """A window after deep clustering."""

    z: Tensor  # (n, n_clusters)
    q: Floats  # (n, n_clusters)
    assignment: Ints  # (n,) its clusters, none of them empty


@dataclass(kw_only=True, repr=False, eq=False)
class DTC(ClassifierLearner):
    """Deep transfer clustering of whole windows: clusters that the classifier is unsure of are new.

    The features that tell known classes apart are reduced to as many main directions as there
    are clusters, and tuned on the unlabelled window so that instances come closer to the centre
    they are nearest to. How many clusters there are is judged by known classes, which k-means has
    to find again.

    Args:
        variant: "tep" makes targets of assignments averaged over epochs; "baseline" of the last
            ones, as do "pi" and "te", which add a term: two augmentations of an instance, or
            the instance and its average over epochs, shall be assigned alike.
        warmup_epochs, warmup_learning_rate: of tuning towards the first target.
        sharpen_epochs, sharpen_learning_rate: of tuning towards targets made anew, at the most.
        sharpen_weight_decay: in both.
        refresh: epochs between two targets.
        ensemble_decay: how much of the average over epochs stays in each.
        consistency, rampup: weight of the term of "pi" and "te", and epochs until it is reached.
        settled: tuning ends when no larger share of instances changed its cluster between two
            targets; None tunes for all epochs.
        k_max: most novel classes looked for in one window.
        count: "average" of the two numbers of classes with the best silhouette and with the best
            accuracy on known classes, or one of them: "silhouette", "accuracy".
        tie: accuracies that are lower than the best by this much count as the best.
        anchor_share: share of the known classes that keep their labels in counting.
        n_splits: ways to choose them, which are averaged.
        least_ratio: size of the smallest cluster that counts, over that of the largest.
        least_marked: share of a cluster that has to be marked for it to be a novel class.
        accepted, calibration_size, memory_size: see :class:`ClassifierLearner`.
        seed, device, backbone, width, epochs, update_epochs, training: see :class:`WithNetwork`.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(c, 0.3, size=(30, 2)) for c in (-2, 0, 2)])
        >>> learner = DTC(epochs=5).fit(X[:60], ["a"] * 30 + ["b"] * 30)
        >>> learner.detect(X, n_novel=1).n_novel
        1

    Reference: Han, Vedaldi and Zisserman, "Learning to discover novel visual categories via deep
    transfer clustering", ICCV 2019. ``docs/methods/dtc.md`` numbers the differences.
    """

    name: ClassVar[str] = "dtc"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        "variant": validation.among(deep_clustering.VARIANTS),
        "count": validation.among(class_count.RULES),
        **dict.fromkeys(["warmup_epochs", "sharpen_epochs", "rampup"], validation.whole(0)),
        **dict.fromkeys(["refresh", "k_max", "n_splits"], validation.whole(1)),
        **dict.fromkeys(
            ["warmup_learning_rate", "sharpen_learning_rate", "sharpen_weight_decay"],
            validation.between(0.0),
        ),
        "consistency": validation.between(0.0),
        "ensemble_decay": validation.between(0.0, 0.999),
        "settled": validation.optional(validation.between(0.0, 1.0)),
        **dict.fromkeys(
            ["tie", "anchor_share", "least_ratio", "least_marked"],
            validation.between(0.0, 1.0),
        ),
    }

    variant: str = deep_clustering.TEP
    warmup_epochs: int = 10
    warmup_learning_rate: float = 0.1
    sharpen_epochs: int = 100
    sharpen_learning_rate: float = 0.05
    sharpen_weight_decay: float = 1e-5
    refresh: int = 5
    ensemble_decay: float = 0.6
    consistency: float = 10.0
    rampup: int = 5
    settled: float | None = 0.001
    k_max: int = 8
    count: str = class_count.AVERAGE
    tie: float = 0.15
    anchor_share: float = 0.6
    n_splits: int = 3
    least_ratio: float = 0.01
    least_marked: float = 0.25

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        window = self._look(X)
        n_clusters, curve = self._count(window, n_novel)
        clustered = self._cluster(window, n_clusters, fill=n_novel is not None)
        shares = novel_shares(clustered.assignment, window.marked)  # of each cluster
        wanted = int((shares >= self.least_marked).sum()) if n_novel is None else n_novel
        position = np.full(len(shares), -1, dtype=np.int64)
        position[np.argsort(-shares, kind="stable")[:wanted]] = np.arange(wanted)
        return Detection(
            novelty=((clustered.q @ shares + window.unsure) / 2).astype(np.float32),
            label=self.classes_[window.label],
            cluster=position[clustered.assignment],
            n_novel=wanted,
            curve=curve,
            embedding=to_numpy(clustered.z),
        )

    def _look(self, X: Array) -> Window:
        logits, features = self._outputs(X)
        unsure = unsureness(logits)
        marked = unsure > self._most_accepted(lambda known: unsureness(self._outputs(known)[0]))
        label = logits.argmax(1).cpu().numpy()
        return Window(as_tensor(X, self._network.device), features, label, unsure, marked)

    def _count(self, window: Window, n_novel: int | None) -> tuple[int, dict[int, float]]:
        """Clusters in the window, known classes included, and how good each number looks."""
        n_known = len(self._classes)
        tried = range(self.k_max + 1) if n_novel is None else [n_novel]
        labelled = self._memory.joined(self._calibration.X, self._calibration.y)
        reduce = deep_clustering.principal_head(window.features, n_known + max(tried))
        with torch.no_grad():
            probes = Probes(reduce(self._features_of(labelled.X)), labelled.y, n_known)
            points = reduce(window.features)
        cuts = class_count.cuts(
            points, probes, tried, anchor_share=self.anchor_share, n_splits=self.n_splits,
            generator=torch_generator(self.seed, "count", self._n_updates),
        )  # fmt: skip
        found = n_novel
        if found is None:
            found = class_count.chosen(cuts, self.count, self.tie)
        filled = [class_count.n_filled(cut.assignment, self.least_ratio) for cut in cuts[found]]
        n_clusters = max(round(float(np.median(filled))), n_novel or 0)
        return n_clusters, class_count.curve(cuts) if n_novel is None else {}

    def _features_of(self, X: Array) -> Tensor:
        if len(X) == 0:
            return torch.zeros(0, self._network.head.in_features, device=self._network.device)
        return self._outputs(X)[1]

    def _cluster(self, window: Window, n_clusters: int, *, fill: bool) -> Clustered:
        """Deep clustering of the window; ``fill`` leaves no cluster empty."""
        network = deep_clustering.principal_clusters(
            self._network, window.features, n_clusters,
            torch_generator(self.seed, "detect", self._n_updates),
        )  # fmt: skip
        seed = derived_seed(self.seed, "detect", self._n_updates)
        deep_clustering.tune(network, window.x, self._tuning(), seed=seed)
        z, centres = embed(network, window.x), network.get_parameter("centres").detach()
        q = deep_clustering.soft_assignments(z, centres)
        nearest = q.argmax(1)
        if fill:
            nearest = fill_empty(nearest, squared_distances(z, centres))
        filled, assignment = np.unique(nearest.cpu().numpy(), return_inverse=True)
        return Clustered(z, to_numpy(q)[:, filled], assignment)

    def _tuning(self) -> deep_clustering.Tuning:
        def settings(epochs: int, rate: float) -> training.Settings:
            return training.Settings(
                epochs=epochs,
                learning_rate=rate,
                weight_decay=self.sharpen_weight_decay,
                clip=self.training.clip,
                augmentation=self.training.augmentation,
            )

        return deep_clustering.Tuning(
            variant=self.variant,
            warmup=settings(self.warmup_epochs, self.warmup_learning_rate),
            rounds=settings(self.sharpen_epochs, self.sharpen_learning_rate),
            batch_size=self.training.batch_size,
            refresh=self.refresh,
            ensemble_decay=self.ensemble_decay,
            consistency=self.consistency,
            rampup=self.rampup,
            settled=self.settled,
        )
