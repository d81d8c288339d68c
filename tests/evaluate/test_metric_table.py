from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from cilf.benchmark import RunConfig, run_cell
from cilf.core import WindowRecord
from cilf.evaluate import METRICS, RunFolder, read_records, run_stream, summarize
from cilf.evaluate.curves import list_curves
from cilf.evaluate.metric_table import PLAN, Metric, Outcome, shown_in, value_after, window_scores
from cilf.learners.iforest import IForest
from cilf.stream import Stream

OUTCOME = Outcome(
    truth=np.array([0, 0, 1, 2]),
    predicted=np.array([0, 1, 1, 2]),
    cluster=np.array([-1, -1, -1, 0]),
    novelty=np.array([0.1, 0.2, 0.3, 0.9]),
    n_known=2,
)
SIZE = Metric("size", "Number of instances.", lambda w: float(len(w.truth)), shown=("runs",))


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_one_function_and_its_words(name: str) -> None:
    metric = METRICS[name]
    functions = (metric.of_window, metric.of_run, metric.against_joint)
    assert sum(function is not None for function in functions) == 1
    assert metric.title
    assert metric.meaning.endswith(".")


def test_every_metric_of_a_window_that_the_contract_names_is_a_field() -> None:
    own = {field.name for field in dataclasses.fields(WindowRecord)}
    scores = window_scores(OUTCOME, OUTCOME)
    assert {name.removeprefix(PLAN) for name in scores} <= own


def test_scores_of_a_window() -> None:
    scores = window_scores(OUTCOME, OUTCOME)
    assert scores["na"] == pytest.approx(0.5 * 2 / 3 + 0.5)
    assert scores["h"] == pytest.approx(2 / (1 + 3 / 2))
    assert (scores["auroc"], scores["m_new"], scores["f_new"]) == (1.0, 0.0, 0.0)
    assert (scores["aks"], scores["aus"]) == (pytest.approx(2 / 3), 1.0)


def test_each_metric_of_a_window_is_read_by_the_learner_and_by_the_plan() -> None:
    missed = dataclasses.replace(OUTCOME, n_known=3)  # by the plan, the third class is known
    scores = window_scores(OUTCOME, missed)
    assert (scores["aks"], scores["plan_aks"]) == (pytest.approx(2 / 3), 0.75)
    assert math.isnan(scores["plan_aus"])
    assert math.isnan(scores["plan_h"])


def test_tables_show_the_reading_of_the_plan() -> None:
    places = ("windows", "runs", "bench", "charts")
    read_twice = {n.removeprefix(PLAN) for n in METRICS if n.startswith(PLAN)}
    shown = {name for place in places for name in shown_in(place)}
    assert not shown & read_twice
    for place in places:  # whoever shows NA shows what it is made of
        found = shown_in(place)
        assert {"plan_h", "plan_aks", "plan_aus", "plan_na"} <= set(found)


def test_a_new_metric_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(METRICS, "size", SIZE)
    config = RunConfig.of(
        learner="iforest", data="digits", scenario="single", stream={"n_windows": 2}
    )
    records = list(run_cell(config, tmp_path))
    assert [record.extra["size"] for record in records] == [
        record.metric("size") for record in records
    ]
    kept = RunFolder.open(tmp_path).read_records()
    assert [record.extra for record in kept] == [record.extra for record in records]
    mean = sum(record.extra["size"] for record in records) / 2
    assert summarize(records)["size"] == pytest.approx(mean)
    assert read_records(tmp_path)["size"].mean() == pytest.approx(mean)
    assert list_curves(records[0])["scores/size"] == records[0].extra["size"]
    assert "size" in shown_in("runs")


def test_a_metric_of_the_run_has_a_value_after_each_window(stream: Stream) -> None:
    record = next(iter(run_stream(IForest(), stream)))
    assert value_after("holdout_first", record) == record.holdout_accuracy[0]
    assert value_after("holdout_new", record) == record.holdout_accuracy[1]
    assert value_after("na", record) == record.na or math.isnan(record.na)
