"""The table of all metrics, which records, summaries, tables, charts and the terminal read.

A metric is one pure function and one line of ``METRICS``. A new metric is kept in the mapping
``extra`` of the records and needs no other change.

Metrics of a window have two readings of known and novel. By the learner, a class is novel until
the learner knows it. By the plan, a class is novel in the window in which it starts and known
afterwards. The second is the same for every learner: tables show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from cilf.core import WindowRecord
from cilf.core.types import Bools, Ints
from cilf.evaluate import metrics
from cilf.evaluate.metrics import mean, mean_over_classes

Records = Sequence[WindowRecord]
Place = Literal["windows", "runs", "bench", "charts"]
"""Where a metric is shown: the tables with a row for each window (report and terminal), the
table with a row for each run (report), the table of a benchmark (terminal), or the charts."""
PLAN = "plan_"  # begins the name of a metric that follows the plan


@dataclass(frozen=True)
class Outcome:
    """The truth of a window and what a learner made of it, as codes (see ``metrics``)."""

    truth: Ints  # (n,)
    predicted: Ints  # (n,)
    cluster: Ints  # (n,) -1 known, else the novel cluster
    novelty: npt.NDArray[np.floating]  # (n,)
    n_known: int

    @property
    def is_novel(self) -> Bools:
        return np.asarray(self.truth >= self.n_known)

    def of_known(self) -> tuple[Ints, Ints]:
        """Truth and prediction of the instances of known classes."""
        known = self.truth < self.n_known
        return self.truth[known], self.predicted[known]

    def codes(self) -> tuple[Ints, Ints, int]:
        return self.truth, self.predicted, self.n_known


@dataclass(frozen=True)
class Metric:
    """A metric and how to show it. Exactly one of the three functions is given.

    Attributes:
        title: The name that people read, in the head of a column for example.
        meaning: One sentence that explains the metric.
        of_window: The value for one window. The value for a run is the mean over its windows.
        of_run: The value for a run, from its records.
        against_joint: The value for a run, from its records and those of ``joint``.
        higher_is_better: Whether larger values are better.
        shown: The places that show the metric. Every record and every summary holds it.
        by_plan: Whether known and novel follow the plan of the stream instead of the learner.
    """

    title: str
    meaning: str
    of_window: Callable[[Outcome], float] | None = None
    of_run: Callable[[Records], float] | None = None
    against_joint: Callable[[Records, Records], float] | None = None
    higher_is_better: bool = True
    shown: tuple[Place, ...] = ()
    by_plan: bool = False


def shown_in(place: Place) -> dict[str, Metric]:
    """The metrics that this place shows, by name and in the order of the table.

    >>> list(shown_in("bench"))
    ['plan_h', 'plan_aks', 'plan_aus', 'plan_na', 'plan_auroc', 'plan_k_exact', 'holdout_all',
    'forgetting']
    """
    return {name: metric for name, metric in METRICS.items() if place in metric.shown}


def shown_for(place: Place, records: Records) -> dict[str, Metric]:
    """The metrics that this place shows of these records.

    A metric of windows that no window defines is left out, if there are windows.
    """
    undefined = {
        name
        for name, metric in METRICS.items()
        if metric.of_window and all(math.isnan(record.metric(name)) for record in records)
    }
    shown = shown_in(place)
    return {n: m for n, m in shown.items() if not records or n not in undefined}


def rank_by_h(summary: Mapping[str, float]) -> tuple[bool, float]:
    """The place of a run in a table: the largest H comes first, an undefined one last.

    >>> sorted([{"plan_h": 0.1}, {"plan_h": math.nan}, {"plan_h": 0.3}], key=rank_by_h)
    [{'plan_h': 0.3}, {'plan_h': 0.1}, {'plan_h': nan}]
    """
    h = summary[f"{PLAN}h"]
    return math.isnan(h), 0.0 if math.isnan(h) else -h


def window_scores(by_learner: Outcome, by_plan: Outcome) -> dict[str, float]:
    """The value of every metric that is defined on a single window, in its reading."""
    return {
        name: metric.of_window(by_plan if metric.by_plan else by_learner)
        for name, metric in METRICS.items()
        if metric.of_window is not None
    }


def value_after(name: str, record: WindowRecord) -> float:
    """The value of a metric for one window, or of a run that ends with it."""
    of_run = METRICS[name].of_run
    return record.metric(name) if of_run is None else of_run([record])


# ----------------------------------------------------------------- what records say of a run


def _count_errors(records: Records, by_plan: bool) -> list[float]:
    """Found minus true number of novel classes, in each window with a detection."""
    return [
        record.n_novel_found - (record.n_novel_planned if by_plan else record.n_novel_true)
        for record in records
        if record.n_novel_found is not None
    ]


def _last_holdout(records: Records) -> Mapping[int, float]:
    """Hold-out accuracy of each group of classes after the last window."""
    return records[-1].holdout_accuracy if records else {}


def measured_holdout(records: Records) -> list[dict[int, float]]:
    """The hold-out accuracies of each record that are defined."""
    return [
        {group: value for group, value in record.holdout_accuracy.items() if not math.isnan(value)}
        for record in records
    ]


# ----------------------------------------------------------------- the table

EVERYWHERE: tuple[Place, ...] = ("windows", "runs", "bench", "charts")


def _by_plan(found: Mapping[str, Metric]) -> dict[str, Metric]:
    """These metrics in the reading of the plan, which tables show."""
    return {f"{PLAN}{name}": replace(metric, by_plan=True) for name, metric in found.items()}


def _by_learner(found: Mapping[str, Metric]) -> dict[str, Metric]:
    """These metrics in the reading of the learner, which records and summaries hold."""
    return {
        name: replace(metric, title=f"{metric.title} by learner", shown=())
        for name, metric in found.items()
    }


def _count_metrics(by_plan: bool) -> dict[str, Metric]:
    """The metrics of the number of novel classes, in one reading."""

    def errors(records: Records) -> list[float]:
        return _count_errors(records, by_plan)

    return {
        "k_exact": Metric(
            "K exact", "Share of the windows whose number of novel classes was found exactly.",
            of_run=lambda r: mean(float(error == 0) for error in errors(r)),
            shown=("runs", "bench"),
        ),
        "k_within_one": Metric(
            "K within 1", "Share of the windows in which that number was missed by one at most.",
            of_run=lambda r: mean(float(abs(error) <= 1) for error in errors(r)),
        ),
        "k_error": Metric(
            "K error", "Mean of found minus true number of novel classes; zero is best.",
            of_run=lambda r: mean(errors(r)), higher_is_better=False,
        ),
        "k_abs_error": Metric(
            "K abs. error", "Mean distance between the found and the true number of novel classes.",
            of_run=lambda r: mean(abs(error) for error in errors(r)), higher_is_better=False,
        ),
    }  # fmt: skip


OF_WINDOW: dict[str, Metric] = {
    "h": Metric(
        "H", "Harmonic mean of AKS and AUS; 0 if nothing novel is found.",
        lambda w: metrics.harmonic_accuracy(*w.codes()), shown=EVERYWHERE,
    ),
    "aks": Metric(
        "AKS", "Share of the instances of known classes that are given their class.",
        lambda w: metrics.known_accuracy(*w.codes()), shown=EVERYWHERE,
    ),
    "aus": Metric(
        "AUS", "Share of the instances of novel classes that are in the cluster of their class.",
        lambda w: metrics.novel_accuracy(*w.codes()), shown=EVERYWHERE,
    ),
    "na": Metric(
        "NA", "Mean of AKS and AUS.",
        lambda w: metrics.normalized_accuracy(*w.codes()), shown=EVERYWHERE,
    ),
    "macro_f": Metric(
        "Macro-F", "F-measure in which every class counts the same.",
        lambda w: metrics.macro_f(w.truth, w.predicted), shown=("runs", "charts"),
    ),
    "micro_f": Metric(
        "Micro-F", "F-measure in which every instance counts the same.",
        lambda w: metrics.micro_f(w.truth, w.predicted), shown=("runs", "charts"),
    ),
    "auroc": Metric(
        "AUROC", "How well the novelty score ranks novel above known instances; 0.5 is chance.",
        lambda w: metrics.auroc(w.novelty, w.is_novel), shown=EVERYWHERE,
    ),
    "known_macro_f": Metric(
        "known Macro-F", "Macro-F on instances of known classes.",
        lambda w: metrics.macro_f(*w.of_known()),
    ),
    "known_micro_f": Metric(
        "known Micro-F", "Micro-F on instances of known classes.",
        lambda w: metrics.micro_f(*w.of_known()),
    ),
    "known_auroc": Metric(
        "known AUROC", "Mean over known classes of the AUROC of each against the novel instances.",
        lambda w: metrics.known_auroc(w.novelty, w.truth, w.n_known),
    ),
    "open_macro_f": Metric(
        "open Macro-F", "F of the mean precision and recall over known classes.",
        lambda w: metrics.open_macro_f(*w.codes()),
    ),
    "open_micro_f": Metric(
        "open Micro-F", "F of the outcomes summed over known classes.",
        lambda w: metrics.open_micro_f(*w.codes()),
    ),
    "m_new": Metric(
        "M_new", "Share of the novel instances that are called known.",
        lambda w: metrics.missed_novel(w.truth, w.cluster, w.n_known), higher_is_better=False,
    ),
    "f_new": Metric(
        "F_new", "Share of the instances of known classes that are called novel.",
        lambda w: metrics.false_novel(w.truth, w.cluster, w.n_known), higher_is_better=False,
    ),
}  # fmt: skip
OF_RUN: dict[str, Metric] = {
    "holdout_first": Metric(
        "hold-out first", "Accuracy on held-out instances of the initial classes.",
        of_run=lambda r: _last_holdout(r).get(0, math.nan), shown=("windows", "runs"),
    ),
    "holdout_new": Metric(
        "hold-out new", "Accuracy on held-out instances of later classes, mean over windows.",
        of_run=lambda r: mean(v for group, v in _last_holdout(r).items() if group > 0),
        shown=("windows",),
    ),
    "holdout_all": Metric(
        "hold-out all", "Accuracy on held-out instances, mean over all classes that have come.",
        of_run=lambda r: mean_over_classes(_last_holdout(r), r[-1].holdout_classes if r else {}),
        shown=("runs", "bench"),
    ),
    "forgetting_from_best": Metric(
        "from best", "Mean loss of hold-out accuracy since a group of classes was at its best.",
        of_run=lambda r: metrics.forgetting_from_best(measured_holdout(r)), higher_is_better=False,
    ),
    "forgetting": Metric(
        "Forgetting", "Share of the hold-out accuracy of joint that the learner lacks.",
        against_joint=lambda r, joint: metrics.forgetting(
            measured_holdout(r), measured_holdout(joint)
        ),
        higher_is_better=False, shown=("bench",),
    ),
}  # fmt: skip

METRICS: dict[str, Metric] = {
    **_by_plan(OF_WINDOW | _count_metrics(by_plan=True)),
    **_by_learner(OF_WINDOW | _count_metrics(by_plan=False)),
    **OF_RUN,
}
