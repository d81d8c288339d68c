"""How large a run is: sizes of the stream and budgets of the learner, by scale and data set.

Stream sizes are instances per class. What a row leaves out stays at its default: a stream then
starts with 40 % of a class, spreads the rest evenly over its windows, and holds out the whole
test split. A learner takes only those budgets it has a parameter for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cilf.core import validation

ANY = "*"  # the row of every data set that has none of its own


@dataclass(frozen=True)
class Setting:
    """What a scale changes from the defaults."""

    stream: Mapping[str, int] = field(default_factory=dict)
    learner: Mapping[str, Any] = field(default_factory=dict)


def _cpu(initial: int, window: int, memory: int, n_windows: int | None = None) -> Setting:
    sizes = {"initial_size": initial, "window_size": window, "holdout_size": 100}
    return Setting(
        stream=sizes if n_windows is None else sizes | {"n_windows": n_windows},
        learner={"backbone": "convnet", "epochs": 20, "memory_size": memory},
    )


# A class of digits has about 144 training images, too few for fixed sizes in every scenario:
# their even share is 28 a window in three windows, 21 in four, 17 in five. Learners keep their
# own number of epochs: on so little data they take seconds, and fewer spoil the embedding.
_SMOKE = Setting(learner={"memory_size": 100})

SCALES: dict[str, dict[str, Setting]] = {
    "smoke": {ANY: _SMOKE},
    "cpu": {
        "mnist": _cpu(500, 200, 500),
        "cifar10": _cpu(500, 200, 1000),
        "cifar50": _cpu(200, 50, 1500, n_windows=10),
        "cifar100": _cpu(150, 50, 2000, n_windows=10),
        ANY: Setting(learner={"epochs": 20, "memory_size": 1000}),
    },
    "paper": {
        ANY: Setting(learner={"backbone": "resnet18", "epochs": 20, "memory_size": 2000}),
    },
}
SMALL = ("digits",)  # data sets so small that they are run at smoke unless told otherwise


def default_scale(data: str) -> str:
    """The scale of a run that names none."""
    return "smoke" if data in SMALL else "cpu"


def setting(scale: str, data: str) -> Setting:
    """What a scale says about a data set.

    >>> setting("cpu", "mnist").stream["window_size"]
    200
    """
    rows = SCALES[validation.one_of("scale", scale, SCALES)]
    return rows.get(data, rows[ANY])
