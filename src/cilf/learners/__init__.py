"""Learners: each keeps the contract of :class:`Learner` and has a file or a folder of its own.

``LEARNERS`` is the only table of names: the module and the class of each. A module is imported when
its learner is used, because torch takes a second to load. ``make`` builds a learner by name,
``load`` reads one from a folder. ``path/to/file.py:Class`` names a learner in a file outside this
package.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cilf.core import validation
from cilf.core.lazy import lazy_attributes
from cilf.errors import BadInput, CilfError
from cilf.learners import persistence, plugins
from cilf.learners.learner_table import LearnerTable

if TYPE_CHECKING:
    from cilf.learners.base import Learner
    from cilf.learners.cfo import CFO
    from cilf.learners.cilf import CILF, CILFPaper, Joint
    from cilf.learners.cpe import CPE
    from cilf.learners.den import DEN
    from cilf.learners.dnn_base import DNNBase
    from cilf.learners.dnn_ewc import DNNEWC
    from cilf.learners.dnn_l2 import DNNL2
    from cilf.learners.dtc import DTC
    from cilf.learners.editable import EditableLearner, require_editable
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
    "EditableLearner",
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
    "require_editable",
    "require_learner",
]

LEARNERS = LearnerTable(
    __name__,
    {
        "cilf": "cilf:CILF",
        "cilf-paper": "cilf:CILFPaper",
        "iforest": "iforest:IForest",
        "one-svm": "one_svm:OneSVM",
        "lacu-svm": "lacu_svm:LACUSVM",
        "senc-mas": "senc_mas:SENCMaS",
        "odin-cnn": "odin:ODIN",
        "cfo": "cfo:CFO",
        "cpe": "cpe:CPE",
        "dtc": "dtc:DTC",
        "dnn-base": "dnn_base:DNNBase",
        "dnn-l2": "dnn_l2:DNNL2",
        "dnn-ewc": "dnn_ewc:DNNEWC",
        "imm-mean": "imm:IMMMean",
        "imm-mode": "imm:IMMMode",
        "den": "den:DEN",
        "joint": "cilf:Joint",
        "never": "never:Never",
    },
)

_HOMES = {"Learner": "base", "EditableLearner": "editable", "require_editable": "editable"}
__getattr__ = lazy_attributes(__name__, {**_HOMES, **LEARNERS.homes})


def learner_class(name: str) -> type[Learner]:
    """The class of a name: a key of ``LEARNERS``, or ``path/to/file.py:Class``.

    >>> learner_class("iforest").__name__
    'IForest'
    """
    require_learner(name)
    if plugins.is_plugin(name):
        return plugins.read_class(name, taken=LEARNERS)
    return LEARNERS[name]


def require_learner(name: str) -> None:
    """Refuse an unknown name of a learner; nothing is imported for that."""
    if not plugins.is_plugin(name):
        validation.one_of("learner", name, LEARNERS)


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


# Errors of Python when a description or an array is not what a learner has saved.
_MISFITS = (
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
)


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
    if learner is not None:  # an error in somebody's own class is theirs to see in full
        return made_by._restore(description, arrays, parameters)
    try:
        restored = made_by._restore(description, arrays, parameters)
        restored._check_parameters()
        return restored
    except CilfError:  # such as a package that is missing
        raise
    except _MISFITS as error:
        raise persistence.damage_error(
            Path(folder), f"its description and arrays make no learner {made_by.name!r}"
        ) from error


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
