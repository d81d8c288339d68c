"""What practitioners do with their own data, without a stream: one function for each command.

``fit`` makes a model folder, ``detect`` finds what is new and writes it down for a person to name,
``update`` learns the names, ``predict`` uses the model. Models keep every version
(:class:`ModelFolder`), findings keep the instances (:class:`Findings`).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cilf.workflow.findings import Findings, detect
    from cilf.workflow.learning import (
        Fitted,
        Predictions,
        Updated,
        WouldForget,
        fit,
        predict,
        update,
    )
    from cilf.workflow.models import Event, ModelFolder, load_model
    from cilf.workflow.overview import ModelSummary, describe

__all__ = [
    "Event",
    "Findings",
    "Fitted",
    "ModelFolder",
    "ModelSummary",
    "Predictions",
    "Updated",
    "WouldForget",
    "describe",
    "detect",
    "fit",
    "load_model",
    "predict",
    "update",
]

_HOMES = ("findings", "learning", "models", "overview")


def __getattr__(name: str) -> Any:
    """Import a part when first asked for: torch, which learners need, takes seconds to load."""
    if name not in __all__:
        raise AttributeError(f"module 'cilf.workflow' has no attribute {name!r}")
    homes = (import_module(f"cilf.workflow.{home}") for home in _HOMES)
    return next(getattr(home, name) for home in homes if hasattr(home, name))
