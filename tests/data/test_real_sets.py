"""The real data sets, where CILF_DATA has them."""

from __future__ import annotations

import os

import numpy as np
import pytest

from cilf.data import DATASETS, Dataset, load_dataset, local, named
from cilf.stream import multiple_novel

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("CILF_DATA" not in os.environ, reason="CILF_DATA is not set"),
]

MEAN_BRIGHTNESS = {"mnist": 33.3, "cifar10": 120.7, "cifar100": 121.9}  # of the whole originals


def loaded(name: str) -> Dataset:
    folder = local.local_folder(named.ORIGINALS[name].folder)
    if folder is None or not folder.is_dir():
        pytest.skip(f"CILF_DATA has no {name}")
    return load_dataset(name)


@pytest.mark.parametrize("name", [name for name in DATASETS if name != "digits"])
def test_a_real_set_is_what_it_should_be(name: str) -> None:
    data, original = loaded(name), named.ORIGINALS[name]
    assert data.shape == original.shape
    assert data.classes == sorted(original.classes)
    assert data.train.X.dtype == np.uint8
    assert isinstance(data.train.X, np.memmap)
    assert len(set(data.train.ids.tolist()) | set(data.test.ids.tolist())) == sum(
        (len(data.train), len(data.test))
    )
    counts = np.unique(data.train.y, return_counts=True)[1]
    assert counts.max() <= 1.3 * counts.min()


@pytest.mark.parametrize("name", MEAN_BRIGHTNESS)
def test_pixels_are_decoded_right(name: str) -> None:
    data = loaded(name)
    assert data.train.X[::7].mean() == pytest.approx(MEAN_BRIGHTNESS[name], abs=1.0)


def test_a_second_load_decodes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = loaded("mnist")
    from PIL import Image

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(Image, "open", fail)
    np.testing.assert_array_equal(load_dataset("mnist").train.X[::500], first.train.X[::500])


def test_cifar50_streams_take_other_classes_with_another_seed() -> None:
    data = loaded("cifar50")
    drawn = [multiple_novel(data, seed=seed, initial_size=5, window_size=2) for seed in (0, 1)]
    classes = [set(stream.plan.arrivals) for stream in drawn]
    assert [len(stream.plan.initial) for stream in drawn] == [30, 30]
    assert all(len(chosen) <= 50 for chosen in classes)
    assert classes[0] != classes[1]
    assert set(drawn[0].holdout.y.tolist()) >= classes[0]
