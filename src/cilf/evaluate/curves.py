"""A record as points of curves, for programs that plot them."""

from __future__ import annotations

import math

from cilf.core import WindowRecord
from cilf.evaluate.metric_table import METRICS

COUNTS = (
    "n_known", "n_novel_true", "n_novel_planned", "n_novel_found", "n_queried", "n_propagated",
)  # fmt: skip
SECONDS = ("seconds_detect", "seconds_update")


def list_curves(record: WindowRecord) -> dict[str, float]:
    """The names of the curves of a record, and the values that are defined."""
    values = {f"scores/{name}": record.metric(name) for name, m in METRICS.items() if m.of_window}
    values |= {f"counts/{name}": getattr(record, name) for name in COUNTS}
    values |= {f"seconds/{name}": getattr(record, name) for name in SECONDS}
    values |= {f"holdout/group_{group}": value for group, value in record.holdout_accuracy.items()}
    return {
        name: value for name, value in values.items() if value is not None and not math.isnan(value)
    }
