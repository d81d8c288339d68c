"""Evaluation: what a learner makes of a stream, one record for each window.

``run_stream`` is a generator of records: it shows the learner what a user of it would have (the
instances, and the labels that were asked for) and keeps the truth for the scores of ``metrics``.
``summarize`` condenses the records; a ``RunFolder`` keeps them, and what drawings need, on disk;
``read_records`` opens those of many runs as one pandas table.
"""

from cilf.evaluate import metrics
from cilf.evaluate.checkpoint import Journal
from cilf.evaluate.dataframe import read_records
from cilf.evaluate.metric_table import METRICS
from cilf.evaluate.records import Drawing, RunFolder, find_runs
from cilf.evaluate.run import Step, run_stream, steps
from cilf.evaluate.summary import summarize
from cilf.query.query_policy import Asking

__all__ = [
    "METRICS",
    "Asking",
    "Drawing",
    "Journal",
    "RunFolder",
    "Step",
    "find_runs",
    "metrics",
    "read_records",
    "run_stream",
    "steps",
    "summarize",
]
