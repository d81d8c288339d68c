"""What the paper's experiments run: learners, data sets, seeds, by scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cilf.core import validation
from cilf.learners.own import is_own

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

        >>> Setup.of(scale="smoke", learners=["cilf", "mine.py:Mine"]).learners_for(DETECTORS)
        ('cilf', 'mine.py:Mine')
        """
        validation.one_of("scale", scale, SEEDS)
        own = tuple(name for name in learners or () if is_own(name))
        named = tuple(name for name in learners or () if name not in own)
        for name in named:
            validation.one_of("learner", name, [*SYSTEMS, JOINT])
        return cls(
            scale,
            None if data is None else tuple(data),
            None if seeds is None else tuple(seeds),
            named or None,
            own,
        )

    def data_for(self, paper: Sequence[str]) -> tuple[str, ...]:
        """The data sets of an item for which the paper takes these."""
        if self.data is not None:
            return self.data
        return ("digits",) if self.scale == "smoke" else tuple(paper)

    def learners_for(self, paper: Sequence[str]) -> tuple[str, ...]:
        chosen = [name for name in paper if self.learners is None or name in self.learners]
        return (*chosen, *self.own)

    @property
    def repetitions(self) -> tuple[int, ...]:
        return SEEDS[self.scale] if self.seeds is None else self.seeds
