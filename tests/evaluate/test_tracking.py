from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cilf.benchmark.bench import Bench
from cilf.benchmark.config import RunConfig
from cilf.benchmark.grid import GridCell
from cilf.benchmark.job import run_job
from cilf.evaluate import RunFolder
from cilf.evaluate.curves import list_curves
from cilf.evaluate.mlflow import PLACE, SETTINGS
from cilf.evaluate.tracking import TRACKERS, Tracker, track_records

from .test_tensorboard import QUICK, record

Client = Callable[[str], Any]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """A function that opens a store of MLflow; the environment is as it was afterwards."""
    mlflow = pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")
    monkeypatch.delenv(PLACE, raising=False)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    return lambda place: mlflow.MlflowClient(tracking_uri=place)


def only_run(client: Any) -> Any:
    experiment = client.get_experiment_by_name("cilf")
    [run] = client.search_runs([experiment.experiment_id])
    return run


def test_mlflow_gets_parameters_metrics_of_each_window_and_files(
    run: Any, client: Client, tmp_path: Path
) -> None:
    done = run(*QUICK, "--track", "mlflow", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    store = client((Path("here").absolute() / "mlruns").as_uri())
    tracked = only_run(store)
    assert (tracked.info.run_name, tracked.info.status) == ("here", "FINISHED")
    assert tracked.data.params["learner"] == "iforest"
    assert tracked.data.params["parameters.n_estimators"] == "8"
    assert tracked.data.tags["commit"] == str(said["run"]["commit"])
    history = store.get_metric_history(tracked.info.run_id, "scores/na")
    assert [(point.step, point.value) for point in history] == [
        (record["window"], pytest.approx(record["na"])) for record in said["records"]
    ]
    files = {file.path for file in store.list_artifacts(tracked.info.run_id)}
    assert files == {"run.json", "records.jsonl", "windows.csv", "summary.json"}
    assert run(*QUICK, "--overwrite").code == 0
    assert not Path("here/mlruns").exists()


def test_a_benchmark_tracks_each_cell(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = (tmp_path / "all").as_uri()
    monkeypatch.setenv(PLACE, place)
    config = RunConfig.of(
        learner="iforest", data="digits", scenario="multiple", seed=3,
        parameters={"n_estimators": 8, "max_samples": 60},
        stream={"n_windows": 1, "window_size": 8},
    )  # fmt: skip
    bench = Bench.of_cells([GridCell.of(config)], tmp_path / "bench")
    [state] = bench.with_status("waiting")
    job = bench._job(state, ["mlflow"], tmp_path / "fits")
    assert run_job(job).error is None
    assert only_run(client(place)).data.params["seed"] == "3"


def test_a_server_that_cannot_be_reached_is_one_line(
    run: Any, client: Client, monkeypatch: Any
) -> None:
    monkeypatch.setenv(PLACE, "http://127.0.0.1:1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    done = run(*QUICK, "--track", "mlflow", "--json")
    assert done.code == 0
    assert done.err.count("mlflow fails") == 1
    assert "the run goes on without it" in done.err
    assert len(json.loads(done.out)["records"]) == 2
    assert RunFolder(Path("here")).finished() is not None


def test_a_tracker_that_fails_later_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing:
        added = 0

        def __init__(self, folder: RunFolder) -> None:
            pass

        def add(self, record: Any) -> None:
            Failing.added += 1
            raise OSError("no space left\non this disk")

        def close(self, *, is_whole: bool) -> None:
            raise AssertionError("it was dropped")

    monkeypatch.setitem(TRACKERS, "failing", Tracker(lambda: None, Failing))
    records = [record(1, auroc=0.5), record(2, auroc=0.75)]
    assert list(track_records(records, RunFolder(tmp_path), ["failing"])) == records
    assert Failing.added == 1
    [said] = [line.getMessage() for line in caplog.records]
    assert said.startswith("failing fails (OSError: no space left): the run goes on")


def test_a_log_of_a_stopped_run_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[bool] = []

    class Plain:
        def __init__(self, folder: RunFolder) -> None:
            pass

        def add(self, record: Any) -> None:
            assert list_curves(record)

        def close(self, *, is_whole: bool) -> None:
            ended.append(is_whole)

    monkeypatch.setitem(TRACKERS, "plain", Tracker(lambda: None, Plain))
    records = [record(1, auroc=0.5), record(2, auroc=0.75)]
    stopped = track_records(iter(records), RunFolder(tmp_path), ["plain"])
    next(stopped)
    stopped.close()  # type: ignore[attr-defined]
    assert len(list(track_records(records, RunFolder(tmp_path), ["plain", "plain"]))) == 2
    assert ended == [False, True]


def test_unknown_and_missing_trackers_start_nothing(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = run(*QUICK, "--track", "mlfow")
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    assert "unknown tracker 'mlfow': did you mean 'mlflow'?" in unknown.err
    monkeypatch.setitem(sys.modules, "mlflow", None)
    missing = run(*QUICK, "--track", "mlflow")
    assert missing.err == "error: tracking with MLflow needs mlflow: pip install 'cilf[mlflow]'.\n"
    assert not Path("here").exists()
