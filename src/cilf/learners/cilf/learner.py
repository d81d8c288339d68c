"""CILF: an embedding that adapts to the classes of a stream, one window after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cilf.core import Detection, validation
from cilf.core.notices import warn_once
from cilf.core.parameters import Part, inherit_descriptions
from cilf.core.random import derive_seed, generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners.base import Arrays
from cilf.learners.cilf import backbone_choice
from cilf.learners.cilf.curriculum import CurriculumDetector
from cilf.learners.cilf.detect import Detector, Model, Reading
from cilf.learners.cilf.embedding import (
    Embedding,
    Labelled,
    Loss,
    fit_embedding,
    merge_centres,
    move_centres,
)
from cilf.learners.cilf.readout import AUTO, PROTOTYPE, READOUTS, Readouts, learn_readouts
from cilf.learners.cilf.scorer import Scorer
from cilf.learners.cilf.update import update_embedding
from cilf.learners.editable import LEAVES, EditableLearner
from cilf.nn import pretrained
from cilf.nn.backbones import Factory
from cilf.nn.memory import Memory
from cilf.nn.network import (
    Network,
    as_tensor,
    embed,
    make_network,
    resolve_device,
    tensor_shape,
    to_numpy,
)
from cilf.nn.patches import PatchDictionary
from cilf.nn.persistence import (
    load_weights,
    plain_architecture,
    restore_architecture,
    weight_arrays,
)
from cilf.nn.readouts import RandomRidge
from cilf.nn.training import Training
from cilf.nn.views import VIEWS, view_inputs

if TYPE_CHECKING:
    from cilf.learners.cilf.paper import CILFPaper

DETECTORS: dict[str, type[Part]] = {"calibrated": Detector, "curriculum": CurriculumDetector}
NETWORK, PATCHES = "network", "patches"  # the names of their arrays in a file


@inherit_descriptions
@dataclass(kw_only=True, repr=False, eq=False)
class CILF(EditableLearner):
    """Adaptive embedding with prototypes, clustering of windows and a replayed memory.

    ``fit`` trains an embedding in which every class gathers around its prototype (Algorithm 1).
    ``detect`` clusters a window around the known prototypes and novel centres, and counts the
    novel classes (its detector, or Algorithm 2). ``update`` learns labelled instances beside the
    memory, with distillation (Algorithm 3).

    Parameters
    ----------
    seed : int, default=0
        Seed of weights, batches, clustering and memory. Equal seeds give equal results on the
        CPU; some sums on GPUs are not deterministic.
    device : str, default="auto"
        Device of the network: "auto", "cpu", "cuda", ...
    backbone : str or callable, default="auto"
        Network that turns an instance into features: "mlp", "convnet", "resnet18", the name of a
        frozen pre-trained network, or a function from the shape of one instance to a module.
        ``docs/methods/cilf.md`` lists them.
    embedding_size : int, default=64
        Number of dimensions of the embedding.
    memory_size : int, default=2000
        Number of labelled instances that are kept for later training.
    calibration_size : int, default=20
        Number of labelled instances of each class that are kept out of all training. They show
        where fresh instances of known classes lie.
    readout : {"auto", "lda", "prototype", "ridge"}, default="auto"
        How ``predict`` and ``detect`` tell the known classes: shrinkage LDA on all views, the
        nearest prototype in the embedding, or LDA with a ridge on a random layer over the inputs.
        "auto" adds the scores of all three with weights that are learned on the calibration part,
        at fit and at each update. A change of this parameter takes effect with the next update.
    loss : Loss, default=Loss()
        Terms of the objective; see :class:`cilf.learners.cilf.embedding.Loss`.
    detector : Detector or CurriculumDetector, default=Detector()
        Search for novel classes. ``DETECTORS`` names both.

    Examples
    --------
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
    Incremental Class", TKDE. ``docs/methods/cilf.md`` numbers the differences. ``CILF.paper()``
    is :class:`CILFPaper`, which has the paper's choices wherever it states one.
    """

    name: ClassVar[str] = "cilf"
    domains: ClassVar[Mapping[str, validation.Check]] = {
        "embedding_size": validation.whole(1),
        "readout": validation.among([AUTO, *READOUTS]),
        **dict.fromkeys(
            ["epochs", "update_epochs", "memory_size", "calibration_size"], validation.whole(0)
        ),
    }
    alternatives: ClassVar[Mapping[str, Mapping[str, type[Part]]]] = {"detector": DETECTORS}

    seed: int = 0
    device: str = "auto"
    backbone: str | Factory = "auto"
    width: int | None = None
    epochs: int = 20
    update_epochs: int = 15
    training: Training = Training()
    embedding_size: int = 64
    memory_size: int = 2000
    calibration_size: int = 20
    readout: str = AUTO
    loss: Loss = Loss()
    detector: Detector | CurriculumDetector = Detector()

    _architecture: dict[str, Any] = field(init=False)  # parameters may change after fitting
    _network: Network = field(init=False)
    _patches: PatchDictionary | None = field(init=False)
    _centres: list[Tensor] = field(init=False)  # of each class in each view; prototypes first
    _memory: Memory = field(init=False)
    _calibration: Memory = field(init=False)
    _readouts: Readouts = field(init=False)

    @staticmethod
    def paper(**parameters: Any) -> CILFPaper:
        """The learner ``cilf-paper`` with these ``parameters``."""
        from cilf.learners.cilf.paper import CILFPaper  # a subclass of this class

        return CILFPaper().set_params(**parameters)

    def _wanted_features(self, X: Array) -> str | None:
        return pretrained.choose_network(self.backbone, X)

    def _network_to_compare(self, X: Array, y: Ints | None) -> str | None:
        if self.backbone != AUTO or not isinstance(self.detector, Detector):
            return None
        has_enough = y is None or backbone_choice.has_enough(y)
        return pretrained.find_candidate(X) if has_enough else None

    def _choose_features(self, X: Array, y: Ints) -> str | None:
        network = self._network_to_compare(X, y)
        if network is None:
            if self._network_to_compare(X, None) is not None:
                warn_once(backbone_choice.TOO_FEW)
            return self._wanted_features(X)
        self._compared_backbones = backbone_choice.compare(self, X, y, network)
        chosen = backbone_choice.choose(self._compared_backbones)
        return None if chosen == backbone_choice.SCRATCH else chosen

    def _fit(self, X: Array, y: Ints) -> None:
        self._architecture = {
            "backbone": self.backbone,
            "width": self.width,
            "embedding_size": self.embedding_size,
        }
        rng = generator(self.seed, "fit")
        known, self._calibration = self._divide(X, y, self.calibration_size, rng)
        network = self._make_network(X.shape[1:], self._architecture)
        self._train(network, known, rng, epochs=self.epochs)
        self._learn_readouts(known)

    def _train(
        self,
        network: Network,
        known: Memory,
        rng: np.random.Generator,
        *,
        epochs: int,
        even: bool = False,
    ) -> None:
        """Train a network on these instances and take it over with a new memory (Algorithm 1)."""
        embedding = fit_embedding(
            network, self._to_tensors(known, network),
            loss=self.loss, optimiser=self.training, epochs=epochs, seed=self.seed, even=even,
        )  # fmt: skip
        self._keep(embedding)
        self._memory = known.rebalance(self.memory_size, rng)

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        x = as_tensor(X, self._network.device)
        seed = derive_seed(self.seed, "detect", self._n_updates)
        result = self.detector.detect(x, n_novel, self._model(), seed)
        label, p = result.reading or Reading(result.decision.label, None)
        return Detection(
            novelty=to_numpy(result.novelty),
            label=self.classes_[label.cpu().numpy()],
            cluster=result.decision.cluster.cpu().numpy(),
            n_novel=result.n_novel,
            curve=result.curve,
            embedding=np.asarray(result.points.cpu().numpy(), dtype=np.float32),
            count_probability=dict(result.count_probability),
            novelty_p=np.empty(0, dtype=np.float32) if p is None else to_numpy(p),
        )

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        purpose = ("update", self._n_updates)
        rng = generator(self.seed, *purpose)
        new, calibration = self._divide(
            X, y, self.calibration_size, rng, memory=self._memory, held_out=self._calibration
        )
        pool = new.combine(self._memory.X, self._memory.y)
        embedding = update_embedding(
            self._embedding(), self._to_tensors(pool, self._network), len(new), n_classes,
            loss=self.loss, optimiser=self.training, epochs=self.update_epochs,
            seed=derive_seed(self.seed, *purpose),
        )  # fmt: skip
        self._keep(embedding)
        self._memory = pool.rebalance(self.memory_size, rng)
        self._calibration = calibration
        ridge = self._readouts.ridge
        self._learn_readouts(pool if ridge is None else new, ridge)

    def _reassign_classes(self, positions: Ints, n_classes: int) -> None:
        ridge = self._readouts.ridge
        to = torch.from_numpy(positions).to(self._network.device)
        if ridge is not None:
            for label in np.flatnonzero(positions == LEAVES).tolist():
                kept = self._memory.rows(np.flatnonzero(self._memory.y == label))
                ridge = ridge.remove_class(label, self._inputs(kept))
            sizes, ridge = ridge.counts, ridge.reassign(to, n_classes)
        else:
            labels = torch.from_numpy(self._memory.y).to(self._network.device)
            sizes = torch.bincount(labels, minlength=len(positions))
        self._centres = merge_centres(self._centres, sizes, to, n_classes)
        self._memory = self._memory.reassign(positions)
        self._calibration = self._calibration.reassign(positions)
        self._learn_readouts_again(ridge)

    def _retract(self, X: Array, y: Ints) -> None:
        held_out, remembered = self._calibration.find(X, y), self._memory.find(X, y)
        is_trained = np.array([row is None for row in held_out])
        ridge, trained = self._readouts.ridge, Memory(X[is_trained], y[is_trained])
        if ridge is not None and len(trained):
            labels = torch.from_numpy(trained.y).to(self._network.device)
            ridge = ridge.remove(self._inputs(trained), labels)
        self._calibration = self._calibration.without(row for row in held_out if row is not None)
        pairs = zip(remembered, is_trained, strict=True)
        self._memory = self._memory.without(row for row, own in pairs if own and row is not None)
        concerned = self._memory.rows(np.flatnonzero(np.isin(self._memory.y, y)))
        if len(concerned):
            x, labels = self._to_tensors(concerned, self._network)
            views = self._embedding().views
            self._centres = move_centres(self._centres, views, x, labels, len(self._classes))
        self._learn_readouts_again(ridge)

    def _learn_readouts_again(self, ridge: RandomRidge | None) -> None:
        """Learn the readouts from what is kept, with a ridge that has seen all of it."""
        self._learn_readouts(Memory.empty(self._memory.X) if ridge else self._memory, ridge)

    def _inputs(self, kept: Memory) -> Tensor:
        x = self._to_tensors(kept, self._network).x
        return view_inputs(self._network.scale, self._patches, x)

    def _predict(self, X: Array) -> Ints:
        return self._score_classes(X).argmax(1).cpu().numpy()

    def _score_classes(self, X: Array) -> Tensor:
        return self._readouts.score(self._embedding().views(as_tensor(X, self._network.device)))

    def _scorer(self) -> Scorer:
        return Scorer(self._embedding(), self._readouts)

    def _views(self, X: Array) -> list[Tensor]:
        return self._embedding().views(as_tensor(X, self._network.device))[-1:]

    def _learn_readouts(self, unseen: Memory, ridge: RandomRidge | None = None) -> None:
        """Learn the readouts. ``unseen`` are the instances that ``ridge`` has not seen."""
        memory, held_out = (
            self._to_tensors(kept, self._network) for kept in (self._memory, self._calibration)
        )
        self._readouts = learn_readouts(
            self.readout, self._embedding(), memory, held_out,
            unseen=self._to_tensors(unseen, self._network), ridge=ridge,
            rng=generator(self.seed, "readout"),
        )  # fmt: skip

    def _embed(self, X: Array) -> Floats:
        return to_numpy(embed(self._network, as_tensor(X, self._network.device)))

    def _place(self, X: Array) -> Floats:
        """Vectors of a frozen network as they are: the embedding loses what is novel in them."""
        frozen = self._features is not None and len(X)
        return np.asarray(X, dtype=np.float32) if frozen else super()._place(X)

    # ------------------------------------------------------ state

    def _to_tensors(self, kept: Memory, network: Network) -> Labelled:
        return Labelled(*kept.tensors(network.device))

    def _make_network(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> Network:
        device = resolve_device(self.device)
        return make_network(instance_shape=shape, seed=self.seed, device=device, **architecture)

    def _embedding(self) -> Embedding:
        return Embedding(self._network, self._patches, self._centres)

    def _keep(self, embedding: Embedding) -> None:
        self._network, self._patches = embedding.network, embedding.patches
        self._centres = embedding.centres

    def _model(self) -> Model:
        return Model(
            embedding=self._embedding(),
            memory=self._to_tensors(self._memory, self._network),
            held_out=self._to_tensors(self._calibration, self._network),
            loss=self.loss,
            training=self.training,
            has_frozen_features=self._features is not None,
            readouts=self._readouts,
        )

    def _memories(self) -> tuple[Memory | None, Memory | None]:
        return self._memory, self._calibration

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays = weight_arrays(self._network, NETWORK)
        arrays |= {
            f"centres.{name}": to_numpy(c) for name, c in zip(VIEWS, self._centres, strict=True)
        }
        if self._patches is not None:
            arrays |= weight_arrays(self._patches, PATCHES)
        kept = self._memory.arrays("memory") | self._calibration.arrays("calibration")
        arrays |= self._readouts.arrays()
        plain = {
            "architecture": plain_architecture(self._architecture),
            "readout": dict(self._readouts.weights),
        }
        return arrays | kept, plain

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        self._architecture = restore_architecture(plain["architecture"], self.backbone)
        self._network = self._make_network(self._inner_shape, self._architecture)
        load_weights(self._network, arrays, NETWORK)
        device = self._network.device
        self._centres = [torch.from_numpy(arrays[f"centres.{name}"]).to(device) for name in VIEWS]
        self._patches = None
        if len(shape := tensor_shape(self._inner_shape)) == 3:
            self._patches = PatchDictionary(shape).to(device)
            load_weights(self._patches, arrays, PATCHES)
        self._memory = Memory.restore(arrays, "memory")
        self._calibration = Memory.restore(arrays, "calibration")
        self._readouts = Readouts.restore(arrays, self._centres[0], plain.get("readout", PROTOTYPE))
