"""CFO: a classifier that learns "none of the known classes" from counterfactual images."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import Detection, validation
from cilf.core.deprecation import accept_old_parameters
from cilf.core.parameters import inherit_descriptions
from cilf.core.types import Array, Ints
from cilf.errors import BadConfig
from cilf.learners.base import Arrays
from cilf.learners.cfo.counterfactual import (
    Counterfactuals,
    one_against_rest,
    open_scores,
    pad_none,
)
from cilf.learners.cfo.gan import GAN, GANSettings, make_gan, train_gan
from cilf.learners.classifier import ClassifierLearner, Task
from cilf.learners.novel_clustering import NovelClustering
from cilf.nn import pretrained, training
from cilf.nn.classifier import grow_head
from cilf.nn.network import resolve_device, tensor_shape
from cilf.nn.persistence import load_weights, weight_arrays

GAN_WEIGHTS = "gan"  # the name of its weights in a file


@inherit_descriptions
@accept_old_parameters
@dataclass(kw_only=True, repr=False, eq=False)
class CFO(ClassifierLearner):
    """A classifier with a class for "none of the known", learned from counterfactual images.

    A GAN learns to encode and to generate images. A descent from the code of a known image finds an
    image close by that the classifier takes for no known class. The classifier is then trained on
    such images and on real ones. An instance is novel if "none of the known" is more likely than
    for nearly all held-out known instances. The learner takes images only.

    Parameters
    ----------
    gan : GANSettings, default=GANSettings()
        The GAN and its training.
    counterfactuals : Counterfactuals, default=Counterfactuals()
        The descent to counterfactual images.
    open_epochs : int, default=3
        Number of passes over the data in the training on real and counterfactual images.
    open_learning_rate : float, default=0.001
        Learning rate of the training on real and counterfactual images.
    device : str, default="auto"
        Device of the networks: "auto", "cpu", "cuda", "cuda:1", ...
    backbone : str or callable, default="auto"
        Network that turns an image into features: "convnet", "resnet18", "tune:NAME", or a function
        from the shape of an image to a module.
    width : int or None, default=None
        Number of channels of the backbone's first layer. None is its own default.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 60, size=(40, 8, 8), dtype=np.uint8)
    >>> X[:20, :4] += 180  # bright above, or bright below
    >>> X[20:, 4:] += 180
    >>> learner = CFO(epochs=5).set_params(gan__epochs=1, gan__width=8, counterfactuals__steps=5)
    >>> learner.fit(X, ["above"] * 20 + ["below"] * 20).predict(X[[0, -1]]).tolist()
    ['above', 'below']

    References
    ----------
    Neal, Olson, Fern, Wong and Li, "Open set learning with counterfactual images", ECCV 2018.
    ``docs/methods/cfo.md`` numbers the differences.
    """

    name: ClassVar[str] = "cfo"
    takes_vectors: ClassVar[bool] = False
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        "open_epochs": validation.whole(0),
        "open_learning_rate": validation.in_range(0.0),
    }
    check_parameters: ClassVar[Mapping[str, Any]] = {
        "gan": {"epochs": 1, "update_epochs": 1, "width": 4, "latent_size": 4},
        "counterfactuals": {"steps": 3},
        "open_epochs": 1,
    }

    gan: GANSettings = GANSettings()
    counterfactuals: Counterfactuals = Counterfactuals()
    open_epochs: int = 3
    open_learning_rate: float = 0.001
    clustering: NovelClustering = NovelClustering()

    _gan: GAN = field(init=False)
    _gan_architecture: dict[str, Any] = field(init=False)

    @classmethod
    def paper(cls, **changed: Any) -> Self:
        """A learner as the paper compares it: known and novel instances are clustered together."""
        return cls().set_params(**({"clustering__cluster_all": True} | changed))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if pretrained.is_frozen(self.backbone):
            raise BadConfig(
                f"backbone is {self.backbone!r}, which makes vectors of images, and cfo generates "
                "images: give 'auto', 'convnet', 'resnet18' or 'tune:NAME'."
            )

    def _wanted_features(self, X: Array) -> str | None:
        return None  # the GAN needs images

    # ------------------------------------------------------------- training

    def _fit(self, X: Array, y: Ints) -> None:
        task = self._begin_fit(X, y)
        architecture = self.gan.architecture()
        gan = self._make_gan(X.shape[1:], architecture)
        gan.take_range(task.tensors()[0])
        self._train_open(task, gan, self.gan.epochs)
        self._gan, self._gan_architecture = gan, architecture
        self._finish(task)

    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        task = self._begin_update(X, y, n_classes)
        grow_head(task.network, n_classes, self.seed)
        gan = copy.deepcopy(self._gan)
        self._train_open(task, gan, self.gan.update_epochs)
        self._gan = gan
        self._finish(task)

    def _train_open(self, task: Task, gan: GAN, gan_epochs: int) -> None:
        """Train the classifier of K classes, the GAN, and the classifier of K + 1 classes."""
        x, labels = task.tensors()
        rng, batch_size = task.device_generator(), self.training.batch_size
        batches = training.shuffle_batches(len(x), batch_size, rng, x.device)
        _run_epochs(
            task, x, batches, lambda logits, rows: one_against_rest(logits, labels[rows]),
            task.settings, task.purpose,
        )  # fmt: skip
        train_gan(
            gan, x, self.gan, epochs=gan_epochs, batch_size=batch_size, rng=rng,
            purpose=f"{task.purpose}: images",
        )  # fmt: skip
        order = torch.randperm(len(x), generator=rng, device=rng.device).to(x.device)
        made_up = self.counterfactuals.generate(
            gan, task.network, torch.split(x[order], batch_size),
            purpose=f"{task.purpose}: counterfactuals",
        )  # fmt: skip
        batches = add_made_up(batches, len(x), len(made_up), rng)
        self._train_none(task, x, labels, made_up, batches)

    def _train_none(
        self, task: Task, x: Tensor, labels: Tensor, made_up: Tensor, batches: training.Batches
    ) -> None:
        """Train on real images, and on made-up images as "none of the known"."""
        none = labels.new_full((len(made_up),), task.network.head.out_features)
        targets = torch.cat([labels, none])
        settings = self.training.settings(self.open_epochs, self.open_learning_rate)
        _run_epochs(
            task, torch.cat([x, made_up]), batches,
            lambda logits, rows: F.cross_entropy(pad_none(logits), targets[rows]),
            settings, f"{task.purpose}: none of the known",
        )  # fmt: skip

    # ------------------------------------------------------------- detection

    def _score_novelty(self, X: Array, logits: Tensor) -> Array:
        return open_scores(logits).cpu().numpy()

    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        return self._cluster_novel(X, n_novel, self.clustering)

    # ------------------------------------------------------------- the GAN, and files

    def _make_gan(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> GAN:
        device = resolve_device(self.device)
        return make_gan(tensor_shape(shape), seed=self.seed, device=device, **architecture)

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        weights = weight_arrays(self._gan, GAN_WEIGHTS)
        return arrays | weights, plain | {"gan": self._gan_architecture}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        super()._set_state(arrays, plain)
        self._gan_architecture = dict(plain["gan"])
        self._gan = self._make_gan(self._inner_shape, self._gan_architecture)
        load_weights(self._gan, arrays, GAN_WEIGHTS)


def _run_epochs(
    task: Task, x: Tensor, batches: training.Batches, objective: training.Objective,
    settings: training.Settings, purpose: str,
) -> None:  # fmt: skip
    for _ in training.epochs(
        task.network, x, batches, objective, settings, seed=task.training_seed, purpose=purpose
    ):
        pass


def add_made_up(
    real: training.Batches, n_real: int, n_made_up: int, rng: torch.Generator
) -> training.Batches:
    """Batches of real rows, each with as many random rows of made-up images.

    The rows of the made-up images follow those of all real ones.
    """

    def of_epoch(number: int) -> Iterable[Tensor]:
        for rows in real(number):
            drawn = torch.randint(n_made_up, (len(rows),), generator=rng, device=rng.device)
            yield torch.cat([rows, n_real + drawn.to(rows.device)])

    return of_epoch
