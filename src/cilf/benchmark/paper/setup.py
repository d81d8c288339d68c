"""What the paper's experiments run: learners, data sets, seeds, by scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cilf.benchmark.config import data_file_name
from cilf.benchmark.grid import require_data
from cilf.core import validation
from cilf.errors import BadConfig
from cilf.learners import learner_class
from cilf.learners.plugins import is_own

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
    """One way to do the paper's experiments.

    Attributes:
        scale: "smoke", "cpu" or "paper".
        data: data sets in place of the paper's; at "smoke" the embedded digits unless told.
        seeds: repetitions; those of the scale unless told.
        learners: the only ones of each item to run; all if None.
        own: further learners, as ``file.py:Class``: each is one more row of every comparison.
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
        """As the command line gives it: learners of the paper choose, files add.

        >>> Setup.of(scale="smoke", learners=["cilf", "cpe"]).learners_for(DETECTORS)
        ('cpe', 'cilf')
        """
        validation.one_of("scale", scale, SEEDS)
        own = _once(name for name in learners or () if is_own(name))
        named = _once(name for name in learners or () if name not in own)
        for name in named:
            validation.one_of("learner", name, [*SYSTEMS, JOINT])
        for source in data or ():
            require_data(source)
        _require_told_apart("learner", own, lambda name: learner_class(name).name)
        _require_told_apart("data", _once(data or ()), data_file_name)
        return cls(scale, _once(data or ()) or None, _once(seeds or ()) or None, named or None, own)

    def data_for(self, paper: Sequence[str]) -> tuple[str, ...]:
        """The data sets of an item for which the paper takes these."""
        if self.data is not None:
            return self.data
        return ("digits",) if self.scale == "smoke" else tuple(paper)

    def papers_for(self, paper: Sequence[str]) -> tuple[str, ...]:
        """Those of the paper's learners that are to be run."""
        return tuple(n for n in paper if self.learners is None or n in self.learners)

    def learners_for(self, paper: Sequence[str]) -> tuple[str, ...]:
        """These, and one's own."""
        return (*self.papers_for(paper), *self.own)

    @property
    def repetitions(self) -> tuple[int, ...]:
        return SEEDS[self.scale] if self.seeds is None else self.seeds


def _once(values: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))


def _require_told_apart(what: str, given: Sequence[str], called: Callable[[str], str]) -> None:
    """Rows and files go by these names: one would replace the other."""
    seen: dict[str, str] = {}
    for value in given if len(given) > 1 else ():
        name = called(value)
        if name in seen:
            raise BadConfig(
                f"{what} is {seen[name]!r} and {value!r}, both called {name!r}: rename one."
            )
        seen[name] = value
