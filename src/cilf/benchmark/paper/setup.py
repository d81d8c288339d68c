"""Learners, data sets and seeds of the paper's experiments, by scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from cilf.benchmark.config import data_file_name
from cilf.benchmark.grid import require_data
from cilf.core import validation
from cilf.errors import BadConfig
from cilf.learners import learner_class
from cilf.learners.plugins import is_plugin

T = TypeVar("T")

RIVALS = ("iforest", "one-svm", "lacu-svm", "senc-mas", "odin-cnn", "cfo", "cpe", "dtc")
UPDATERS = ("dnn-base", "dnn-l2", "dnn-ewc", "imm-mean", "imm-mode", "den")
OURS = ("cilf-paper", "cilf")
FLOOR, CEILING = "never", "joint"
DETECTORS = (*RIVALS, *OURS)
SYSTEMS = (*RIVALS, *UPDATERS, *OURS)
DATA = ("mnist", "cifar10", "cifar50", "cifar100")
# Results are reported on seeds from 1000 on. Rules and defaults are set on seeds below.
SEEDS = {"smoke": (1000,), "cpu": (1000, 1001, 1002), "paper": (1000, 1001, 1002, 1003, 1004)}
SHARED, REPLAY = "shared space", "replay"  # variants of a learner
# The paper lets detectors that only tell known from novel cluster all instances of a window.
CLUSTER_ALL = ("iforest", "odin-cnn", "cfo")


class Row(NamedTuple):
    """A row of a comparison: a learner, and the parameters that it is run with.

    >>> Row("odin-cnn", SHARED).name
    'odin-cnn, shared space'
    """

    learner: str
    variant: str = ""  # "" for the learner as it was published
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The name of the learner, which may be a class in a file, and of its variant."""
        return ", ".join(filter(None, (learner_class(self.learner).name, self.variant)))


def as_published(learner: str) -> Row:
    """The row of a learner as the paper compares it."""
    changes = (("clustering__cluster_all", True),) if learner in CLUSTER_ALL else ()
    return Row(learner, "", changes)


def with_shared_space(learner: str) -> Row:
    """The row of a detector that clusters in CILF's space, with CILF's counting rule."""
    part = "" if learner == "dtc" else "clustering__"
    return Row(learner, SHARED, ((f"{part}space", "shared"),))


def with_replay(learner: str) -> Row:
    """The row of an update method with the memory that the others have."""
    return Row(learner, REPLAY, (("replay", True),))


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
            validation.one_of("learner", name, [*SYSTEMS, FLOOR, CEILING])
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

    def rows_for(self, paper: Sequence[str]) -> list[Row]:
        """Return a row for each of these learners, as published, and for the user's own."""
        return [as_published(name) for name in self.learners_for(paper)]

    def detection_rows(self) -> list[Row]:
        """Return the rows of a table of detectors: each rival twice, and the floor."""
        shared = [with_shared_space(name) for name in self.paper_learners_for(RIVALS)]
        return [*self.rows_for(DETECTORS), *shared, Row(FLOOR)]

    def update_rows(self) -> list[Row]:
        """Return the rows of a table of updates: each update method twice, and the floor."""
        replayed = [with_replay(name) for name in self.paper_learners_for(UPDATERS)]
        return [*self.rows_for(SYSTEMS), *replayed, Row(FLOOR)]

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
