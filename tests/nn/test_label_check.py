from __future__ import annotations

import numpy as np
import pytest
import torch

from cilf.core.types import Bools, Ints
from cilf.nn.label_check import check_labels

N = 60
TRUE = np.repeat([0, 1, 2], N)
ALL = np.ones(3 * N, dtype=bool)


def points(apart: float, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    centres = apart * np.eye(3, 8)
    return torch.from_numpy((centres[TRUE] + rng.normal(size=(3 * N, 8))).astype(np.float32))


def find_doubtful(x: torch.Tensor, labels: Ints, group: Ints | None = None) -> Bools:
    group = np.arange(len(labels)) if group is None else group
    return check_labels([x], labels, group, ALL).is_doubtful


@pytest.mark.parametrize("apart", [3.0, 8.0])
def test_right_labels_are_hardly_doubted(apart: float) -> None:
    doubtful = find_doubtful(points(apart), TRUE)
    assert doubtful.mean() < (0.01 if apart > 4 else 0.1)


def test_a_third_of_wrong_labels_is_found() -> None:
    labels = TRUE.copy()
    labels[:20] = 1
    checked = check_labels([points(8.0)], labels, np.arange(3 * N), ALL)
    assert checked.is_doubtful[:20].mean() > 0.6
    assert checked.is_doubtful[20:].mean() < 0.05
    assert (checked.likely[:20] == 0).mean() > 0.9


def test_wrong_copies_do_not_confirm_each_other() -> None:
    rng = np.random.default_rng(0)
    scenes = rng.normal(size=(36, 200)) + 2 * np.repeat(np.eye(3, 200), 12, 0)
    x = torch.from_numpy(np.repeat(scenes, 5, 0).astype(np.float32))
    labels, group = TRUE.copy(), np.repeat(np.arange(36), 5)
    labels[:20] = 2
    alone, together = (find_doubtful(x, labels, each)[:20] for each in (None, group))
    assert not alone.any()
    assert together.mean() >= 0.25


def test_few_labels_and_classes_with_one_instance() -> None:
    assert not check_labels([points(8.0)[:9]], TRUE[:9], np.arange(9), ALL[:9]).is_doubtful.any()
    labels = TRUE.copy()
    labels[-1] = 3
    doubtful = find_doubtful(points(8.0), labels)
    assert doubtful[-1]
    assert doubtful.mean() < 0.05
