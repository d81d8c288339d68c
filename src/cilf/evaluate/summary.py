"""The summary of a run: every metric of the table ``METRICS``, and totals."""

from __future__ import annotations

import math

from cilf.errors import BadInput
from cilf.evaluate import metrics
from cilf.evaluate.metric_table import METRICS, Metric, Records, measured_holdout
from cilf.evaluate.metrics import mean


def summarize(records: Records, joint: Records | None = None) -> dict[str, float]:
    """Summarize the records of a run.

    Parameters
    ----------
    records : sequence of WindowRecord
        Records of the run, one for each window.
    joint : sequence of WindowRecord or None, default=None
        Records of the learner ``joint`` on the same stream. They add ``forgetting``.

    Returns
    -------
    dict
        Every metric of :data:`~cilf.evaluate.METRICS`, as the mean over the windows in which it is
        defined or as it stands after the last window, and the totals ``n_windows``, ``n_exact``
        (windows whose number of novel classes was found exactly), ``n_queried``, ``n_propagated``,
        ``propagated_right``, ``seconds_detect``, ``seconds_update`` and ``seconds``. A value that
        no window defines is NaN.
    """
    if joint is not None:
        _require_same_windows(records, joint)
    values = {name: _value(name, metric, records, joint) for name, metric in METRICS.items()}
    return {name: value for name, value in values.items() if value is not None} | _totals(records)


def _value(name: str, metric: Metric, records: Records, joint: Records | None) -> float | None:
    if metric.of_run is not None:
        return metric.of_run(records)
    if metric.against_joint is not None:
        return None if joint is None else metric.against_joint(records, joint)
    return mean(record.metric(name) for record in records)


def _require_same_windows(records: Records, joint: Records) -> None:
    if [record.window for record in records] != [record.window for record in joint]:
        raise BadInput(
            f"joint has {len(joint)} records for {len(records)} of the learner: give those of the "
            "same windows of the same stream."
        )


def forgetting_by_window(records: Records, joint: Records) -> dict[int, float]:
    """Forgetting after each window; its mean over windows is that of the run."""
    shares = metrics.forgetting_by_update(measured_holdout(records), measured_holdout(joint))
    return {record.window: share for record, share in zip(records, shares, strict=True)}


def _totals(records: Records) -> dict[str, float]:
    detect = sum(record.seconds_detect for record in records)
    update = sum(record.seconds_update for record in records)
    return {
        "n_windows": len(records),
        "n_exact": sum(record.n_novel_found == record.n_novel_planned for record in records),
        "n_queried": sum(record.n_queried for record in records),
        **_summarize_propagation(records),
        "seconds_detect": detect,
        "seconds_update": update,
        "seconds": detect + update,
    }


def _summarize_propagation(records: Records) -> dict[str, float]:
    some = [record for record in records if record.n_propagated]
    total = sum(record.n_propagated for record in some)
    right = sum(record.n_propagated * record.propagated_right for record in some)
    return {"n_propagated": total, "propagated_right": right / total if total else math.nan}
