from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from cilf.errors import BadConfig
from cilf.nn.backbones import BACKBONES, make_backbone

SHAPES = [(3,), (1, 8, 8), (3, 32, 32), (1, 1, 1), (3, 3, 2), (1, 2, 28), (2, 5, 9)]
IMAGES = [shape for shape in SHAPES if len(shape) == 3]


def convolutions(module: nn.Module) -> list[nn.Conv2d]:
    return [part for part in module.modules() if isinstance(part, nn.Conv2d)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gets_features(shape: tuple[int, ...]) -> None:
    features = make_backbone("auto", shape)(torch.randn(4, *shape))
    assert features.ndim == 2
    assert len(features) == 4
    assert features.isfinite().all()


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("shape", IMAGES)
def test_every_backbone_serves_images_however_small(name: str, shape: tuple[int, ...]) -> None:
    features = make_backbone(name, shape, width=4)(torch.randn(2, *shape))
    assert features.ndim == 2
    assert features.isfinite().all()


def test_auto_is_dense_for_vectors_and_convolutional_for_images() -> None:
    assert not convolutions(make_backbone("auto", (5,)))
    assert len(convolutions(make_backbone("auto", (1, 8, 8)))) == 3


def test_convnet_doubles_its_channels_and_halves_the_image_while_it_can() -> None:
    net = make_backbone("convnet", (3, 32, 32), width=8)
    assert [layer.out_channels for layer in convolutions(net)] == [8, 16, 32]
    assert sum(isinstance(part, nn.MaxPool2d) for part in net.modules()) == 3
    small = make_backbone("convnet", (3, 5, 5))
    assert sum(isinstance(part, nn.MaxPool2d) for part in small.modules()) == 1


@pytest.mark.parametrize("side", [1, 2, 8, 28])
def test_the_number_of_features_does_not_depend_on_the_size_of_images(side: int) -> None:
    image = torch.randn(2, 1, side, side)
    assert make_backbone("convnet", (1, side, side), width=4)(image).shape == (2, 64)
    assert make_backbone("resnet18", (1, side, side), width=4)(image).shape == (2, 32)


def test_resnet18_has_its_depth_its_width_and_a_stem_for_small_images() -> None:
    net = make_backbone("resnet18", (3, 32, 32))
    stem, *body = convolutions(net)
    assert (stem.kernel_size, stem.stride, stem.out_channels) == ((3, 3), (1, 1), 64)
    assert not any(isinstance(part, nn.MaxPool2d) for part in net.modules())
    in_blocks = [layer for layer in body if layer.kernel_size == (3, 3)]
    assert [layer.out_channels for layer in in_blocks] == [64] * 4 + [128] * 4 + [256] * 4 + [
        512
    ] * 4
    assert [layer.stride[0] for layer in in_blocks].count(2) == 3
    # 11.17 million weights: the published ResNet-18 for CIFAR without its last linear layer
    assert sum(p.numel() for p in net.parameters()) == 11_168_832


def test_width_scales_resnet18() -> None:
    assert convolutions(make_backbone("resnet18", (1, 8, 8), width=8))[-1].out_channels == 64


def test_a_residual_block_adds_its_input() -> None:
    block = make_backbone("resnet18", (1, 8, 8), width=4)[3]  # type: ignore[index]
    nn.init.zeros_(block.body[-1].weight)  # what the convolutions give is zero: only x is left
    x = torch.randn(2, 4, 8, 8)
    assert torch.equal(block(x), x.relu())


def test_an_own_factory_gets_the_shape_and_its_module_is_used() -> None:
    own = nn.Flatten()
    shapes = []

    def factory(shape: tuple[int, ...]) -> nn.Module:
        shapes.append(shape)
        return own

    assert make_backbone(factory, (3, 4, 5)) is own
    assert shapes == [(3, 4, 5)]


def test_an_own_factory_that_makes_no_module_is_refused() -> None:
    with pytest.raises(BadConfig, match=r"backbone made a str, not a torch module"):
        make_backbone(lambda shape: "convnet", (3, 4, 5))  # type: ignore[arg-type, return-value]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadConfig, match=r"unknown backbone 'resnet8': did you mean 'resnet18'\?"):
        make_backbone("resnet8", (1, 8, 8))


@pytest.mark.parametrize("name", ["convnet", "resnet18"])
def test_convolutions_on_vectors_are_refused(name: str) -> None:
    with pytest.raises(BadConfig, match=f"unknown backbone for vectors '{name}'.*Known: mlp"):
        make_backbone(name, (5,))


@pytest.mark.parametrize("width", [0, -1, 2.5, "8"])
def test_a_width_that_is_none_is_refused(width: Any) -> None:
    with pytest.raises(BadConfig, match=r"width is .*: give a whole number of at least 1"):
        make_backbone("mlp", (5,), width)
