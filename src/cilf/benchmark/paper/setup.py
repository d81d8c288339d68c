"""Learners, data sets and seeds of the paper's experiments, by scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cilf.benchmark.config import data_file_name
from cilf.benchmark.grid import require_data
from cilf.core import validation
from cilf.errors import BadConfig
from cilf.learners import learner_class
from cilf.learners.plugins import is_plugin

T = TypeVar("T")

DETECTORS = (
    "iforest", "one-svm", "lacu-svm", "senc-mas", "odin-cnn", "cfo", "cpe", "dtc", "cilf",
)  # fmt: skip
UPDATERS = ("dnn-base", "dnn-l2", "dnn-ewc", "imm-mean", "imm-mode", "den")
JOINT = "joint"
SYSTEMS = (*DETECTORS[:-1], *UPDATERS, "cilf")
DATA = ("mnist", "cifar10", "cifar50", "cifar100")
SEEDS = {"smoke": (0,), "cpu": (0, 1, 2), "paper": (0, 1, 2, 3, 4)}


@dataclass(frozen=True)
class Setup:
    """The options of ``cilf paper``.

    Attributes:
        scale: "smoke", "cpu" or "paper".
        data: data sets that replace the paper's. If None, "smoke" takes the embedded digits.
        seeds: seeds of the repetitions. If None, the scale decides them.
        learners: those of the paper's learners that are run. If None, all of them are.
        own: further learners, as ``file.py:Class``. Each is one more row of every comparison.
    """

    scale: str
    data: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    learners: tuple[str, ...] | None = None
    own: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        scale: str,
        data: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
        learners: Sequence[str] | None = None,
    ) -> Setup:
        """Make a setup from options: names select learners of the paper, files add learners.

        >>> Setup.of(scale="smoke", learners=["cilf", "cpe"]).learners_for(DETECTORS)
        ('cpe', 'cilf')
        """
        validation.one_of("scale", scale, SEEDS)
        own = _drop_repeated(name for name in learners or () if is_plugin(name))
        named = _drop_repeated(name for name in learners or () if name not in own)
        for name in named:
            validation.one_of("learner", name, [*SYSTEMS, JOINT])
        for source in data or ():
            require_data(source)
        _require_distinct("learner", own, lambda name: learner_class(name).name)
        _require_distinct("data", _drop_repeated(data or ()), data_file_name)
        return cls(
            scale,
            _drop_repeated(data or ()) or None,
            _drop_repeated(seeds or ()) or None,
            named or None,
            own,
        )

    def data_for(self, paper: Sequence[str]) -> tuple[str, ...]:
        """Return the data sets of an item for which the paper takes these."""
        if self.data is not None:
            return self.data
        return ("digits",) if self.scale == "smoke" else tuple(paper)

    def paper_learners_for(self, paper: Sequence[str]) -> tuple[str, ...]:
        """Return those of the paper's learners that are run."""
        return tuple(n for n in paper if self.learners is None or n in self.learners)

    def learners_for(self, paper: Sequence[str]) -> tuple[str, ...]:
        """Return those of the paper's learners that are run, and the user's own."""
        return (*self.paper_learners_for(paper), *self.own)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        return SEEDS[self.scale] if self.seeds is None else self.seeds


def _drop_repeated(values: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))


def _require_distinct(what: str, values: Sequence[str], find_name: Callable[[str], str]) -> None:
    """Refuse two values of one name: one would replace the other in tables and files."""
    seen: dict[str, str] = {}
    for value in values if len(values) > 1 else ():
        name = find_name(value)
        if name in seen:
            raise BadConfig(
                f"{what} is {seen[name]!r} and {value!r}, both called {name!r}: rename one."
            )
        seen[name] = value
