"""Fit or update a learner on several devices, and bring back what it has learned.

Each device has a process in which the same learner learns the same instances, with one training
loop for all of them. The instances go there as files that are mapped into memory, the state comes
and goes as safetensors and JSON, as in a model file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as pack_tensors

from cilf.core.types import Array, Ints
from cilf.learners import plugins
from cilf.nn.rank_processes import run_in_ranks

if TYPE_CHECKING:
    from cilf.learners.base import Learner

FITTED = ("_classes", "_shape", "_features", "_history", "_compared_backbones")  # beside the state
X_FILE, Y_FILE = "X.npy", "y.npy"


class State(NamedTuple):
    """The fitted state of a learner, as it is in files."""

    tensors: bytes
    plain: str

    @classmethod
    def of(cls, learner: Learner) -> State:
        arrays, plain = learner._get_state()
        packed = pack_tensors({name: np.ascontiguousarray(each) for name, each in arrays.items()})
        return cls(packed, json.dumps(plain))

    def set(self, learner: Learner) -> None:
        """Give the state to a learner whose classes and shape are set."""
        learner._set_state(read_tensors(self.tensors), json.loads(self.plain))


@dataclass(frozen=True)
class _Work:
    """One fit or update, as it is sent to processes."""

    learner: type[Learner] | str  # a class of a file has no module that could be imported
    parameters: Mapping[str, Any]
    before: tuple[Mapping[str, Any], State] | None  # None: a fit
    n_classes: int | None
    given: Array | None  # None: they are the instances that it learns
    folder: str

    def make_learner(self) -> Learner:
        made_by = self.learner
        if isinstance(made_by, str):
            made_by = plugins.read_class(made_by, taken=())
        learner = made_by(**self.parameters)
        if self.before is not None:
            attributes, state = self.before
            vars(learner).update(attributes)
            state.set(learner)
        return learner


def learn_in_ranks(
    learner: Learner, given: Array, seen: Array, y: Ints, n_classes: int | None, *, devices: int
) -> State:
    """The state after a fit, or after an update to ``n_classes``, by as many processes."""
    before = None
    if n_classes is not None:
        before = {name: getattr(learner, name) for name in FITTED}, State.of(learner)
    with TemporaryDirectory(prefix="cilf-instances-") as folder:
        np.save(Path(folder) / X_FILE, seen)
        np.save(Path(folder) / Y_FILE, y)
        work = _Work(
            plugins.locate_class(type(learner)) or type(learner), learner.get_params(deep=False),
            before, n_classes, None if given is seen else given, folder,
        )  # fmt: skip
        return run_in_ranks(_learn, work, devices=devices, device=learner.device)


def _learn(work: _Work) -> State:
    """Learn in the process of a rank."""
    learner = work.make_learner()
    seen, y = (np.load(Path(work.folder) / name, mmap_mode="c") for name in (X_FILE, Y_FILE))
    given = seen if work.given is None else work.given
    learner._learn(given, seen, np.array(y), work.n_classes)
    return State.of(learner)
