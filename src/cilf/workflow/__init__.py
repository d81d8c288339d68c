"""What practitioners do with their own data, without a stream: one function for each command.

``fit`` makes a model folder, ``detect`` finds what is new and writes it down for a person to name,
``update`` learns the names, ``predict`` uses the model. Models keep every version
(:class:`ModelFolder`), findings keep the instances (:class:`Findings`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cilf.workflow.findings import Findings, detect
    from cilf.workflow.labels import read_labels
    from cilf.workflow.model_fit import FitResult, fit
    from cilf.workflow.model_update import UpdateResult, WouldForget, update
    from cilf.workflow.models import Event, ModelFolder, load_model
    from cilf.workflow.overview import ModelSummary, describe
    from cilf.workflow.prediction import Predictions, predict

__all__ = [
    "Event",
    "Findings",
    "FitResult",
    "ModelFolder",
    "ModelSummary",
    "Predictions",
    "UpdateResult",
    "WouldForget",
    "describe",
    "detect",
    "fit",
    "load_model",
    "predict",
    "read_labels",
    "update",
]

_HOMES = ("findings", "labels", "model_fit", "model_update", "models", "overview", "prediction")


def __getattr__(name: str) -> Any:
    """Import a part when first asked for: torch, which learners need, takes seconds to load."""
    if name not in __all__:
        raise AttributeError(f"module 'cilf.workflow' has no attribute {name!r}")
    homes = (import_module(f"cilf.workflow.{home}") for home in _HOMES)
    return next(getattr(home, name) for home in homes if hasattr(home, name))
