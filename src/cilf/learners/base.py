"""The contract every learner keeps: public methods validate once, then call the private ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.clustering.p_values import Labelled, Ranking, rank_alone
from cilf.core import Detection, Label, parameters, validation
from cilf.core.near_duplicates import group_near_duplicates, join_groups
from cilf.core.parameters import Part
from cilf.core.types import Array, Bools, Floats, Ints
from cilf.errors import BadInput, NotFitted
from cilf.learners import persistence
from cilf.learners.portable import Portable, PortableModule
from cilf.learners.shared_training import State, learn_in_ranks
from cilf.nn import onnx_models
from cilf.nn.feature_cache import cached_features
from cilf.nn.label_check import check_labels
from cilf.nn.memory import Memory, set_aside
from cilf.nn.network import resolve_device, to_numpy
from cilf.nn.pretrained import (
    Extractor,
    is_frozen,
    is_users_own,
    locate_network,
    make_extractor,
)
from cilf.nn.ranks import current_group
from cilf.nn.readouts import find_scale
from cilf.nn.training import Training

Arrays = dict[str, Array]
BLOCK = 4096  # instances that are predicted at once


class Features(NamedTuple):
    """The frozen network that turns instances into vectors, and their size."""

    name: str
    digest: str
    size: int


class Remembered(NamedTuple):
    """Labelled instances that a learner keeps."""

    X: Array  # (n, ...) as they came, or as vectors of the frozen network
    y: Array  # (n,) their classes
    held_out: Bools  # (n,) whether they are kept out of all training


@dataclass(frozen=True)
class LabelCheck:
    """What the other labelled instances say about the labels of new ones, and of kept ones.

    Attributes:
        is_doubtful: whether the label of each new instance is in doubt.
        likely: the class that the others say for each new instance.
        group: near-duplicates among the new instances have the same number.
        clean: the instances that the learner keeps. They are held-out ones if there are any.
    """

    is_doubtful: Bools  # (n,)
    likely: Array  # (n,)
    group: Ints  # (n,)
    clean: Clean


class Clean(NamedTuple):
    """How a check of labels judges instances whose labels are taken to be right."""

    n: int
    n_doubtful: int
    n_agreeing: int  # the others say their class


class Learner(ABC):
    """Base of all learners, which detect novel classes in unlabelled windows and learn them.

    A subclass has a keyword-only constructor that only stores parameters, and implements the
    abstract methods. These get checked input, and class *positions* (0, 1, ... in order of arrival)
    in place of names.

    Class attributes:
        name: the key in ``LEARNERS`` and in model files.
        expected_failures: the checks of ``cilf.checks`` that it fails by nature, with reasons.
        takes_vectors: whether it takes (n, d) features, or images only.
        takes_all_labels: whether an evaluation gives it the labels of all instances of a window,
            not only of novel ones: it is the upper bound of the others.
        domains: the check of each parameter that needs one.
        alternatives: the parts that a parameter takes beside the type of its default, by name.
        check_parameters: the parameters to run the checks with, if the defaults are too slow.
    Several learners share the following parameters. ``inherit_descriptions`` adds those that a
    learner has to its docstring.

    Parameters
    ----------
    seed : int, default=0
        Seed of everything that is random.
    device : str, default="auto"
        Device of the network: "auto", "cpu", "cuda", "cuda:1", ...
    backbone : str or callable, default="auto"
        Network that turns an instance into features: "mlp", "convnet", "resnet18", a pre-trained
        one, or a function from the shape of an instance to a module. ``docs/methods/cilf.md`` lists
        all names.
    width : int or None, default=None
        Number of channels (or units) of the backbone's first layer. None is its own default.
    epochs : int, default=20
        Number of passes over the data in the initial training.
    update_epochs : int, default=15
        Number of passes over the data in an update.
    training : Training, default=Training()
        Optimiser and batches; see :class:`cilf.nn.training.Training`.
    clustering : NovelClustering, default=NovelClustering()
        Clustering of the novel instances; see
        :class:`cilf.learners.novel_clustering.NovelClustering`.
    replay : bool, default=False
        Whether an update trains on a memory too. Without it only held-out instances are kept.

    Attributes
    ----------
    classes_ : array
        The known classes, in order of arrival.
    """

    name: ClassVar[str]
    expected_failures: ClassVar[Mapping[str, str]] = {}
    takes_vectors: ClassVar[bool] = True
    takes_all_labels: ClassVar[bool] = False
    domains: ClassVar[Mapping[str, validation.Check]] = {}
    alternatives: ClassVar[Mapping[str, Mapping[str, type[Part]]]] = {}
    check_parameters: ClassVar[Mapping[str, Any]] = {}

    seed: int
    device: str = "auto"
    training: Training | None = None  # of its network, if it has one

    _classes: list[Label]
    _shape: tuple[int, ...]  # of one instance as users give it; () for a text
    _features: Features | None = None  # fixed by fit
    _compared_backbones: Mapping[str, float] = {}  # replaced by fit
    _history: list[dict[str, Any]]
    _given: Array | None = None  # what fit or update is learning, as users give it

    # ------------------------------------------------------------- what a subclass writes

    @abstractmethod
    def _fit(self, X: Array, y: Ints) -> None:
        """Learn the first classes from scratch."""

    @abstractmethod
    def _predict(self, X: Array) -> Ints:
        """Class position of each instance."""

    @abstractmethod
    def _embed(self, X: Array) -> Floats:
        """Each instance as a vector."""

    @abstractmethod
    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        """Find the novel classes; change nothing."""

    @abstractmethod
    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        """Learn these instances; positions from ``len(classes_)`` on are new classes."""

    @abstractmethod
    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        """The fitted state: arrays, and values for JSON."""

    @abstractmethod
    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        """Set the state that ``_get_state`` gave. Classes and shape are set already."""

    def _check_parameters(self) -> None:
        """Refuse invalid parameters. ``fit``, ``detect`` and ``update`` call it first."""
        parameters.check_params(self)

    def _score_classes(self, X: Array) -> Tensor | None:
        """The score of each class for each instance, (n, c), of which ``_predict`` takes the best.

        A learner without such scores gives no probabilities.
        """
        return None

    def _scorer(self) -> nn.Module | None:
        """A module from instances, as tensors, to the scores of classes and the embedding.

        A learner without one cannot be exported.
        """
        return None

    def _memories(self) -> tuple[Memory | None, Memory | None]:
        """The labelled instances that it keeps for training, and those that it holds out."""
        return None, None

    def _novelty_p(self, X: Array) -> Floats:
        """The p-value of each instance alone, by its distance from the labelled instances."""
        known = self._locate_memories()
        if known is None:
            return np.ones(len(X), dtype=np.float32)
        return rank_alone(torch.from_numpy(self._place(X)), *known).numpy().astype(np.float32)

    def _locate_memories(self) -> tuple[Labelled, Labelled] | None:
        """The labelled and the held-out instances where p-values are made; None without any."""
        empty = Memory.empty(np.zeros((0, 1), dtype=np.float32))
        memory, held_out = (empty if kept is None else kept for kept in self._memories())
        if len(memory) + len(held_out) == 0:
            return None
        located = (
            Labelled(torch.from_numpy(self._place(kept.X)), torch.from_numpy(kept.y))
            for kept in (memory, held_out)
        )
        return next(located), next(located)

    def _place(self, X: Array) -> Floats:
        """Instances as the vectors whose distances make p-values; none for no instances."""
        return self._embed(X) if len(X) else np.zeros((0, 1), dtype=np.float32)

    def _views(self, X: Array) -> list[Tensor]:
        """Instances as vectors that tell classes apart, and that training changed least."""
        frozen = self._features is not None
        return [torch.from_numpy(X.astype(np.float32) if frozen else self._embed(X))]

    def _wanted_features(self, X: Array) -> str | None:
        """The frozen network (see ``nn.pretrained``) that training data pass through, if any."""
        return None

    def _network_to_compare(self, X: Array, y: Ints | None) -> str | None:
        """The frozen network that ``fit`` compares with one from scratch on these data, if any.

        Without labels it is the one that ``fit`` might compare.
        """
        return None

    def _choose_features(self, X: Array, y: Ints) -> str | None:
        """The frozen network for these training data, whose labels may decide."""
        return self._wanted_features(X)

    # ------------------------------------------------------------- what users call

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the known classes from labelled instances, forgetting any earlier fit."""
        validation.whole_number("seed", self.seed, least=0)
        self._check_parameters()
        X = validation.raw_instances(X)
        y = validation.labels(y, n=len(X))
        validation.known_classes(y)
        classes = validation.in_order_of_appearance(y)
        positions = _positions(y, classes)
        with self._all_or_nothing():
            self._compared_backbones = {}
            extractor = self._make_extractor(X, positions)
            seen = X if extractor is None else _normalize(cached_features(extractor, X))
            learned = self._learn(X, seen, positions)
            self._classes, self._shape = classes, X.shape[1:]
            self._features = None
            if extractor is not None:
                self._features = Features(extractor.name, extractor.digest, seen.shape[1])
            self._history = [_event("fit", len(y), classes)]
            if learned is not None:
                learned.set(self)
        return self

    def predict(self, X: Any) -> Array:
        """The known class of each instance."""
        seen = self._extract_features(self._check_instances(X))
        positions: Ints = np.concatenate([self._predict(block) for block in _split(seen)])
        labels: Array = self.classes_[positions]
        return labels

    def class_probabilities(self, X: Any) -> Floats | None:
        """The probability of each known class, (n, c), for an instance of one of them.

        The columns are in the order of ``classes_``. Probabilities are a softmax of the learner's
        scores, times a factor that makes the held-out instances most likely. They say nothing about
        instances of novel classes, which ``novelty_p`` does. None if the learner has no scores, or
        holds no instances out.
        """
        checked = self._check_instances(X)
        scale = self._find_scale()
        if scale is None:
            return None
        blocks = map(self._score_classes, _split(self._extract_features(checked)))
        scores = torch.cat([scores for scores in blocks if scores is not None])
        return to_numpy(F.softmax(self._score_all_classes(scores.double() * scale), dim=1))

    def _find_scale(self) -> float | None:
        """The factor with which scores are log-odds; None without scores or held-out instances."""
        _, held_out = self._memories()
        if held_out is None or len(held_out) == 0:
            return None
        known = self._score_classes(held_out.X)
        if known is None:
            return None
        labels = torch.from_numpy(held_out.y).to(known.device)
        return find_scale(self._score_all_classes(known), labels)

    def _score_all_classes(self, scores: Tensor) -> Tensor:
        """Scores with a column for every class, also for those that have none."""
        return F.pad(scores, (0, len(self._classes) - scores.shape[1]), value=-torch.inf)

    def portable(self) -> Portable:
        """The learner for an export, as one module from instances to its predictions.

        It is a copy, on the learner's device: later updates do not change it.
        """
        self._require_fitted()
        scorer = self._scorer()
        if scorer is None:
            raise BadInput(
                f"{type(self).__name__} has no network that could be exported: fit a model with "
                "--learner cilf."
            )
        known = self._locate_memories()
        module = PortableModule(
            self._portable_encoder(), scorer,
            None if known is None else Ranking.of_classes(*known), self._find_scale() or 1.0,
        )  # fmt: skip
        return Portable(deepcopy(module), self._shape, tuple(self._classes))

    def _portable_encoder(self) -> nn.Module | None:
        """The frozen network before the learner, if there is one. It has to be one of PyTorch."""
        extractor = self._extractor()
        if extractor is not None and extractor.network is None:
            remedy = (
                "texts have to be embedded before: run it with cilf serve"
                if extractor.takes == "texts"
                else "it is a file of its own: run it with cilf serve, or name a network of timm"
            )
            raise BadInput(f"the network {extractor.name!r} cannot be exported: {remedy}.")
        return None if extractor is None else extractor.network

    def embed(self, X: Any) -> Floats:
        """Each instance as a vector: (n, d) float32."""
        return self._embed(self._extract_features(self._check_instances(X)))

    def detect(self, X: Any, n_novel: int | None = None) -> Detection:
        """Find the novel classes in a window, and their number unless ``n_novel`` is given.

        The learner is the same afterwards.
        """
        X = self._check_instances(X)
        self._check_parameters()
        n_novel = validation.n_novel(n_novel, window=len(X))
        seen = self._extract_features(X)
        found = self._detect(seen, n_novel)
        if len(found.novelty_p):  # it was computed on the way
            return found
        return replace(found, novelty_p=self._novelty_p(seen))

    def novelty_p(self, X: Any) -> Floats:
        """The p-value of each instance, alone, against held-out instances of the known classes.

        An instance of a known class falls below ``p`` with probability ``p``, about, whatever else
        is in ``X``. A small value is a reason to look at the instance. It is 1 for every instance
        if the learner keeps no labelled instances.

        >>> from cilf.learners.iforest import IForest
        >>> learner = IForest().fit([[i % 10 / 10] for i in range(40)], ["ant", "bee"] * 20)
        >>> (learner.novelty_p([[0.5], [9.0]]) < 0.05).tolist()
        [False, True]
        """
        return self._novelty_p(self._extract_features(self._check_instances(X)))

    def update(self, X: Any, y: Any) -> Self:
        """Learn labelled instances, of new classes or of known ones."""
        X = self._check_instances(X)
        self._check_parameters()
        y = validation.labels(y, n=len(X), kind=self.classes_.dtype.kind)
        arrived = validation.in_order_of_appearance(y, self._classes)
        classes = self._classes + arrived
        with self._all_or_nothing():
            seen = self._extract_features(X)
            learned = self._learn(X, seen, _positions(y, classes), len(classes))
            self._classes = classes
            self._history = [*self._history, _event("update", len(y), arrived)]
            if learned is not None:
                learned.set(self)
        return self

    def remembered(self) -> Remembered | None:
        """The labelled instances that it keeps of its classes; None if it keeps none.

        Their ``recall`` before and after an update shows what the update costs the old classes.

        >>> from cilf.learners.iforest import IForest
        >>> learner = IForest().fit([[0.0], [1.0], [5.0]], ["ant", "ant", "bee"])
        >>> kept = learner.remembered()
        >>> kept.y.tolist(), learner.recall(kept).tolist()
        (['ant', 'ant', 'bee'], ['ant', 'ant', 'bee'])
        """
        self._require_fitted()
        kept = [
            (memory, held_out)
            for memory, held_out in zip(self._memories(), (False, True), strict=True)
            if memory is not None and len(memory)
        ]
        if not kept:
            return None
        return Remembered(
            X=np.concatenate([memory.X for memory, _ in kept]),
            y=self.classes_[np.concatenate([memory.y for memory, _ in kept])],
            held_out=np.concatenate([np.full(len(m), held_out) for m, held_out in kept]),
        )

    def recall(self, kept: Remembered) -> Array:
        """Predict instances that ``remembered`` gave, now or before an update."""
        self._require_fitted()
        return self.classes_[self._predict(kept.X)]

    def embed_remembered(self, kept: Remembered) -> Floats:
        """Embed instances that ``remembered`` gave, as ``embed`` embeds those of a window.

        With a frozen network before the learner, the instances that it keeps are vectors, which
        ``embed`` does not take.

        >>> from cilf.learners.iforest import IForest
        >>> learner = IForest().fit([[0.0], [1.0], [5.0]], ["ant", "ant", "bee"])
        >>> learner.embed_remembered(learner.remembered()).shape
        (3, 1)
        """
        self._require_fitted()
        return self._embed(kept.X)

    def check_labels(self, X: Any, y: Any) -> LabelCheck | None:
        """Check the labels of new instances before an update, without learning them.

        Each is compared with what the kept and the other new instances say. None if the learner
        keeps nothing to compare with.

        >>> from cilf.learners.iforest import IForest
        >>> X = [[i % 20 / 20 + 5 * (i >= 20)] for i in range(40)]
        >>> learner = IForest().fit(X, ["ant"] * 20 + ["bee"] * 20)
        >>> new = [[0.31], [0.52], [5.13], [5.77]]
        >>> learner.check_labels(new, ["ant", "bee", "bee", "bee"]).is_doubtful.tolist()
        [False, True, False, False]
        """
        X = self._check_instances(X)
        y = validation.labels(y, n=len(X), kind=self.classes_.dtype.kind)
        kept = self.remembered()
        if kept is None:
            return None
        classes = self._classes + validation.in_order_of_appearance(y, self._classes)
        seen, is_new = self._extract_features(X), np.arange(len(kept.y) + len(X)) >= len(kept.y)
        group = group_near_duplicates(kept.X, seen)
        if seen is not X:
            apart = np.concatenate([np.arange(len(kept.y)), len(kept.y) + group_near_duplicates(X)])
            group = join_groups(group, apart)
        labels = np.concatenate([_positions(kept.y, classes), _positions(y, classes)])
        clean = ~is_new
        if kept.held_out.any():
            clean[: len(kept.y)] = kept.held_out
        views = [
            torch.cat(pair) for pair in zip(self._views(kept.X), self._views(seen), strict=True)
        ]
        checked = check_labels(views, labels, group, clean | is_new)
        return LabelCheck(
            is_doubtful=checked.is_doubtful[is_new],
            likely=np.array(classes)[checked.likely[is_new]],
            group=group[is_new],
            clean=Clean(
                int(clean.sum()),
                int(checked.is_doubtful[clean].sum()),
                int((checked.likely == labels)[clean].sum()),
            ),
        )

    def rename(self, names: Mapping[Label, Label]) -> Self:
        """Rename classes, ``{old: new}``. Nothing else changes.

        >>> from cilf.learners.iforest import IForest
        >>> learner = IForest().fit([[0.0], [1.0], [5.0]], ["ant", "bee", "novel-1"])
        >>> learner.rename({"novel-1": "cat"}).classes_.tolist()
        ['ant', 'bee', 'cat']
        """
        self._require_fitted()
        changes = _check_renaming(names, self._classes)
        self._classes = [changes.get(label, label) for label in self._classes]
        event = _event("rename", 0, list(changes.values())) | {"old_classes": list(changes)}
        self._history = [*self._history, event]
        return self

    @property
    def former_names(self) -> list[Label]:
        """Names that classes had before they were renamed, in order."""
        self._require_fitted()
        former = [label for event in self._history for label in event.get("old_classes", ())]
        return [label for label in dict.fromkeys(former) if label not in self._classes]

    def features_for(self, X: Any, y: Any = None) -> str | None:
        """The frozen network that ``fit`` would pass these instances through, if any.

        It is "auto" if ``fit`` compares backbones first. Without labels it is "auto" if ``fit``
        might do so.
        """
        X = validation.raw_instances(X)
        if y is not None:
            y = validation.labels(y, n=len(X))
            y = _positions(y, validation.in_order_of_appearance(y))
        is_open = self._network_to_compare(X, y) is not None
        return "auto" if is_open else self._wanted_features(X)

    @property
    def frozen_network(self) -> str | None:
        """The frozen network that instances pass through, if any."""
        self._require_fitted()
        return self._features and self._features.name

    @property
    def compared_backbones(self) -> dict[str, float]:
        """How well each backbone found hidden classes again, if ``backbone="auto"`` compared some.

        The values are H, the harmonic mean of the accuracies on known and on hidden classes.
        """
        self._require_fitted()
        return dict(self._compared_backbones)

    def save(self, folder: str | Path) -> None:
        """Write the learner to a new, an empty or a model folder, which it replaces atomically."""
        self._require_fitted()
        arrays, plain = self._get_state()
        persistence.write(Path(folder), self._describe() | {"state": plain}, arrays)

    @property
    def classes_(self) -> Array:
        """The known classes, in order of arrival."""
        self._require_fitted()
        return np.array(self._classes)

    @property
    def instance_shape(self) -> tuple[int, ...]:
        """The shape of one instance as it was fitted on; () if instances are texts."""
        self._require_fitted()
        return self._shape

    # ------------------------------------------------------------- parameters, as scikit-learn

    @classmethod
    def parameter_names(cls) -> list[str]:
        """The constructor's parameters."""
        return list(parameters.defaults(cls))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with ``deep`` those of its parts too, as ``part__name``."""
        return parameters.get_params(self, deep)

    def set_params(self, **params: Any) -> Self:
        """Change parameters. The error for an unknown name suggests the nearest known one.

        ``part__name=value`` replaces a part by a changed copy.
        """
        for name, value in parameters.resolve_changes(self, repr(self.name), params).items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return parameters.describe(self)

    # ------------------------------------------------------------- inside

    def _require_fitted(self) -> None:
        if not hasattr(self, "_classes"):
            name = type(self).__name__
            raise NotFitted(f"this {name} is not fitted yet: call fit(X, y), or cilf.load(folder).")

    def _check_instances(self, X: Any) -> Array:
        self._require_fitted()
        return validation.raw_instances(X, shape=self._shape)

    def _make_extractor(self, X: Array, y: Ints) -> Extractor | None:
        name = self._choose_features(X, y)
        if name is not None:
            extractor = make_extractor(name, resolve_device(self.device))
            extractor.require(X)
            return extractor
        if X.ndim == 1 or (X.ndim == 2 and not self.takes_vectors):
            what = "texts" if X.ndim == 1 else "(n, d) features"
            forms = validation.FORMS if self.takes_vectors else validation.IMAGES
            raise BadInput(
                f"X holds {what}, which {type(self).__name__} does not take as it is: give {forms}."
            )
        return None

    def _extractor(self) -> Extractor | None:
        """The frozen network that was fixed by ``fit``, or stored with the model."""
        if self._features is None:
            return None
        extractor = make_extractor(self._features.name, resolve_device(self.device))
        if extractor.digest != self._features.digest:
            is_file = extractor.name.startswith(onnx_models.PREFIX)
            remedy = "name the file" if is_file else "install the packages"
            raise BadInput(
                f"the model was made with other weights of {extractor.name!r} (digest "
                f"{self._features.digest}, here {extractor.digest}): {remedy} it was made with, or "
                "fit again."
            )
        return extractor

    def _extract_features(self, X: Array) -> Array:
        """Instances as the private methods get them."""
        extractor = self._extractor()
        if extractor is None:
            return X
        extractor.require_scale(X)
        return _normalize(cached_features(extractor, X))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore the learner if the work inside fails."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _learn(
        self, given: Array, seen: Array, y: Ints, n_classes: int | None = None
    ) -> State | None:
        """Fit, or update to ``n_classes``; ``given`` are the instances as users give them.

        On several devices, other processes do this. What is returned is the state that they have
        come to, which this learner does not have yet.
        """
        devices = 1 if self.training is None else self.training.devices
        if devices > current_group().size:
            return learn_in_ranks(self, given, seen, y, n_classes, devices=devices)
        with self._learning(given):
            if n_classes is None:
                self._fit(seen, y)
            else:
                self._update(seen, y, n_classes)
        return None

    @contextmanager
    def _learning(self, X: Array) -> Iterator[None]:
        """Let ``_divide`` see the instances as users give them."""
        self._given = X
        try:
            yield
        finally:
            del self._given

    def _divide(
        self,
        X: Array,
        y: Ints,
        per_class: int,
        rng: np.random.Generator,
        *,
        memory: Memory | None = None,
        held_out: Memory | None = None,
    ) -> tuple[Memory, Memory]:
        """Divide new instances into those to train on, and those to hold out with the earlier ones.

        Near-duplicates are on one side. An earlier held-out instance of which near-duplicates come
        now is dropped. ``memory`` are instances that were trained on before.
        """
        memory = Memory.empty(X) if memory is None else memory
        held_out = Memory.empty(X) if held_out is None else held_out
        is_new = np.arange(len(memory) + len(held_out) + len(X)) >= len(memory) + len(held_out)
        group = group_near_duplicates(memory.X, held_out.X, X)
        own = joined = group[is_new]
        if self._given is not None and self._given is not X:  # features tell them apart less well
            joined = join_groups(own, group_near_duplicates(self._given))
        is_seen = np.isin(own, group[: len(memory)])
        is_fresh = ~np.isin(group[len(memory) :][: len(held_out)], own)
        held_out = held_out.rows(np.flatnonzero(is_fresh))
        train, aside = set_aside(y, per_class, rng, held_out.y, joined, is_seen)
        return Memory(X[train], y[train]), held_out.combine(X[aside], y[aside])

    @property
    def _inner_shape(self) -> tuple[int, ...]:
        """The shape of one instance as the private methods get it."""
        return self._shape if self._features is None else (self._features.size,)

    @property
    def _n_updates(self) -> int:
        return sum(event["event"] == "update" for event in self._history)

    def _describe(self) -> dict[str, Any]:
        return {
            "learner": self.name,
            "parameters": parameters.to_json(self),
            "classes": self._classes,
            "instance_shape": list(self._shape),
            "features": self._features and self._features._asdict(),
            "compared_backbones": dict(self._compared_backbones),
            "history": self._history,
        }

    @classmethod
    def _restore(
        cls, description: Mapping[str, Any], arrays: Arrays, replaced: Mapping[str, Any]
    ) -> Self:
        """The learner that a model file describes, with some parameters ``replaced``."""
        learner = cls().set_params(**(description["parameters"] | dict(replaced)))
        learner._classes = description["classes"]
        learner._shape = tuple(description["instance_shape"])
        learner._history = description["history"]
        learner._compared_backbones = description.get("compared_backbones", {})
        if stored := description["features"]:
            name = _name_network(stored, next(filter(is_frozen, replaced.values()), None))
            learner._features = Features(**stored)._replace(name=name)
            learner.set_params(**_point_to(name, learner.get_params()))
            learner._extractor()
        learner._set_state(arrays, description["state"])
        return learner


def _name_network(stored: Mapping[str, Any], given: str | None) -> str:
    """The name of a model's frozen network. It may be another one now, if it is a user's own."""
    if given is not None:  # by the user
        return onnx_models.adopt_options(given, stored["name"])
    return locate_network(stored["name"], stored["digest"])


def _point_to(name: str, params: Mapping[str, Any]) -> dict[str, str]:
    """The parameters that name a user's own network, which is where the user says it is."""
    return {key: name for key, value in params.items() if is_users_own(value)}


def _normalize(features: Floats) -> Floats:
    """Bring features of a frozen network to one length, since only their direction matters."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    length = np.sqrt(features.shape[1])
    return np.asarray(features * (length / np.maximum(lengths, 1e-12)), dtype=np.float32)


def _split(X: Array) -> Iterator[Array]:
    """Instances in blocks of fixed size."""
    for start in range(0, len(X), BLOCK):
        yield X[start : start + BLOCK]


def _positions(y: Array, classes: list[Label]) -> Ints:
    position = {label: i for i, label in enumerate(classes)}
    return np.array([position[label] for label in y.tolist()], dtype=np.int64)


def _check_renaming(names: Any, classes: list[Label]) -> dict[Label, Label]:
    """Check a mapping of old to new names, and return it."""
    if not isinstance(names, Mapping) or not names:
        raise BadInput(f"names is {names!r}: give {{old name: new name}}, one for each class.")
    old = validation.labels(list(names), n=len(names), name="names").tolist()
    new = validation.labels(list(names.values()), n=len(names), name="names.values()").tolist()
    if unknown := [label for label in old if label not in classes]:
        raise BadInput(
            f"names renames {unknown[0]!r}, which is no class of this learner: its classes are "
            f"{', '.join(map(repr, classes))}."
        )
    changes = dict(zip(old, new, strict=True))
    renamed = [changes.get(label, label) for label in classes]
    if len({type(label) for label in renamed}) > 1:
        raise BadInput(
            f"names has new names of another kind ({new[0]!r}) than the classes that keep theirs: "
            "use strings for all classes, or ints for all."
        )
    if twice := [label for label in new if renamed.count(label) > 1]:
        raise BadInput(f"names would give two classes the name {twice[0]!r}: choose another.")
    return changes


def _event(kind: str, n_instances: int, classes: list[Label]) -> dict[str, Any]:
    return {"event": kind, "n_instances": n_instances, "new_classes": classes}
