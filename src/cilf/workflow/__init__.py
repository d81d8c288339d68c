"""The practitioner's loop on files: fit, detect, update, predict, and the versions of a model.

``fit`` makes a model folder. ``detect`` finds what is novel in new data and writes findings, in
which a person names clusters. ``update`` learns these names. ``predict`` uses the model.
``rename``, ``merge`` and ``forget`` edit its classes, ``rebuild`` makes it anew from its labels. A
model keeps every version (:class:`ModelFolder`), findings keep the instances (:class:`Findings`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cilf.workflow.class_edits import forget, merge, rename
    from cilf.workflow.detection import detect
    from cilf.workflow.findings import Findings
    from cilf.workflow.labels import read_labels
    from cilf.workflow.model_fit import FitResult, fit
    from cilf.workflow.model_rebuild import RebuildResult, rebuild
    from cilf.workflow.model_summary import ModelSummary, describe
    from cilf.workflow.model_update import UpdateResult, WouldForget, update
    from cilf.workflow.prediction import Predictions, predict
    from cilf.workflow.versions import Event, ModelFolder, load_model

__all__ = [
    "Event",
    "Findings",
    "FitResult",
    "ModelFolder",
    "ModelSummary",
    "Predictions",
    "RebuildResult",
    "UpdateResult",
    "WouldForget",
    "describe",
    "detect",
    "fit",
    "forget",
    "load_model",
    "merge",
    "predict",
    "read_labels",
    "rebuild",
    "rename",
    "update",
]

_HOMES = (
    "detection", "findings", "labels", "model_fit", "model_summary", "model_update", "prediction",
    "versions", "class_edits", "model_rebuild",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a module on first use, because torch takes seconds to load."""
    if name not in __all__:
        raise AttributeError(f"module 'cilf.workflow' has no attribute {name!r}")
    homes = (import_module(f"cilf.workflow.{home}") for home in _HOMES)
    return next(getattr(home, name) for home in homes if hasattr(home, name))
