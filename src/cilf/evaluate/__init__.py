"""Evaluation of a learner on a stream, with one record for each window.

``run_stream`` is a generator of records. It shows the learner what its user would have, the
instances and the labels that were queried, and keeps the truth for the ``METRICS``. ``summarize``
condenses the records. A ``RunFolder`` keeps them on disk, with a ``Snapshot`` of each window for
plots. ``read_records`` reads the records of many runs as one pandas table.
"""

from typing import TYPE_CHECKING

from cilf.core.deprecation import old_attributes
from cilf.core.lazy import lazy_attributes

if TYPE_CHECKING:
    from cilf.evaluate import metrics
    from cilf.evaluate.checkpoint import Checkpoint
    from cilf.evaluate.dataframe import read_records
    from cilf.evaluate.metric_table import METRICS
    from cilf.evaluate.records import RunFolder, Snapshot, find_runs
    from cilf.evaluate.run import Step, run_stream, steps
    from cilf.evaluate.summary import summarize

__all__ = [
    "METRICS",
    "Checkpoint",
    "RunFolder",
    "Snapshot",
    "Step",
    "find_runs",
    "metrics",
    "read_records",
    "run_stream",
    "steps",
    "summarize",
]

_find = lazy_attributes(
    __name__,
    {
        "METRICS": "metric_table",
        "Checkpoint": "checkpoint",
        "RunFolder": "records",
        "Snapshot": "records",
        "Step": "run",
        "find_runs": "records",
        "metrics": "",
        "read_records": "dataframe",
        "run_stream": "run",
        "steps": "run",
        "summarize": "summary",
    },
)
__getattr__ = old_attributes(__name__, _find)
