from __future__ import annotations

from typing import Any

import pytest

from cilf.benchmark.image_passes import (
    FORWARD_SHARE,
    StreamSizes,
    WindowSize,
    count_passes,
    count_tuned_images,
)
from cilf.data import load_dataset
from cilf.learners import make
from cilf.stream import multiple_novel

SIZES = StreamSizes(initial=100, windows=(WindowSize(60, 20), WindowSize(80, 30)), holdout=40)
FORWARDS = FORWARD_SHARE * (60 + 80 + 2 * 40)


def test_sizes_are_those_of_the_stream() -> None:
    stream = multiple_novel(load_dataset("digits"), seed=0)
    sizes = StreamSizes.of(stream)
    assert sizes.initial == len(stream.initial.X)
    assert sizes.holdout == len(stream.holdout.X)
    for size, window in zip(sizes.windows, stream, strict=True):
        assert size.n == len(window.X)
        assert size.n_novel == sum(label in window.novel for label in window.y.tolist())


@pytest.mark.parametrize(
    ("parameters", "trained"),
    [
        ({}, 0),
        ({"epochs": 3}, 300),
        ({"epochs": 3, "update_epochs": 2}, 300 + 2 * (20 + 30)),
        ({"update_epochs": 2, "memory_size": 50}, 2 * (20 + 50 + 30 + 50)),
        ({"update_epochs": 2, "memory_size": 110}, 2 * (20 + 100 + 30 + 110)),
        ({"update_epochs": 2, "memory_size": 50, "replay": False}, 2 * (20 + 30)),
        ({"update_epochs": 2, "memory_size": 50, "replay": True}, 2 * (20 + 50 + 30 + 50)),
        ({"tuning__warmup_epochs": 1, "tuning__sharpen_epochs": 4}, 5 * (60 + 80)),
    ],
    ids=str,
)
def test_every_training_counts(parameters: dict[str, Any], trained: int) -> None:
    assert count_passes(SIZES, parameters) == pytest.approx(trained + FORWARDS)


def test_a_learner_of_everything_trains_on_all_windows_for_as_long_as_others_did() -> None:
    found = count_passes(SIZES, {"epochs": 3, "update_epochs": 2}, keeps_everything=True)
    assert found == pytest.approx(100 * 3 + 160 * (3 + 2) + 240 * (3 + 4) + FORWARDS)
    warm = {"epochs": 3, "update_epochs": 2, "warm_start": True}
    found = count_passes(SIZES, warm, keeps_everything=True)
    assert found == pytest.approx(100 * 3 + 160 * 2 + 240 * 2 + FORWARDS)


def test_nothing_is_tuned_where_nothing_is_detected() -> None:
    parameters = {"epochs": 3, "tuning__warmup_epochs": 5}
    given, found = (count_passes(SIZES, parameters, detects=detects) for detects in (False, True))
    assert (given, found) == (100 * 3 + FORWARDS, 100 * 3 + 5 * (60 + 80) + FORWARDS)


def test_a_detector_tunes_for_each_number_of_novel_classes() -> None:
    changes = {"detector__epochs": 10, "detector__k_max": 3, "training__batch_size": 100}
    parameters = make("cilf-paper", **changes).get_params()
    assert count_tuned_images(parameters, 5000) == 4 * 10 * 5000
    assert count_tuned_images(parameters, 200) == 4 * 10 * 30 * 100  # at least 30 batches
    assert count_tuned_images(parameters, 16) == 3 * 10 * 30 * 100  # a small window has fewer
    assert count_tuned_images(make("cilf").get_params(), 1000) == 0
