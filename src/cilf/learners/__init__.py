"""Learners: each keeps the contract of :class:`Learner` and has a file or a folder of its own.

``LEARNERS`` is the only table of names. ``make`` builds a learner by name, ``load`` reads one from
a folder. ``path/to/file.py:Class`` names a learner in a file outside this package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cilf.core import validation
from cilf.errors import BadInput
from cilf.learners import persistence, plugins
from cilf.learners.base import Learner
from cilf.learners.cfo import CFO
from cilf.learners.cilf import CILF, CILFPaper, Joint
from cilf.learners.cpe import CPE
from cilf.learners.den import DEN
from cilf.learners.dnn_base import DNNBase
from cilf.learners.dnn_ewc import DNNEWC
from cilf.learners.dnn_l2 import DNNL2
from cilf.learners.dtc import DTC
from cilf.learners.iforest import IForest
from cilf.learners.imm import IMMMean, IMMMode
from cilf.learners.lacu_svm import LACUSVM
from cilf.learners.never import Never
from cilf.learners.odin import ODIN
from cilf.learners.one_svm import OneSVM
from cilf.learners.senc_mas import SENCMaS

__all__ = [
    "CFO",
    "CILF",
    "CPE",
    "DEN",
    "DNNEWC",
    "DNNL2",
    "DTC",
    "LACUSVM",
    "LEARNERS",
    "ODIN",
    "CILFPaper",
    "DNNBase",
    "IForest",
    "IMMMean",
    "IMMMode",
    "Joint",
    "Learner",
    "Never",
    "OneSVM",
    "SENCMaS",
    "learner_class",
    "load",
    "make",
]

LEARNERS: dict[str, type[Learner]] = {
    learner.name: learner
    for learner in (
        CILF,
        CILFPaper,
        IForest,
        OneSVM,
        LACUSVM,
        SENCMaS,
        ODIN,
        CFO,
        CPE,
        DTC,
        DNNBase,
        DNNL2,
        DNNEWC,
        IMMMean,
        IMMMode,
        DEN,
        Joint,
        Never,
    )
}


def learner_class(name: str) -> type[Learner]:
    """The class of a name: a key of ``LEARNERS``, or ``path/to/file.py:Class``.

    >>> learner_class("iforest").__name__
    'IForest'
    """
    if plugins.is_plugin(name):
        return plugins.read_class(name, taken=LEARNERS)
    return LEARNERS[validation.one_of("learner", name, LEARNERS)]


def make(name: str, **parameters: Any) -> Learner:
    """A learner by name, with these parameters changed from their defaults.

    >>> make("cilf", sed=1)
    Traceback (most recent call last):
    ...
    cilf.errors.BadConfig: unknown parameter of 'cilf' 'sed': did you mean 'seed'? Known: ...
    """
    learner = learner_class(name)().set_params(**parameters)
    learner._check_parameters()
    return learner


def load(
    folder: str | Path, *, learner: type[Learner] | str | None = None, **parameters: Any
) -> Learner:
    """The learner that ``save`` wrote to this folder; it continues exactly as that one would.

    Parameters
    ----------
    folder : str or Path
        Folder of a model. If it holds versions, as ``cilf fit`` writes them, the current one is
        read.
    learner : type or str, optional
        Class of a model that is not one of ours, or ``path/to/file.py:Class``. A model never says
        which file to run.
    **parameters : object
        Parameters that replace stored ones. They are needed where this machine cannot serve the
        stored value (``device``) or a file cannot hold it (a function as ``backbone``).
    """
    description, arrays = persistence.read(Path(folder))
    if learner is None and description["learner"] not in LEARNERS:
        raise BadInput(
            f"the model in {folder} was made by learner {description['learner']!r}, which is not "
            f"one of ours: pass its class, load(folder, learner=...), or {plugins.FORM!r}."
        )
    for name, value in (description["parameters"] | parameters).items():
        persistence.require_function(name, value, Path(folder))
    made_by = _class_for(description["learner"], learner, folder)
    return made_by._restore(description, arrays, parameters)


def _class_for(stored: str, given: type[Learner] | str | None, folder: str | Path) -> type[Learner]:
    if given is None:
        return LEARNERS[stored]
    made_by = learner_class(given) if isinstance(given, str) else given
    if made_by.name != stored:
        raise BadInput(
            f"the model in {folder} was made by learner {stored!r}, but learner is "
            f"{made_by.name!r}: pass the class that made it."
        )
    return made_by
