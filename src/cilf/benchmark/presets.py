"""Presets: the paper's protocols by name, with class counts, sizes and budgets.

A preset joins numbers that have their home elsewhere: the class counts of
``cilf.stream.plan.paper_protocol``, the sizes and budgets of ``cilf.benchmark.scales``, and the
defaults of the stream functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cilf.benchmark.scales import SCALES, setting
from cilf.core import validation
from cilf.data.named import ORIGINALS
from cilf.stream import Stream, multiple_novel, single_novel
from cilf.stream.plan import paper_protocol

SCENARIOS: dict[str, Callable[..., Stream]] = {"single": single_novel, "multiple": multiple_novel}
N_CLASSES = {"digits": 10} | {name: known.n_classes for name, known in ORIGINALS.items()}
OWN = "own"  # stands for a user's data in the name of a preset


@dataclass(frozen=True)
class Preset:
    """A protocol with all its numbers.

    Attributes:
        data: The name of a data set with presets, or "own".
        scenario: "single" or "multiple".
        scale: "smoke", "cpu" or "paper".
        stream: All arguments of the stream but its data set and seed.
        learner: Budgets, for the learners that have such parameters.
    """

    data: str
    scenario: str
    scale: str
    stream: Mapping[str, Any]
    learner: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.data}-{self.scenario}-{self.scale}"


def preset(data: str, scenario: str, scale: str) -> Preset:
    """The protocol of a data set, a scenario and a scale.

    The numbers of classes of a user's own data are None: the stream decides them.

    >>> cifar = preset("cifar100", "multiple", "cpu")
    >>> cifar.name, cifar.stream["n_initial"], cifar.stream["max_novel"]
    ('cifar100-multiple-cpu', 50, 10)
    """
    sizes = setting(scale, data)
    classes = _class_counts(scenario, N_CLASSES.get(data))
    stream = stream_defaults(scenario) | classes | dict(sizes.stream)
    return Preset(data if data in N_CLASSES else OWN, scenario, scale, stream, sizes.learner)


def stream_defaults(scenario: str) -> dict[str, Any]:
    """The arguments of a scenario's stream and their defaults, but for data set and seed."""
    make = SCENARIOS[validation.one_of("scenario", scenario, SCENARIOS)]
    return {
        name: parameter.default
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def _class_counts(scenario: str, n_classes: int | None) -> dict[str, int]:
    if n_classes is None:
        return {}
    protocol = paper_protocol(n_classes)
    if scenario == "single":
        return {"n_initial": protocol.single_initial}
    return {"n_initial": protocol.multiple_initial, "max_novel": protocol.max_novel}


PRESETS: dict[str, Preset] = {
    made.name: made
    for made in (
        preset(data, scenario, scale)
        for data in N_CLASSES
        for scenario in SCENARIOS
        for scale in SCALES
    )
}
