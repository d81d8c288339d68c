"""Scales: sizes of the stream and budgets of the learner, by scale and data set.

Stream sizes are instances per class. A size that a row leaves out has its default: a stream starts
with 40 % of a class, spreads the rest evenly over its windows, and holds out the test split. At
scale paper, a novel class starts with as many instances as an initial class. A learner takes only
the budgets that it has a parameter for. Class counts do not depend on the scale, see
``cilf.stream.plan.paper_protocol``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cilf.core import validation

ANY = "*"  # the row of every data set that has none of its own
TUNING = {
    "tuning__warmup_epochs": 10,
    "tuning__sharpen_epochs": 25,
}  # on each window, by learners that do so; docs/methods/dtc.md has the curve


@dataclass(frozen=True)
class Setting:
    """The changes of a scale from the defaults."""

    stream: Mapping[str, float] = field(default_factory=dict)
    learner: Mapping[str, Any] = field(default_factory=dict)


def _smoke(memory: int) -> Setting:
    return Setting(
        stream={"initial_size": 60, "window_size": 25, "holdout_size": 20, "n_windows": 3},
        learner={"backbone": "convnet", "width": 16, "epochs": 8, "memory_size": memory} | TUNING,
    )


def _cpu(
    initial: int, window: int, memory: int, n_windows: int | None = None, sharpen_epochs: int = 25
) -> Setting:
    budgets = TUNING | {"tuning__sharpen_epochs": sharpen_epochs}
    sizes = {"initial_size": initial, "window_size": window, "holdout_size": 100}
    return Setting(
        stream=sizes if n_windows is None else sizes | {"n_windows": n_windows},
        learner={"backbone": "convnet", "epochs": 20, "memory_size": memory} | budgets,
    )


def _own_data(initial: int, window: int, holdout: int, n_windows: int, **learner: int) -> Setting:
    """A row for users' data: upper bounds, since classes may be small, and no backbone, since
    instances may be vectors or texts."""
    sizes = {"max_initial_size": initial, "max_window_size": window, "holdout_size": holdout}
    return Setting(stream=sizes | {"n_windows": n_windows}, learner=learner)


def _gan(epochs: int, update_epochs: int, latent_size: int) -> dict[str, Any]:
    """Narrow networks that learn fast, and few counterfactuals."""
    return {
        "gan__epochs": epochs,
        "gan__update_epochs": update_epochs,
        "gan__latent_size": latent_size,
        "gan__width": 8,
        "gan__learning_rate": 0.002,
        "counterfactuals__batches": 4,
        "counterfactuals__steps": 20,
    }


_PAPER = {"epochs": 20, "memory_size": 2000}
_RESNET = {"backbone": "resnet18"} | _PAPER
_SHARES = {"novel_size": 0.4}  # as large as an initial class
# An even share of 500 images would be 6 in each of 50 windows. With at least 25, a class is used up
# after 12 windows, so fewer vanish at random.
_FIXED = {
    "initial_size": 200,
    "novel_size": 200,
    "min_window_size": 25,
    "max_window_size": 50,
    "vanishing": 0.05,
}

SCALES: dict[str, dict[str, Setting]] = {
    "smoke": {
        # A class of digits has about 144 training images, too few for fixed sizes in every
        # scenario: their even share is 28 a window in three windows, 21 in four, 17 in five.
        # Learners keep their own number of epochs: on so little data they take seconds, and
        # fewer spoil the embedding.
        "digits": Setting(learner={"memory_size": 100}),
        "mnist": _smoke(100),
        "cifar10": _smoke(100),
        "cifar50": _smoke(300),  # ten for each of the classes it starts with
        "cifar100": _smoke(500),
        ANY: _own_data(60, 25, 20, n_windows=3, memory_size=500),
    },
    "cpu": {
        "digits": Setting(learner={"backbone": "convnet", "epochs": 20, "memory_size": 1000}),
        "mnist": _cpu(500, 200, 500, sharpen_epochs=50),
        "cifar10": _cpu(500, 200, 1000, sharpen_epochs=50),
        # A class has 500 training images: 200 + 6 x 50, or 150 + 7 x 50, use up all of them.
        "cifar50": _cpu(200, 50, 1500, n_windows=6),
        "cifar100": _cpu(150, 50, 2000, n_windows=7),
        ANY: _own_data(500, 200, 100, n_windows=10, epochs=20, memory_size=1000, **TUNING),
    },
    "paper": {
        **dict.fromkeys(("digits", "mnist", "cifar10"), Setting(_SHARES, _RESNET)),
        **dict.fromkeys(("cifar50", "cifar100"), Setting(_FIXED, _RESNET)),
        ANY: Setting(_SHARES, _PAPER),
    },
}
# On every row of a scale: learners that make images would take hours with their defaults.
# docs/methods/cfo.md has the curve.
GANS: dict[str, Mapping[str, Any]] = {
    "smoke": _gan(epochs=10, update_epochs=3, latent_size=16),
    "cpu": _gan(epochs=10, update_epochs=1, latent_size=32),
}
# Beside the row of a data set: budgets that are meant for one learner alone.
_PAPER_SMOKE = {"backbone": "convnet", "width": 16, "detector__epochs": 2, "detector__k_max": 4}
_PAPER_CPU = {"detector__epochs": 5}
_PAPER_TEN = _PAPER_CPU | {"detector__k_max": 5}  # of ten classes at most three come at once
OF_LEARNERS: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = {
    "cilf-paper": {
        "smoke": {
            **dict.fromkeys(("digits", "mnist", "cifar10", "cifar50", "cifar100"), _PAPER_SMOKE),
            ANY: {"detector__epochs": 2},
        },
        "cpu": {**dict.fromkeys(("digits", "mnist", "cifar10"), _PAPER_TEN), ANY: _PAPER_CPU},
    }
}
SMALL = ("digits",)  # data sets whose default scale is smoke


def default_scale(data: str) -> str:
    """The default scale of a data set."""
    return "smoke" if data in SMALL else "cpu"


def setting(scale: str, data: str) -> Setting:
    """The setting of a scale for a data set.

    >>> setting("cpu", "mnist").stream["window_size"]
    200
    """
    rows = SCALES[validation.one_of("scale", scale, SCALES)]
    row = rows.get(data, rows[ANY])
    return Setting(row.stream, {**GANS.get(scale, {}), **row.learner})


def budgets(scale: str, data: str, learner: str) -> dict[str, Any]:
    """The budgets of a scale for a data set and the learner of this name.

    >>> budgets("cpu", "mnist", "cilf-paper")["detector__epochs"]
    5
    >>> "detector__epochs" in budgets("cpu", "mnist", "cilf")
    False
    """
    rows = OF_LEARNERS.get(learner, {}).get(scale, {})
    return {**setting(scale, data).learner, **rows.get(data, rows.get(ANY, {}))}
