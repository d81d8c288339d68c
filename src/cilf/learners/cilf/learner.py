"""CILF: an embedding that adapts to the classes it is told about, one window after another."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self, TypedDict

import numpy as np
import torch
from torch import Tensor

from cilf.clustering import class_count
from cilf.clustering.kmeans import Clusters, semi_supervised_kmeans, settled
from cilf.clustering.silhouette import silhouette
from cilf.core import Detection, validation
from cilf.core.distances import squared_distances
from cilf.core.random import derived_seed, generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.errors import BadConfig
from cilf.learners.base import Arrays, Learner
from cilf.learners.cilf import curriculum, decision
from cilf.learners.cilf.pseudo_labels import PseudoLabelled
from cilf.learners.cilf.space import Space
from cilf.learners.with_network import WithNetwork
from cilf.nn import losses, training
from cilf.nn.memory import Memory, set_aside
from cilf.nn.network import (
    Network,
    as_tensor,
    embed,
    to_numpy,
    views,
)
from cilf.nn.prototypes import annealed, class_means
from cilf.nn.rotation import RotationTask

READ_CURVE = {"silhouette": class_count.largest, "curvature": class_count.sharpest_bend}

VIEWS = ["embedding", "features", "inputs"]  # each with those before it
INPUTS = VIEWS.index("inputs")
AUTO = "auto"
ENOUGH_TO_SHOW = 1000  # instances that a curve is drawn from if it decides nothing
USUAL_SIZE = 16  # instances of a class in a window; more classes than this allows are not tried


@dataclass(kw_only=True, repr=False, eq=False)
class CILF(WithNetwork, Learner):
    """Adaptive embedding with prototypes, curriculum clustering and a replayed memory.

    ``fit`` trains an embedding in which every class gathers around its prototype (Algorithm 1).
    ``detect`` clusters a window around the known prototypes and free centres, counts the novel
    classes and, if asked to, sharpens a copy of the embedding on its own pseudo-labels, the
    certain ones first (Algorithm 2). ``update`` learns the labelled instances beside the memory,
    with distillation and prototypes held in place (Algorithm 3).

    Args:
        seed: decides weights, batches, clustering, memory; equal seeds give equal results (on the
            CPU: some of torch's sums on GPUs are not deterministic).
        device: "auto", "cpu", "cuda", ...
        backbone: "mlp", "convnet", "resnet18"; a frozen pre-trained network with an mlp on top:
            "efficientnet-lite0", "timm:NAME", "torchvision:NAME" (images), "minilm",
            "sentence:NAME-OR-FOLDER" (texts); "tune:" before one of those for images trains it
            along; "auto"; or a function from the shape of one instance to a module.
        width: channels (or units) of the backbone's first layer; its own default if None.
        embedding_size: dimensions of the embedding.
        alpha: sharpness of the class probabilities, softmax(-alpha * squared distance).
        length: that every embedding is brought to; None leaves them as they are.
        margin: of the triplet loss L_inter.
        triplets: its partners in a batch: "random" (a positive, and the nearest of negatives
            drawn from each other class), "average" (over these negatives) or "hardest".
        negatives: other classes that these negatives are drawn from, anew for each instance; None
            is all of them, the nearest of which is too hard to learn from if there are many.
        squared: whether its distances are squared.
        lambda1: weight of L_inter.
        lambda2: weight of R, which holds the prototypes of known classes in place.
        beta: how much of a prototype stays when it is annealed after an epoch.
        exact_prototypes: whether prototypes end as exact class means instead of annealed ones.
        epochs: of the initial training.
        batch_size: in all training.
        learning_rate: of the initial training.
        weight_decay: in all training.
        clip: largest norm of a gradient; None does not clip.
        rotation: weight of telling turned images apart in the initial training and in updates, a
            task that needs no labels; images only.
        augmentation: None, "shift", "flip" or "shift-flip"; images only.
        k_max: most novel classes looked for in one window; no more than one, and one for every 16
            instances.
        count: rule for their number: "excess-mass", or "silhouette" or "curvature" of the
            validity curve, which tune the embedding for every K.
        surplus, doubt, least_share, leniency: of the rule "excess-mass", see ``novel_count``.
        cluster_on: "embedding" alone, with the backbone's "features", or with the "inputs" too;
            "auto" is all three, but for instances that a frozen network saw, whose vectors it
            takes as they are.
        space_size: directions of these that are clustered on; None clusters on the embedding as
            it is.
        whitening: how far distances are measured in deviations within the known classes, from 0
            to 1; see ``space``.
        cluster_beta: how much of a known prototype stays in the clustering of a window.
        weighted: whether confusing instances weigh less in that clustering.
        gamma: where between the least and the most confused instance the weight is zero.
        false_novel: share of known instances that are called novel beside novel ones, as held-out
            ones tell: the price of missing fewer novel instances. Where known and novel classes
            overlap it can be larger: there the nearest centre decides, unless
        strict: holds that share at any price in missed novel instances.
        order: curriculum: "certainty" (the surest of each cluster first), "weights" (of the
            paper) or "none".
        pace_start, pace_growth, pace_every: share of the window in play: it starts at the first,
            times the second after every so many batches.
        detect_epochs, detect_steps: of tuning on pseudo-labels: rounds, and batches in each. With
            typical patches to cluster on it gained nothing, so there are no rounds by default.
        detect_learning_rate: of that tuning.
        replay: memory instances with true labels beside each batch of pseudo-labels.
        update_epochs, update_learning_rate: of an update.
        distill: weight of the distillation on the memory.
        distill_on: what it holds: "probabilities" of the old classes, or "embeddings".
        temperature: that softens these probabilities.
        memory_size: labelled instances kept in all.
        memory_choice: which ones of a class: "random", or by "herding" those whose mean is that
            of the class.
        calibration_size: labelled instances of each class kept out of all training, to know
            what fresh instances of known classes look like.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> mixed = np.random.default_rng(0).permutation(len(y))  # they come writer by writer
        >>> X, y = X[mixed], y[mixed]
        >>> known, new = y < 3, (y == 3) & (np.arange(len(y)) < 400)
        >>> learner = CILF().fit(X[known][:300], y[known][:300])
        >>> window = np.concatenate([X[known][300:400], X[new]])
        >>> found = learner.detect(window)
        >>> found.n_novel
        1
        >>> int(learner.update(X[new], y[new]).predict(X[new][:1])[0])
        3

    Reference: Yang, Sun, Zhu, Fu, Xiong and Yang, "Learning Adaptive Embedding Considering
    Incremental Class", TKDE. ``docs/methods/cilf.md`` numbers the differences; ``CILF.paper()``
    has the paper's choices wherever it states one.
    """

    name: ClassVar[str] = "cilf"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **WithNetwork.domains,
        "count": validation.among(["excess-mass", *READ_CURVE]),
        "cluster_on": validation.among([AUTO, *VIEWS]),
        "order": validation.among(["certainty", "weights", "none"]),
        "triplets": validation.among(losses.PARTNERS),
        "distill_on": validation.among(["probabilities", "embeddings"]),
        "memory_choice": validation.among(["random", "herding"]),
        **dict.fromkeys(
            ["embedding_size", "k_max", "pace_every", "detect_steps"], validation.whole(1)
        ),
        **dict.fromkeys(
            ["detect_epochs", "replay", "memory_size", "calibration_size"], validation.whole(0)
        ),
        **dict.fromkeys(["squared", "exact_prototypes", "weighted", "strict"], validation.flag),
        **dict.fromkeys(
            ["beta", "cluster_beta", "gamma", "leniency", "whitening", "false_novel"],
            validation.between(0.0, 1.0),
        ),
        **dict.fromkeys(
            ["alpha", "margin", "rotation", "lambda1", "lambda2", "distill", "surplus", "doubt",
             "least_share", "detect_learning_rate"],
            validation.between(0.0),
        ),
        "pace_start": validation.between(1e-6, 1.0),
        "pace_growth": validation.between(1.0),
        "temperature": validation.between(1e-3),
        "length": validation.optional(validation.between(1e-6)),
        **dict.fromkeys(["negatives", "space_size"], validation.optional(validation.whole(1))),
    }  # fmt: skip

    embedding_size: int = 64
    alpha: float = 0.3
    length: float | None = None
    margin: float = 5.0
    triplets: str = "random"
    negatives: int | None = 4
    squared: bool = True
    lambda1: float = 1.0
    lambda2: float = 1.0
    beta: float = 0.8
    exact_prototypes: bool = True
    rotation: float = 0.0
    k_max: int = 8
    count: str = "excess-mass"
    surplus: float = 0.6
    doubt: float = 1.5
    least_share: float = 0.4
    leniency: float = 0.3
    cluster_on: str = "auto"
    space_size: int | None = 64
    whitening: float = 0.5
    cluster_beta: float = 1.0
    weighted: bool = False
    gamma: float = 0.8
    false_novel: float = 0.05
    strict: bool = False
    order: str = "certainty"
    pace_start: float = 0.4
    pace_growth: float = 1.5
    pace_every: int = 20
    detect_epochs: int = 0
    detect_steps: int = 20
    detect_learning_rate: float = 0.005
    replay: int = 64
    distill: float = 1.0
    distill_on: str = "probabilities"
    temperature: float = 1.0
    memory_size: int = 2000
    memory_choice: str = "random"
    calibration_size: int = 20

    _centres: list[Tensor] = field(init=False)  # of each class in each view; prototypes first
    _memory: Memory = field(init=False)
    _calibration: Memory = field(init=False)

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """The choices of the paper wherever it states one; ``parameters`` change others."""
        stated: dict[str, Any] = {
            "backbone": "resnet18", "training__batch_size": 128, "training__augmentation": None,
            "negatives": None,
            "exact_prototypes": False, "count": "curvature", "cluster_on": "embedding",
            "space_size": None, "cluster_beta": 0.8, "weighted": True, "order": "weights",
            "pace_start": 0.2, "pace_growth": 3.0, "pace_every": 10,
            "detect_learning_rate": 0.01, "replay": 0, "detect_epochs": 20, "update_epochs": 20,
            "calibration_size": 0,
        }  # fmt: skip
        return cls().set_params(**(stated | parameters))

    # ------------------------------------------------------ Algorithm 1: embedding network

    def _fit(self, X: Array, y: Ints) -> None:
        rng, draws = generator(self.seed, "fit"), torch_generator(self.seed, "fit")
        train, aside = set_aside(y, self.calibration_size, rng, there=y[:0])
        known, n_classes = Memory(X[train], y[train]), int(y.max()) + 1
        architecture = self._wanted_architecture(
            embedding_size=self.embedding_size, length=self.length
        )
        network = self._make_network(X.shape[1:], architecture)
        x, labels = self._tensors(known, network)
        network.standardise(x)
        network.learn_inputs(x, torch_generator(self.seed, "inputs"))
        prototypes, _ = class_means(embed(network, x), labels, n_classes)

        def objective(z: Tensor, rows: Tensor, prototypes: Tensor) -> Tensor:
            return self._loss(z, labels[rows], prototypes, draws)

        settings = self.training.settings(self.epochs, self.training.learning_rate)
        prototypes = self._train(
            network, x, labels, prototypes, objective, settings, draws, ("fit",)
        )
        self._settle(network, x, labels, prototypes)
        self._architecture = architecture
        self._memory = self._remembered(known, x, rng)
        self._calibration = Memory(X[aside], y[aside])

    def _loss(
        self,
        z: Tensor,
        y: Tensor,
        prototypes: Tensor,
        draws: torch.Generator,
        anchors: Tensor | None = None,
    ) -> Tensor:
        """L_intra + lambda1 * L_inter, and lambda2 * R where there are prototypes to hold."""
        loss = losses.prototype_cross_entropy(z, y, prototypes, self.alpha)
        inter = losses.triplet_loss(
            z, y, self.margin, draws,
            partners=self.triplets, n_negatives=self.negatives, squared=self.squared,
        )  # fmt: skip
        loss = loss + self.lambda1 * inter
        if anchors is not None:
            loss = loss + self.lambda2 * losses.prototype_drift(z, y, anchors)
        return loss

    # ------------------------------------------------------ Algorithm 2: detection

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        x = as_tensor(X, self._network.device)
        draws = torch_generator(self.seed, "detect", self._n_updates)
        scene = self._look(x)
        if n_novel is not None:
            clusters = self._cluster(scene, n_novel, draws)
            return self._detection(self._tune(scene, clusters, draws), {})
        tried = range(min(self.k_max, 1 + len(x) // USUAL_SIZE) + 1)
        clusterings = {k: self._cluster(scene, k, draws) for k in tried}
        count = self._count_by_mass if self.count == "excess-mass" else self._count_by_curve
        return self._detection(*count(scene, clusterings, draws))

    def _look(self, x: Tensor) -> _Scene:
        """The window in the space that is made for it."""
        if self.space_size is None:
            z = embed(self._network, x)
            return _Scene(x, z, z, Space.plain(z))
        seen = views(self._network, x)
        known, labels = self._tensors(self._memory, self._network)
        window, remembered = self._chosen(seen), self._chosen(views(self._network, known))
        space = Space.fitted(
            remembered, labels, window, size=self.space_size, whitening=self.whitening
        )
        return _Scene(x, seen[0], space.join(window), space)

    def _count_by_mass(
        self, scene: _Scene, clusterings: Mapping[int, Clusters], draws: torch.Generator
    ) -> tuple[_Tuned, dict[int, float]]:
        """As many novel classes as hold more than known data explain; the curve is for show."""
        held_out, labels = self._tensors(self._calibration, self._network)
        fresh = self._locate(scene.space, self._network, held_out)
        free = class_count.excess_mass(
            clusterings, scene.points, fresh, labels,
            surplus=self.surplus, doubt=self.doubt, least_share=self.least_share,
            leniency=self.leniency, generator=draws,
        )  # fmt: skip
        every = 1 + len(scene.points) // ENOUGH_TO_SHOW
        curve = {
            k: silhouette(scene.points[::every], clusters.assignment[::every])
            for k, clusters in clusterings.items()
        }
        clusters = settled(scene.points, self._known_centres(scene), free, **self._moving(scene))
        return self._tune(scene, clusters, draws), curve

    def _count_by_curve(
        self, scene: _Scene, clusterings: Mapping[int, Clusters], draws: torch.Generator
    ) -> tuple[_Tuned, dict[int, float]]:
        """As many novel classes as the validity says after tuning for each number (the paper)."""
        tuned = {k: self._tune(scene, clusters, draws) for k, clusters in clusterings.items()}
        curve = {k: silhouette(t.points, t.clusters.assignment) for k, t in tuned.items()}
        return tuned[READ_CURVE[self.count](curve)], curve

    def _cluster(self, scene: _Scene, n_novel: int, draws: torch.Generator) -> Clusters:
        """Semi-supervised k-means from the known prototypes."""
        known, moving = self._known_centres(scene), self._moving(scene)
        return semi_supervised_kmeans(scene.points, known, n_novel, generator=draws, **moving)

    def _known_centres(self, scene: _Scene) -> Tensor:
        return scene.space.join(self._chosen(self._centres))

    def _moving(self, scene: _Scene) -> _Moving:
        """How centres move in the clustering of a window."""
        weights = self._confusion(scene.z) if self.weighted else None
        return {"beta": self.cluster_beta, "weights": weights}

    def _tune(self, scene: _Scene, clusters: Clusters, draws: torch.Generator) -> _Tuned:
        """Fine-tune a copy of the network with pseudo-labels, from easy to hard."""
        fixed = self._clustered == [INPUTS]  # no training moves a point
        if self.detect_epochs == 0 or len(clusters.free) == 0 or fixed:
            return _Tuned(scene.points, clusters, scene.space, self._network)
        network, n = copy.deepcopy(self._network), len(scene.x)
        replayed = self._memory if self.replay else Memory.empty(self._memory.X)
        pool = PseudoLabelled.of(scene.x, clusters, *self._tensors(replayed, network))
        centres, ranks = clusters.centres, self._ranks(scene.z, scene.points, clusters)
        arrived, _ = class_means(scene.z, clusters.assignment, len(centres))
        prototypes = torch.cat([self._prototypes, arrived[clusters.n_known :]])

        def batches(epoch: int) -> Iterable[Tensor]:
            for step in range(epoch * self.detect_steps, (epoch + 1) * self.detect_steps):
                share = curriculum.pace(step, self.pace_start, self.pace_growth, self.pace_every)
                easy = torch.nonzero(ranks < share)[:, 0]
                yield pool.batch(easy, self.training.batch_size, self.replay, draws)

        def objective(z: Tensor, rows: Tensor) -> Tensor:
            return self._loss(z, pool.labels[rows], prototypes, draws, anchors=self._prototypes)

        points, inputs = scene.points, network.inputs(pool.x)
        settings = self.training.settings(self.detect_epochs, self.detect_learning_rate)
        seed = derived_seed(self.seed, "detect", self._n_updates)
        for _ in training.epochs(
            network, pool.x, batches, objective, settings, seed=seed, purpose="detect"
        ):
            seen = views(network, pool.x, inputs)
            points = scene.space.join(self._chosen(seen))
            prototypes = pool.followed(seen[0], prototypes, self.beta)
            centres = pool.followed(points, centres, self.beta)
            clusters = pool.relabelled(points, centres)
            ranks = self._ranks(seen[0][:n], points[:n], clusters)
        return _Tuned(points[:n], clusters, scene.space, network)

    def _ranks(self, z: Tensor, points: Tensor, clusters: Clusters) -> Tensor:
        """The place of each instance in the curriculum, from 0 (easiest) to 1."""
        if self.order == "certainty":
            surety = curriculum.certainty(points, clusters.centres)
            return curriculum.easiest_of_each(surety, clusters.assignment)
        if self.order == "weights":
            return curriculum.easiest_first(self._confusion(z))
        return torch.zeros(len(points), device=points.device)

    def _confusion(self, z: Tensor) -> Tensor:
        return curriculum.confusion_weights(z, self._prototypes, self.alpha, self.gamma)

    def _detection(self, tuned: _Tuned, curve: Mapping[int, float]) -> Detection:
        """Known or novel by the nearest centre, cut so that few known instances are novel."""
        found = decision.decide(tuned.points, tuned.clusters, self._cut(tuned))
        return Detection(
            novelty=to_numpy(found.novelty),
            label=self.classes_[found.label.cpu().numpy()],
            cluster=found.cluster.cpu().numpy(),
            n_novel=len(tuned.clusters.free),
            curve=curve,
            embedding=to_numpy(tuned.points),
        )

    def _cut(self, tuned: _Tuned) -> float:
        held_out, _ = self._tensors(self._calibration, tuned.network)
        points = self._locate(tuned.space, tuned.network, held_out)
        return decision.cut(decision.novelty(points, tuned.clusters), self.false_novel, self.strict)

    # ------------------------------------------------------ Algorithm 3: update

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        purpose = ("update", self._n_updates)
        rng, draws = generator(self.seed, *purpose), torch_generator(self.seed, *purpose)
        train, aside = set_aside(y, self.calibration_size, rng, there=self._calibration.y)
        network, old = copy.deepcopy(self._network), self._prototypes
        pool = Memory(X[train], y[train]).joined(self._memory.X, self._memory.y)
        x, labels = self._tensors(pool, network)
        old_z = embed(network, x)
        arrived, _ = class_means(old_z, labels, n_classes)
        prototypes = torch.cat([old, arrived[len(old) :]])

        def objective(z: Tensor, rows: Tensor, prototypes: Tensor) -> Tensor:
            loss = self._loss(z, labels[rows], prototypes, draws, anchors=old)
            memory = rows >= len(train)
            return loss + self.distill * self._forgotten(
                z[memory], old_z[rows[memory]], prototypes, old
            )

        settings = self.training.settings(self.update_epochs, self.training.update_learning_rate)
        prototypes = self._train(
            network, x, labels, prototypes, objective, settings, draws, purpose
        )
        self._settle(network, x, labels, prototypes, self._centres)
        self._memory = self._remembered(pool, x, rng)
        self._calibration = self._calibration.joined(X[aside], y[aside])

    def _forgotten(self, z: Tensor, old_z: Tensor, prototypes: Tensor, old: Tensor) -> Tensor:
        """What the memory lost: the distillation loss."""
        if self.distill_on == "embeddings":
            return losses.embedding_drift(z, old_z)
        return losses.distillation(z, old_z, prototypes, old, self.alpha, self.temperature)

    # ------------------------------------------------------ what the three share

    def _train(
        self,
        network: Network,
        x: Tensor,
        labels: Tensor,
        prototypes: Tensor,
        objective: Callable[[Tensor, Tensor, Tensor], Tensor],
        settings: training.Settings,
        draws: torch.Generator,
        purpose: tuple[str | int, ...],
    ) -> Tensor:
        """Train on labelled instances; the prototypes, annealed after each epoch."""

        def with_prototypes(z: Tensor, rows: Tensor) -> Tensor:
            return objective(z, rows, prototypes)

        seed = self.seed if len(purpose) == 1 else derived_seed(self.seed, *purpose)
        batches = training.shuffled(len(x), self.training.batch_size, draws, network.device)
        for epoch in training.epochs(
            network, x, batches, with_prototypes, settings,
            seed=seed, purpose=str(purpose[0]), task=self._task(network, x, *purpose),
        ):  # fmt: skip
            means, counts = class_means(epoch.z, labels[epoch.rows], len(prototypes))
            prototypes = annealed(prototypes, means, counts, self.beta)
        return prototypes

    def _settle(
        self,
        network: Network,
        x: Tensor,
        labels: Tensor,
        prototypes: Tensor,
        old_centres: Sequence[Tensor] = (),
    ) -> None:
        """Take a trained network in, with where each class lies in each view."""
        seen = views(network, x)
        present = torch.bincount(labels, minlength=len(prototypes))
        centres = [class_means(view, labels, len(prototypes))[0] for view in seen]
        if old_centres:  # a class without an instance (no memory) stays where it was
            pairs = zip(old_centres, centres, strict=True)
            centres = [annealed(_padded(old, new), new, present, 0.0) for old, new in pairs]
        if not self.exact_prototypes:
            centres[0] = prototypes
        if not all(bool(torch.isfinite(view).all()) for view in centres):
            raise BadConfig(
                "training diverged (the embedding is not finite): lower learning_rate or clip."
            )
        self._network, self._centres = network, centres

    def _remembered(self, labelled: Memory, x: Tensor, rng: np.random.Generator) -> Memory:
        """The part of these instances that the memory has room for."""
        herded = self.memory_choice == "herding"
        embeddings = to_numpy(embed(self._network, x)) if herded else None
        return labelled.rebalanced(self.memory_size, rng, embeddings)

    @property
    def _prototypes(self) -> Tensor:
        return self._centres[0]

    @property
    def _clustered(self) -> list[int]:
        """The views that a window is clustered on."""
        if self.space_size is None:
            return [0]
        if self.cluster_on == AUTO:
            return [INPUTS] if self._features else list(range(len(VIEWS)))
        return list(range(VIEWS.index(self.cluster_on) + 1))

    def _chosen(self, seen: Sequence[Tensor]) -> list[Tensor]:
        return [seen[i] for i in self._clustered]

    def _locate(self, space: Space, network: Network, x: Tensor) -> Tensor:
        """Where instances lie in the space that is clustered."""
        return space.join(self._chosen(views(network, x)))

    def _predict(self, X: Array) -> Ints:
        z = embed(self._network, as_tensor(X, self._network.device))
        return squared_distances(z, self._prototypes).argmin(1).cpu().numpy()

    def _embed(self, X: Array) -> Floats:
        return to_numpy(embed(self._network, as_tensor(X, self._network.device)))

    def _task(self, network: Network, x: Tensor, *purpose: str | int) -> RotationTask | None:
        if self.rotation == 0 or x.ndim != 4:
            return None
        seed = derived_seed(self.seed, *purpose)
        return RotationTask(network, x, weight=self.rotation, seed=seed)

    # ------------------------------------------------------ saving and loading

    def _kept(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, self._calibration

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        weights, plain = self._network_state()
        centres = {f"centres.{i}": to_numpy(view) for i, view in enumerate(self._centres)}
        kept = self._memory.arrays("memory") | self._calibration.arrays("calibration")
        return weights | centres | kept, plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._set_network(self._inner_shape, arrays, plain)
        stored = [arrays[f"centres.{i}"] for i in range(len(VIEWS))]
        self._centres = [torch.from_numpy(view).to(self._network.device) for view in stored]
        self._memory = Memory.stored(arrays, "memory")
        self._calibration = Memory.stored(arrays, "calibration")


class _Moving(TypedDict):
    """Arguments of k-means: how much of a known centre stays, and what instances weigh."""

    beta: float
    weights: Tensor | None


class _Scene(NamedTuple):
    """A window as the network sees it, in the space that was made for it."""

    x: Tensor
    z: Tensor  # embedding
    points: Tensor
    space: Space


class _Tuned(NamedTuple):
    """A window as the tuned network sees it."""

    points: Tensor
    clusters: Clusters
    space: Space
    network: Network


def _padded(old: Tensor, new: Tensor) -> Tensor:
    """The old centres, and the new ones of classes that had none."""
    return torch.cat([old, new[len(old) :]])
