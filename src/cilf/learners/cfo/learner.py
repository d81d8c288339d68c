"""CFO: a classifier that learns "none of them" from counterfactual images of a GAN."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.core import progress, validation
from cilf.core.random import derived_seed, torch_generator
from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners.base import Arrays
from cilf.learners.cfo import gan
from cilf.learners.cfo.counterfactual import (
    counterfactuals,
    one_against_rest,
    open_scores,
    with_none,
)
from cilf.learners.cfo.gan import GAN
from cilf.learners.marking import MarkingLearner, Marks
from cilf.learners.with_classifier import ClassifierLearner, Made
from cilf.nn import pretrained, training
from cilf.nn.memory import Memory
from cilf.nn.network import Network, resolve_device, tensor_shape, to_numpy

GAN_WEIGHTS = "gan."  # before the name of each of its weights in a file


def _image_size(name: str, value: Any) -> None:
    if validation.whole_number(name, value, least=gan.SMALLEST).bit_count() != 1:
        raise BadConfig(f"{name} is {value}: give a power of two (8, 16, 32, ...).")


@dataclass(kw_only=True, repr=False, eq=False)
class CFO(ClassifierLearner, MarkingLearner):
    """A classifier with a class for "none of the known", learned from counterfactual images.

    A GAN learns to encode and to make images. From the code of a known image one descends to an
    image close by that the classifier takes for no known class; on such images, and real ones,
    the classifier goes on learning. What it then takes for none of the known is novel. Images
    only.

    Args:
        gan_epochs, update_gan_epochs: of training the GAN, at first and in an update.
        gan_learning_rate: of its networks.
        gan_width: channels of their first layer.
        latent_size: dimensions of each of the 4 x 4 cells that encode an image.
        image_size: side of the images the GAN works on, a power of two; None takes the smallest
            that holds the instances, from 8 to 32.
        reconstruction_weight, generator_weight, discriminator_weight, penalty: of the terms of
            the GAN's losses.
        counterfactual_batches: of images to find counterfactuals of; each image serves once.
        steps, speed: of the descent to a counterfactual.
        distance_weight: what the squared distance from its start counts in the descent.
        open_epochs, open_learning_rate: of the training on real and counterfactual images.
        seed, device, backbone, width, epochs, update_epochs, training: see :class:`WithNetwork`.
        accepted, calibration_size, memory_size: see :class:`ClassifierLearner`.
        k_max, least_silhouette, cluster_all: see :class:`MarkingLearner`.

    Attributes:
        classes_: the known classes, in order of arrival.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.integers(0, 60, size=(40, 8, 8), dtype=np.uint8)
        >>> X[:20, :4] += 180  # bright above, or bright below
        >>> X[20:, 4:] += 180
        >>> learner = CFO(epochs=5, gan_epochs=1, gan_width=8, steps=5)
        >>> learner.fit(X, ["above"] * 20 + ["below"] * 20).predict(X[[0, -1]]).tolist()
        ['above', 'below']

    Reference: Neal, Olson, Fern, Wong and Li, "Open set learning with counterfactual images",
    ECCV 2018. ``docs/methods/cfo.md`` numbers the differences.
    """

    name: ClassVar[str] = "cfo"
    takes_vectors: ClassVar[bool] = False
    domains: ClassVar[Mapping[str, validation.Check]] = {
        **ClassifierLearner.domains,
        **MarkingLearner.domains,
        **dict.fromkeys(["gan_epochs", "update_gan_epochs", "open_epochs"], validation.whole(0)),
        **dict.fromkeys(
            ["gan_width", "latent_size", "counterfactual_batches"], validation.whole(1)
        ),
        "image_size": validation.optional(_image_size),
        "steps": validation.whole(0),
        **dict.fromkeys(
            ["gan_learning_rate", "reconstruction_weight", "generator_weight",
             "discriminator_weight", "penalty", "speed", "distance_weight", "open_learning_rate"],
            validation.between(0.0),
        ),
    }  # fmt: skip
    check_parameters: ClassVar[Mapping[str, Any]] = {
        "gan_epochs": 1, "update_gan_epochs": 1, "gan_width": 4, "latent_size": 4, "steps": 3,
        "open_epochs": 1,
    }  # fmt: skip

    gan_epochs: int = 30
    update_gan_epochs: int = 3
    gan_learning_rate: float = 1e-4
    gan_width: int = 64
    latent_size: int = 64
    image_size: int | None = None
    reconstruction_weight: float = 1.0
    generator_weight: float = 0.01
    discriminator_weight: float = 0.01
    penalty: float = 10.0
    counterfactual_batches: int = 50
    steps: int = 100
    speed: float = 0.1
    distance_weight: float = 1.0
    open_epochs: int = 3
    open_learning_rate: float = 0.001

    _gan: GAN = field(init=False)
    _gan_architecture: dict[str, Any] = field(init=False)

    @classmethod
    def paper(cls, **changed: Any) -> Self:
        """As the paper compares it: known and novel instances are clustered together."""
        return cls().set_params(**({"cluster_all": True} | changed))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if pretrained.is_frozen(self.backbone):
            raise BadConfig(
                f"backbone is {self.backbone!r}, which makes vectors of images, and cfo makes "
                "images: give 'auto', 'convnet', 'resnet18' or 'tune:NAME'."
            )

    def _wanted_features(self, X: Array) -> str | None:
        return None  # the GAN needs images

    # ------------------------------------------------------------- learning

    def _train(
        self, network: Network, labelled: Memory, settings: training.Settings, made: Made
    ) -> None:
        """The classifier of K classes, the GAN, counterfactuals, the classifier of K + 1."""
        x, labels = self._tensors(labelled, network)
        draws, seed = torch_generator(self.seed, *made), derived_seed(self.seed, *made)
        batches = training.shuffled(len(x), self.training.batch_size, draws, x.device)
        purpose = str(made[0])

        def one_of_them(logits: Tensor, rows: Tensor) -> Tensor:
            return one_against_rest(logits, labels[rows])

        _train(network, x, batches, one_of_them, settings, seed, purpose)
        images, architecture = self._begun_gan(labelled, x, purpose)
        gan_epochs = self.gan_epochs if purpose == "fit" else self.update_gan_epochs
        gan.train_gan(
            images, x, self._gan_settings(gan_epochs),
            batch_size=self.training.batch_size, draws=draws, purpose=f"{purpose}: images",
        )  # fmt: skip
        chosen = torch.randperm(len(x), generator=draws).to(x.device)
        made_up = self._made_up(network, images, x[chosen], f"{purpose}: counterfactuals")
        batches = with_as_many(batches, len(x), len(made_up), draws)
        self._learn_none(network, x, labels, made_up, batches, seed, purpose)
        self._gan, self._gan_architecture = images, architecture

    def _begun_gan(self, labelled: Memory, x: Tensor, purpose: str) -> tuple[GAN, dict[str, Any]]:
        """A new one to fit; in an update a copy of the one there is. And its architecture."""
        if purpose != "fit":
            return copy.deepcopy(self._gan), self._gan_architecture
        architecture = self._wanted_gan()
        images = self._make_gan(labelled.X.shape[1:], architecture)
        images.take_range(x)
        return images, architecture

    def _learn_none(
        self, network: Network, x: Tensor, labels: Tensor, made_up: Tensor,
        batches: training.Batches, seed: int, purpose: str,
    ) -> None:  # fmt: skip
        """Go on with real images, and with those that were made up as "none of them"."""
        none = labels.new_full((len(made_up),), network.head.out_features)
        targets = torch.cat([labels, none])

        def one_of_them_or_none(logits: Tensor, rows: Tensor) -> Tensor:
            return F.cross_entropy(with_none(logits), targets[rows])

        settings = self.training.settings(self.open_epochs, self.open_learning_rate)
        images, purpose = torch.cat([x, made_up]), f"{purpose}: none of the known"
        _train(network, images, batches, one_of_them_or_none, settings, seed, purpose)

    def _made_up(self, network: Network, images: GAN, x: Tensor, purpose: str) -> Tensor:
        """Counterfactuals of the first batches, as raw images of the same type."""
        batches = torch.split(x, self.training.batch_size)[: self.counterfactual_batches]
        found: list[Tensor] = []
        for batch in batches:
            made = counterfactuals(
                images, network, batch,
                steps=self.steps, speed=self.speed, distance_weight=self.distance_weight,
            )  # fmt: skip
            found.append(made if x.is_floating_point() else made.round().to(x.dtype))
            progress.report(purpose, len(found), len(batches))
        return torch.cat(found)

    # ------------------------------------------------------------- what it says

    def _mark(self, X: Array) -> Marks:
        logits, features = self._outputs(X)
        score = open_scores(logits).cpu().numpy()
        marked = score > self._most_accepted(self._novelty)
        return Marks(score, marked, logits.argmax(1).cpu().numpy(), to_numpy(features))

    def _novelty(self, X: Array) -> Array:
        return open_scores(self._outputs(X)[0]).cpu().numpy()

    # ------------------------------------------------------------- the GAN, and files

    def _wanted_gan(self) -> dict[str, Any]:
        return {
            "image_size": self.image_size,
            "latent_size": self.latent_size,
            "width": self.gan_width,
        }

    def _make_gan(self, shape: tuple[int, ...], architecture: Mapping[str, Any]) -> GAN:
        device = resolve_device(self.device)
        return gan.make_gan(tensor_shape(shape), seed=self.seed, device=device, **architecture)

    def _gan_settings(self, epochs: int) -> gan.Settings:
        return gan.Settings(
            epochs=epochs,
            learning_rate=self.gan_learning_rate,
            reconstruction_weight=self.reconstruction_weight,
            generator_weight=self.generator_weight,
            discriminator_weight=self.discriminator_weight,
            penalty=self.penalty,
        )

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, plain = super()._get_state()
        made = {GAN_WEIGHTS + k: v.cpu().numpy() for k, v in self._gan.state_dict().items()}
        return arrays | made, plain | {"gan": self._gan_architecture}

    def _set_state(self, arrays: Arrays, plain: Mapping[str, Any]) -> None:
        super()._set_state(arrays, plain)
        self._gan_architecture = dict(plain["gan"])
        self._gan = self._make_gan(self._inner_shape, self._gan_architecture)
        weights = {k: torch.from_numpy(v) for k, v in arrays.items() if k.startswith(GAN_WEIGHTS)}
        self._gan.load_state_dict({k.removeprefix(GAN_WEIGHTS): v for k, v in weights.items()})
        self._gan.eval()


def _train(
    network: Network, x: Tensor, batches: training.Batches, objective: training.Objective,
    settings: training.Settings, seed: int, purpose: str,
) -> None:  # fmt: skip
    for _ in training.epochs(network, x, batches, objective, settings, seed=seed, purpose=purpose):
        pass


def with_as_many(
    real: training.Batches, n_real: int, n_made: int, draws: torch.Generator
) -> training.Batches:
    """Each batch of real rows, and as many drawn from the ``n_made`` rows that follow them all."""

    def of_epoch(number: int) -> Iterable[Tensor]:
        for rows in real(number):
            drawn = n_real + torch.randint(n_made, (len(rows),), generator=draws)
            yield torch.cat([rows, drawn.to(rows.device)])

    return of_epoch
