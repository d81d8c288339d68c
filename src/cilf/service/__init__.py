"""What practitioners do with their own data, without a stream: one function for each command.

``fit`` makes a model folder, ``detect`` finds what is new and writes it down for a person to name,
``update`` learns the names, ``predict`` uses the model. Models keep every version
(:class:`ModelFolder`), findings keep the instances (:class:`Findings`).
"""

from cilf.service.findings import Findings, detect
from cilf.service.learning import (
    Fitted,
    Predictions,
    Updated,
    WouldForget,
    fit,
    predict,
    update,
)
from cilf.service.models import Event, ModelFolder, load_model
from cilf.service.overview import ModelSummary, describe

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
