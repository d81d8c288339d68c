"""The practitioner's loop on files: fit, detect, update, predict, and the versions of a model.

``fit`` makes a model folder. ``detect`` finds what is novel in new data and writes findings, in
which a person names clusters, which ``split_cluster`` and ``merge_clusters`` change. ``update``
learns these names. ``export_findings`` takes them to other programs, and ``read_labels`` reads
what these wrote. ``predict`` uses the model. ``rename``, ``merge`` and ``forget`` edit its
classes, ``rebuild`` makes it anew from its labels. A model keeps every version
(:class:`ModelFolder`), findings keep the instances (:class:`Findings`).
"""

from typing import TYPE_CHECKING

from cilf.core.lazy import lazy_attributes

if TYPE_CHECKING:
    from cilf.workflow.class_edits import forget, merge, rename
    from cilf.workflow.cluster_edit import merge_clusters, split_cluster
    from cilf.workflow.detection import detect
    from cilf.workflow.findings import Findings
    from cilf.workflow.findings_export import ExportedFindings, export_findings
    from cilf.workflow.labels import read_labels
    from cilf.workflow.model_export import Exported, export
    from cilf.workflow.model_fit import FitResult, fit
    from cilf.workflow.model_log import Event
    from cilf.workflow.model_rebuild import RebuildResult, rebuild
    from cilf.workflow.model_summary import ModelSummary, describe
    from cilf.workflow.model_update import UpdateResult, WouldForget, update
    from cilf.workflow.prediction import Predictions, predict, require_free
    from cilf.workflow.row_engines import EngineChoice
    from cilf.workflow.versions import ModelFolder, Verification, load_model

__all__ = [
    "EngineChoice",
    "Event",
    "Exported",
    "ExportedFindings",
    "Findings",
    "FitResult",
    "ModelFolder",
    "ModelSummary",
    "Predictions",
    "RebuildResult",
    "UpdateResult",
    "Verification",
    "WouldForget",
    "describe",
    "detect",
    "export",
    "export_findings",
    "fit",
    "forget",
    "load_model",
    "merge",
    "merge_clusters",
    "predict",
    "read_labels",
    "rebuild",
    "rename",
    "require_free",
    "split_cluster",
    "update",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        "EngineChoice": "row_engines",
        "Event": "model_log",
        "Exported": "model_export",
        "ExportedFindings": "findings_export",
        "Findings": "findings",
        "FitResult": "model_fit",
        "ModelFolder": "versions",
        "ModelSummary": "model_summary",
        "Predictions": "prediction",
        "RebuildResult": "model_rebuild",
        "UpdateResult": "model_update",
        "Verification": "versions",
        "WouldForget": "model_update",
        "describe": "model_summary",
        "detect": "detection",
        "export": "model_export",
        "export_findings": "findings_export",
        "fit": "model_fit",
        "forget": "class_edits",
        "load_model": "versions",
        "merge": "class_edits",
        "merge_clusters": "cluster_edit",
        "predict": "prediction",
        "read_labels": "labels",
        "rebuild": "model_rebuild",
        "rename": "class_edits",
        "require_free": "prediction",
        "split_cluster": "cluster_edit",
        "update": "model_update",
    },
)
