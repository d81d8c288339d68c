"""From records to a few numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cilf.core import WindowRecord
from cilf.errors import BadInput
from cilf.evaluate import metrics

MEANS = (
    "na", "macro_f", "micro_f", "auroc",
    "known_na", "known_macro_f", "known_micro_f", "known_auroc",
    "open_macro_f", "open_micro_f", "m_new", "f_new",
)  # fmt: skip


def summarize(
    records: Sequence[WindowRecord], joint: Sequence[WindowRecord] | None = None
) -> dict[str, float]:
    """Means over the windows in which a metric is defined, and how the run ended.

    - the metrics of the records by their names;
    - ``k_exact``, ``k_within_one``: share of windows whose number of novel classes was found
      so; ``k_error``, ``k_abs_error``: mean of found minus true, and of its size;
    - ``holdout_first``, ``holdout_new``, ``holdout_all``: hold-out accuracy after the last
      window on the initial classes, on the groups that came later, on all groups;
    - ``forgetting_from_best``, and ``forgetting`` when the records of ``joint`` on the same
      stream are given;
    - totals: ``n_windows``, ``n_queried``, ``n_propagated`` (and ``propagated_right``, the share
      of those labels that are true), ``seconds_detect``, ``seconds_update``.

    What no window defines is NaN.
    """
    means = {name: mean(getattr(record, name) for record in records) for name in MEANS}
    ending = _ending(records) | _forgetting(records, joint)
    return means | _counting(records) | ending | _totals(records)


def mean(values: Iterable[float]) -> float:
    """The mean of those that are defined; NaN if none is.

    >>> mean([1.0, float("nan"), 2.0])
    1.5
    """
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def _counting(records: Sequence[WindowRecord]) -> dict[str, float]:
    errors = [record.n_novel_found - record.n_novel_true for record in records]
    return {
        "k_exact": mean(float(error == 0) for error in errors),
        "k_within_one": mean(float(abs(error) <= 1) for error in errors),
        "k_error": mean(errors),
        "k_abs_error": mean(abs(error) for error in errors),
    }


def _ending(records: Sequence[WindowRecord]) -> dict[str, float]:
    last = records[-1].holdout_accuracy if records else {}
    return {
        "holdout_first": last.get(0, math.nan),
        "holdout_new": mean(value for group, value in last.items() if group > 0),
        "holdout_all": mean(last.values()),
    }


def _forgetting(
    records: Sequence[WindowRecord], joint: Sequence[WindowRecord] | None
) -> dict[str, float]:
    holdout = _measured(records)
    from_best = {"forgetting_from_best": metrics.forgetting_from_best(holdout)}
    if joint is None:
        return from_best
    if [record.window for record in records] != [record.window for record in joint]:
        raise BadInput(
            f"joint has {len(joint)} records for {len(records)} of the learner: give those of the "
            "same windows of the same stream."
        )
    return from_best | {"forgetting": metrics.forgetting(holdout, _measured(joint))}


def forgetting_by_window(
    records: Sequence[WindowRecord], joint: Sequence[WindowRecord]
) -> dict[int, float]:
    """Forgetting after each window; its mean over windows is that of the run."""
    shares = metrics.forgetting_by_update(_measured(records), _measured(joint))
    return {record.window: share for record, share in zip(records, shares, strict=True)}


def _measured(records: Sequence[WindowRecord]) -> list[dict[int, float]]:
    """The hold-out accuracies that are defined."""
    return [
        {group: value for group, value in record.holdout_accuracy.items() if not math.isnan(value)}
        for record in records
    ]


def _totals(records: Sequence[WindowRecord]) -> dict[str, float]:
    return {
        "n_windows": len(records),
        "n_queried": sum(record.n_queried for record in records),
        **_propagated(records),
        "seconds_detect": sum(record.seconds_detect for record in records),
        "seconds_update": sum(record.seconds_update for record in records),
    }


def _propagated(records: Sequence[WindowRecord]) -> dict[str, float]:
    some = [record for record in records if record.n_propagated]
    total = sum(record.n_propagated for record in some)
    right = sum(record.n_propagated * record.propagated_right for record in some)
    return {"n_propagated": total, "propagated_right": right / total if total else math.nan}
