"""Feature extractors by name, or made by any function that returns a module."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from cilf.core import validation
from cilf.errors import BadConfig
from cilf.nn import image_models, pretrained

Factory = Callable[[tuple[int, ...]], nn.Module]
"""Given the shape of one instance ((d,) or (c, h, w)), makes a module whose output is (n, f)."""


def mlp(shape: tuple[int, ...], width: int = 256) -> nn.Module:
    """Two hidden layers, for vectors (images are flattened)."""
    n_inputs = int(torch.Size(shape).numel())
    return nn.Sequential(
        nn.Flatten(),
        *_dense_block(n_inputs, width),
        *_dense_block(width, width),
    )


def _dense_block(n_in: int, n_out: int) -> list[nn.Module]:
    return [nn.Linear(n_in, n_out, bias=False), nn.BatchNorm1d(n_out), nn.ReLU(inplace=True)]


def convnet(shape: tuple[int, ...], width: int = 32) -> nn.Module:
    """Three convolution blocks of width, 2 x width and 4 x width channels, for small images."""
    channels, *size = shape
    layers: list[nn.Module] = []
    for n_out in (width, 2 * width, 4 * width):
        layers += [
            nn.Conv2d(channels, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(inplace=True),
        ]
        if min(size) >= 4:
            layers.append(nn.MaxPool2d(2))
            size = [side // 2 for side in size]
        channels = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())


def resnet18(shape: tuple[int, ...], width: int = 64) -> nn.Module:
    """ResNet-18 with the stem for small images: 3 x 3, stride 1, no pooling."""
    blocks: list[nn.Module] = []
    channels = width
    for stage, stride in enumerate((1, 2, 2, 2)):
        for step in (stride, 1):
            blocks.append(_Residual(channels, width * 2**stage, step))
            channels = width * 2**stage
    return nn.Sequential(
        nn.Conv2d(shape[0], width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


class _Residual(nn.Module):
    """Two 3 x 3 convolutions with a shortcut around them."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(inplace=True),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


BACKBONES: dict[str, Callable[..., nn.Module]] = {
    "mlp": mlp,
    "convnet": convnet,
    "resnet18": resnet18,
}
IMAGE_BACKBONES = ("convnet", "resnet18")  # those that take no vectors


def make_backbone(
    backbone: str | Factory, shape: tuple[int, ...], width: int | None = None
) -> nn.Module:
    """The module for instances of this shape; "auto" is mlp for vectors, convnet for images.

    The output of a frozen network is vectors, so its backbone is an mlp.
    """
    if callable(backbone):
        return _make_own(backbone, shape)
    if pretrained.is_tuned(backbone):
        return _make_tuned(backbone, shape, width)
    factory = BACKBONES[_resolve(backbone, shape)]
    if width is None:
        return factory(shape)
    return factory(shape, validation.whole_number("width", width, least=1))


def _resolve(backbone: str, shape: tuple[int, ...]) -> str:
    """The entry of ``BACKBONES`` that serves instances of this shape."""
    is_vector = len(shape) == 1
    if pretrained.is_frozen(backbone):
        if not is_vector:
            raise BadConfig(
                f"backbone {backbone!r} is frozen and runs before the learner, but this one gets "
                f"instances of shape {shape}: let its _wanted_features name the backbone."
            )
        return "mlp"
    name = validation.one_of("backbone", backbone, ["auto", *BACKBONES, *pretrained.FROZEN])
    if name == "auto":
        return "mlp" if is_vector else "convnet"
    return validation.one_of("backbone for vectors", name, ["mlp"]) if is_vector else name


def _make_tuned(backbone: str, shape: tuple[int, ...], width: int | None) -> nn.Module:
    source = pretrained.tuned_source(backbone)
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise BadConfig(
            f"backbone {backbone!r} takes images of 1 or 3 channels, not instances of shape "
            f"{shape}: choose another, or 'auto'."
        )
    if width is not None:
        raise BadConfig(f"width is {width}, but {backbone!r} has a fixed width: leave it out.")
    return image_models.load(source)


def _make_own(factory: Factory, shape: tuple[int, ...]) -> nn.Module:
    module = factory(shape)
    if not isinstance(module, nn.Module):
        raise BadConfig(
            f"backbone made a {type(module).__name__}, not a torch module: give a function that "
            "takes the shape of one instance and returns a torch.nn.Module."
        )
    return module
