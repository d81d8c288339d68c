from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from cilf.core import WindowRecord
from cilf.evaluate import RunFolder
from cilf.evaluate.curves import list_curves
from cilf.evaluate.metric_table import METRICS, PLAN
from cilf.evaluate.tracking import track_records

QUICK = [
    "run", "--learner", "iforest", "--set", "n_estimators=8", "--set", "max_samples=60",
    "--set", "stream.n_windows=2", "--set", "stream.window_size=8", "--out", "here",
]  # fmt: skip


def record(window: int, auroc: float) -> WindowRecord:
    scores = {name: 0.25 for name, metric in METRICS.items() if metric.of_window} | {"auroc": auroc}
    fields = {name: value for name, value in scores.items() if not name.startswith(PLAN)}
    return WindowRecord(
        window=window, n_known=3, n_novel_true=2, n_novel_planned=2, n_novel_found=1, **fields,
        extra={name: value for name, value in scores.items() if name.startswith(PLAN)},
        holdout_accuracy={0: 0.5, 1: math.nan}, holdout_classes={0: 3, 1: 2}, n_queried=4,
        seconds_detect=1.0, seconds_update=2.0,
    )  # fmt: skip


def written(folder: Path) -> dict[str, list[tuple[int, float]]]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read = accumulator.EventAccumulator(str(folder))
    read.Reload()
    return {
        tag: [(event.step, event.value) for event in read.Scalars(tag)]
        for tag in read.Tags()["scalars"]
    }


def test_a_value_that_is_undefined_is_no_point_of_a_curve() -> None:
    drawn = list_curves(record(1, auroc=math.nan))
    assert "scores/auroc" not in drawn
    assert "holdout/group_1" not in drawn
    assert (drawn["holdout/group_0"], drawn["scores/na"], drawn["counts/n_known"]) == (0.5, 0.25, 3)


def test_every_record_is_a_point_of_each_curve(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra 'tensorboard' is not installed")
    records = [record(1, auroc=0.5), record(2, auroc=0.75)]
    assert list(track_records(records, RunFolder(tmp_path), ["tensorboard"])) == records
    found = written(tmp_path / "tensorboard")
    assert found["scores/auroc"] == [(1, 0.5), (2, 0.75)]
    assert set(found) == set(list_curves(records[0]))


def test_run_logs_when_told_and_a_resumed_run_logs_each_window_once(run: Any) -> None:
    pytest.importorskip("tensorboard", reason="the extra 'tensorboard' is not installed")
    done = run(*QUICK, "--tensorboard", "--json")
    assert done.code == 0
    again = run(*QUICK, "--tensorboard", "--resume")
    assert again.code == 0
    found = written(Path("here/tensorboard"))
    na = [(r["window"], pytest.approx(r["na"])) for r in json.loads(done.out)["records"]]
    assert found["scores/na"] == na
    assert run(*QUICK, "--overwrite").code == 0
    assert not Path("here/tensorboard").exists()
    assert RunFolder(Path("here")).finished() is not None


def test_without_tensorboard_nothing_is_started(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    done = run(*QUICK, "--tensorboard")
    assert done.code == 2
    assert done.err == (
        "error: a TensorBoard log needs tensorboard: pip install 'cilf[tensorboard]'.\n"
    )
    assert not Path("here").exists()
