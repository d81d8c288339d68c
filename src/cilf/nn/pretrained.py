"""Frozen networks that turn images or texts into vectors before a learner sees them.

Names of networks for images are "efficientnet-lite2", "efficientnet-lite0", "timm:NAME",
"torchvision:NAME" and "onnx:FILE", of those for texts "minilm" and "sentence:NAME-OR-FOLDER".
"efficientnet-lite2@224" brings all images to that size. "tune:" before the name of one of the first
four is a backbone that starts from those weights and is trained (see ``nn.backbones``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import nn

from cilf.core import validation
from cilf.core.cache import digest as hash_values
from cilf.core.extras import named_encoders
from cilf.core.notices import warn_once
from cilf.core.types import Array, Floats
from cilf.errors import BadInput
from cilf.nn import image_models, onnx_models, text_models
from cilf.nn.image_models import LITES, is_lite
from cilf.nn.text_models import MINILM

FROZEN = (*LITES, MINILM)
IMAGE_PREFIXES, TEXT_PREFIXES = ("timm:", "torchvision:"), (text_models.PREFIX,)
TUNE = "tune:"
MIN_SIDE = 16  # pixels of an image for which "auto" considers a frozen network by evidence


@dataclass(frozen=True)
class Extractor:
    """A frozen network. The vector of an instance does not depend on the rest of the batch."""

    name: str
    digest: str  # of its weights and of how it prepares its input
    takes: str  # "images" or "texts"
    extract: Callable[[Array], Floats]  # (n, ...) -> (n, f)
    network: nn.Module | None = None  # that makes features of pixels, unless it is elsewhere

    def require(self, X: Array) -> None:
        """Refuse training instances of a form or scale that the network does not take."""
        if self.takes == "texts" and X.ndim != 1:
            raise BadInput(f"X holds numbers, but {self.name!r} takes texts: {_REMEDY}")
        if self.takes == "images":
            _require_pixels(self.name, X)

    def require_scale(self, X: Array) -> None:
        """Refuse instances on another scale than the training instances.

        Float images with values up to 1 may be black images, so they only cause a notice.
        """
        if self.takes == "texts" or X.dtype == "uint8":
            return
        if X.min() < 0 or X.max() > 255:
            raise _off_scale(self.name, X)
        if 0 < X.max() <= 1:
            warn_once(
                "images with no value above 1 are taken for nearly black ones: the learner was "
                "fitted on pixels from 0 to 255."
            )


_REMEDY = "choose another, or 'auto'."


def _require_pixels(name: str, X: Array) -> None:
    if X.ndim < 3:
        kind = "texts" if X.ndim == 1 else "vectors"
        raise BadInput(f"X holds {kind}, but {name!r} takes images: {_REMEDY}")
    if X.ndim == 4 and X.shape[3] not in (1, 3):
        raise BadInput(
            f"X holds images of {X.shape[3]} channels, but {name!r} takes 1 or 3: leave out others."
        )
    if not _are_pixels(X):
        raise _off_scale(name, X)


def _off_scale(name: str, X: Array) -> BadInput:
    return BadInput(
        f"X holds values from {X.min():g} to {X.max():g}, but {name!r} takes pixels from 0 to "
        "255: bring them to that scale."
    )


def _are_pixels(X: Array) -> bool:
    """Whether values look like pixels from 0 to 255, not from 0 to 1 or standardised."""
    return X.dtype == "uint8" or (X.min() >= 0 and 1 < X.max() <= 255)


# ------------------------------------------------------------------------------- by name


def is_frozen(name: object) -> bool:
    """Whether a backbone of this name runs before the learner."""
    return isinstance(name, str) and (
        name == MINILM
        or is_lite(name)
        or name.startswith((*IMAGE_PREFIXES, *TEXT_PREFIXES, onnx_models.PREFIX))
    )


def is_users_own(name: object) -> bool:
    """Whether a network of this name comes from a file, a folder or somebody's place on a hub.

    A model may say that it was made with one, but not where it is: loading it could run code.
    """
    plain = name.removeprefix(TUNE) if isinstance(name, str) else ""
    is_elsewhere = plain.startswith(IMAGE_PREFIXES) and re.search("[:/]", plain.partition(":")[2])
    return bool(is_elsewhere) or plain.startswith((onnx_models.PREFIX, *TEXT_PREFIXES))


def locate_network(stored: str, digest: str) -> str:
    """The name with which a model finds its network. One of a user's own is not looked for."""
    if stored.startswith(onnx_models.PREFIX):
        return onnx_models.locate(stored, digest)
    if stored.startswith(TEXT_PREFIXES):
        return _locate_text_model(stored, digest)
    require_named(stored)
    return stored


def _locate_text_model(stored: str, digest: str) -> str:
    for encoder in named_encoders():
        name = text_models.to_name(encoder)
        if name and make_extractor(name, torch.device("cpu")).digest == digest:
            return name
    raise _not_named(stored)


def require_named(stored: object) -> None:
    """Refuse a network of a model that is somebody's own, unless the user names it."""
    if is_users_own(stored) and stored not in named_encoders():
        raise _not_named(str(stored))


def _not_named(stored: str) -> BadInput:
    return BadInput(
        f"the model was made with {stored!r}, which a model may not load by itself: name it, "
        f"--encoder {stored} or --encoder FOLDER, or load(folder, backbone={stored!r})."
    )


def is_tuned(name: object) -> bool:
    """Whether a backbone of this name starts from pre-trained weights."""
    return isinstance(name, str) and name.startswith(TUNE)


def tuned_source(name: str) -> str:
    """The image network that "tune:..." starts from."""
    source = name.removeprefix(TUNE)
    if source.startswith(IMAGE_PREFIXES) or is_lite(source):
        return source
    return validation.one_of(
        "network to tune", source, [*LITES, *(f"{p}..." for p in IMAGE_PREFIXES)]
    )


def make_extractor(name: str, device: torch.device) -> Extractor:
    """The frozen network of this name.

    Its weights are loaded once in a process, and again if its file has been written since.
    """
    return _load_extractor(name, device, onnx_models.identify(name))


@lru_cache(maxsize=4)
def _load_extractor(name: str, device: torch.device, _file: object) -> Extractor:
    if name == MINILM or name.startswith(TEXT_PREFIXES):
        model = text_models.load(name, device)
        about = text_models.preprocessing(model)
        run: Callable[[Any], Floats] = partial(text_models.features, model)
        return Extractor(name, _digest(model, about), "texts", run)
    if name.startswith(onnx_models.PREFIX):
        given = onnx_models.OnnxNetwork(*onnx_models.parse(name))
        return Extractor(name, given.digest, "images", given.extract)
    network = image_models.load(name).to(device)
    run = partial(image_models.features, network)
    return Extractor(name, _digest(network, network.preprocessing), "images", run, network)


def _digest(module: nn.Module, about: dict[str, Any]) -> str:
    hashed = hashlib.blake2b(hash_values(about).encode(), digest_size=8)
    for name, tensor in sorted(module.state_dict().items()):
        hashed.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        hashed.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy())
    return hashed.hexdigest()


# ------------------------------------------------------------------------------- the choice


def choose_network(value: object, X: Array, *, parameter: str = "backbone") -> str | None:
    """Choose the frozen network that embeds the training instances; None embeds nothing.

    ``value`` is that of the parameter. "auto" takes a network for texts, and for colour images if
    one is installed, and prints a notice.
    """
    if is_frozen(value):
        return onnx_models.make_absolute(str(value))
    if X.ndim == 1:
        return _choose_for_texts(value, parameter)
    best = image_models.best_installed() if value == "auto" and _are_photographs(X) else None
    if best is not None:
        warn_once(
            f"colour images are embedded by {best}, pre-trained on ImageNet; "
            f"{parameter}='convnet' trains a network from scratch instead."
        )
    return best


def find_candidate(X: Array) -> str | None:
    """The installed network that may suit these images better than one from scratch, or not.

    It is None for what are no pixels, and for small images: enlarged tenfold, they have no edges
    or textures like those that the network learned from.
    """
    has_channels = X.ndim == 3 or (X.ndim == 4 and X.shape[3] in (1, 3))
    if not has_channels or min(X.shape[1:3]) < MIN_SIDE or not _are_pixels(X):
        return None
    return image_models.best_installed()


def _choose_for_texts(value: object, parameter: str) -> str:
    if value != "auto":
        raise BadInput(
            f"X holds texts, which {parameter}={value!r} does not take: give numbers, or set "
            f"{parameter} to 'minilm' or 'sentence:NAME'."
        )
    warn_once(
        f"texts are embedded by {MINILM} (all-MiniLM-L6-v2), pre-trained on English; "
        f"{parameter}='sentence:NAME' takes another model."
    )
    return MINILM


def _are_photographs(X: Array) -> bool:
    return X.ndim == 4 and X.shape[3] == 3 and _are_pixels(X)
