"""The numbers of the paper's four tables, by our names."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from cilf.evaluate.metric_table import METRICS

ROWS = {
    "iforest": "Iforest", "one-svm": "One-SVM", "lacu-svm": "LACU-SVM", "senc-mas": "SENC-MAS",
    "odin-cnn": "ODIN-CNN", "cfo": "CFO", "cpe": "CPE", "dtc": "DEC", "dnn-base": "DNN-Base",
    "dnn-l2": "DNN-L2", "dnn-ewc": "DNN-EWC", "imm-mean": "IMM", "imm-mode": "IMM", "den": "DEN",
    "cilf": "CILF", "cilf-paper": "CILF",
}  # fmt: skip
COLUMNS = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar50": "CIFAR-50", "cifar100": "CIFAR-100"}


class Published(NamedTuple):
    """Mean and deviation over the paper's five repetitions."""

    mean: float
    std: float


def find_published(scenario: str, metric: str, learner: str, data: str) -> Published | None:
    """Find what the paper prints for a cell; None if the paper does not have it.

    >>> find_published("multiple", "plan_na", "cilf", "mnist")
    Published(mean=0.493, std=0.051)
    >>> find_published("multiple", "plan_na", "cilf", "digits") is None
    True
    """
    rows = _read_tables()[scenario].get(METRICS[metric].title, {})
    cell = rows.get(ROWS.get(learner, ""), {}).get(COLUMNS.get(data, ""))
    return None if cell is None else Published(cell["mean"], cell["std"])


@cache
def _read_tables() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
