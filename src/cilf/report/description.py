"""A run and its data in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from cilf.query.budget import SELF
from cilf.query.query_policy import GIVEN
from cilf.report.run import Run
from cilf.report.tables import MISSING


def describe_run(run: Run, summary: Mapping[str, float]) -> str:
    """Describe what happened, for a reader who does not know the paper."""
    if not run.records and run.failure:
        return f"The run failed before its first window: {run.failure}"
    if not run.records:
        return "The run has not finished its first window yet, so there is nothing to score."
    n_windows = len(run.records)
    n_novel = sum(len(window.novel) for window in run.planned[:n_windows])
    start = (
        f"{run.about.get('learner', 'The learner')} started from "
        f"{_count(len(run.initial), 'labelled class', 'labelled classes')}. "
        f"{_count(n_windows, 'window', 'windows')} of unlabelled data followed, with "
        f"{_count(n_novel, 'novel class', 'novel classes')}."
    )
    failed = f"Then the run failed: {run.failure}" if run.failure else ""
    parts = [start, _describe_counts(run, summary), _describe_queries(run, summary)]
    return " ".join([*parts, _describe_holdout(summary), failed]).strip()


def describe_data(dataset: Mapping[str, Any]) -> str:
    """Describe how many rows there were; "" if the run does not say.

    >>> describe_data({"train_rows": 25000, "test_rows": 10000, "part_of_rows": [50000, 10000]})
    '25,000 training and 10,000 test rows, a part of the original 50,000 and 10,000'
    """
    if not dataset:
        return ""
    rows = f"{dataset['train_rows']:,} training and {dataset['test_rows']:,} test rows"
    if not dataset.get("part_of_rows"):
        return rows
    train, test = dataset["part_of_rows"]
    return f"{rows}, a part of the original {train:,} and {test:,}"


def list_data_facts(dataset: Mapping[str, Any]) -> dict[str, str]:
    """List what a report says of the data, by name.

    >>> list_data_facts({"train_rows": 9, "test_rows": 3, "n_classes": 2, "instance_shape": [8]})
    {'rows': '9 training and 3 test rows', 'classes': '2', 'instance': '8'}
    """
    if not dataset:
        return {}
    instance = " x ".join(str(side) for side in dataset["instance_shape"]) or "text"
    classes = str(dataset["n_classes"])
    return {"rows": describe_data(dataset), "classes": classes, "instance": instance}


def format_percent(value: float) -> str:
    return MISSING if math.isnan(value) else f"{100 * value:.0f} %"


def _describe_counts(run: Run, summary: Mapping[str, float]) -> str:
    if run.about.get("protocol") == GIVEN:
        return "The learner was given the labelled instances of these classes."
    if run.about.get("n_novel") is not None:
        return "The learner was told the number of novel classes."
    exact = f"{summary['n_exact']} of {_count(len(run.records), 'window', 'windows')}"
    return f"The learner found the exact number of novel classes in {exact}."


def _describe_queries(run: Run, summary: Mapping[str, float]) -> str:
    if run.about.get("query") == SELF:
        n_named = sum(len(record.named) for record in run.records)
        return f"It queried no label and named {_count(n_named, 'class', 'classes')} itself."
    if run.about.get("protocol") == GIVEN:
        return f"These were {_count(int(summary['n_queried']), 'label', 'labels')}."
    queried = f"It queried {_count(int(summary['n_queried']), 'label', 'labels')}"
    if not summary["n_propagated"]:
        return f"{queried}."
    others = _count(int(summary["n_propagated"]), "other instance", "other instances")
    right = format_percent(summary["propagated_right"])
    return f"{queried}; the answers were propagated to {others}, to {right} of them rightly."


def _describe_holdout(summary: Mapping[str, float]) -> str:
    if math.isnan(summary["holdout_first"]):
        return ""
    return (
        f"At the end its hold-out accuracy was {format_percent(summary['holdout_first'])} on the "
        f"initial classes and {format_percent(summary['holdout_all'])} on all classes so far."
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
