"""Runs in MLflow: parameters, metrics of each window, and the files of the run.

Runs go where ``MLFLOW_TRACKING_URI`` says, and to ``mlruns`` in the folder of the run without it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from cilf.core import WindowRecord
from cilf.core.extras import optional
from cilf.data.spreadsheets import format_csv
from cilf.evaluate.curves import list_curves
from cilf.evaluate.records import RunFolder
from cilf.evaluate.summary import summarize

PURPOSE = "tracking with MLflow"
PLACE = "MLFLOW_TRACKING_URI"  # environment variable
EXPERIMENT = "cilf"
LONGEST = 6000  # characters of a parameter that MLflow takes
TAGS = ("version", "commit", "machine", "time")
SETTINGS = {  # unless the user sets them
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",  # a run does not wait for minutes
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ALLOW_FILE_STORE": "true",  # MLflow recommends a data base for a store of many runs
}


def require_mlflow() -> None:
    """Raise if MLflow is not installed."""
    optional("mlflow", extra="mlflow", purpose=PURPOSE)


class MlflowLog:
    """A run in MLflow, begun when the first record comes."""

    def __init__(self, folder: RunFolder) -> None:
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
        module: Any = optional("mlflow", extra="mlflow", purpose=PURPOSE)
        self._entities: Any = optional("mlflow.entities", extra="mlflow", purpose=PURPOSE)
        self._folder, self._records = folder, list[WindowRecord]()
        place = os.environ.get(PLACE) or folder.mlflow.absolute().as_uri()
        self._client = module.MlflowClient(tracking_uri=place)
        about = folder.read_run()
        tags = {name: str(about[name]) for name in TAGS if about.get(name) is not None}
        run = self._client.create_run(
            self._find_experiment(), run_name=folder.path.absolute().name, tags=tags
        )
        self._run: str = run.info.run_id
        for name, value in _list_parameters(about):
            self._client.log_param(self._run, name, value[:LONGEST])

    def _find_experiment(self) -> str:
        found = self._client.get_experiment_by_name(EXPERIMENT)
        if found is None:
            return str(self._client.create_experiment(EXPERIMENT))
        return str(found.experiment_id)

    def add(self, record: WindowRecord) -> None:
        """Log the metrics of a window in one request."""
        self._records.append(record)
        metrics = [
            self._entities.Metric(name, float(value), 0, record.window)
            for name, value in list_curves(record).items()
        ]
        self._client.log_batch(self._run, metrics=metrics)

    def close(self, *, is_whole: bool) -> None:
        """Add the tables and files of the run, and end it."""
        if is_whole:
            for path in (self._folder.path / "run.json", self._folder.path / "records.jsonl"):
                self._client.log_artifact(self._run, str(path))
            table = _format_windows(self._records).decode("utf-8-sig")
            self._client.log_text(self._run, table, "windows.csv")
            summary = json.dumps(summarize(self._records), indent=1)
            self._client.log_text(self._run, summary, "summary.json")
        self._client.set_terminated(self._run, "FINISHED" if is_whole else "KILLED")


def _list_parameters(about: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The settings of a run, with those of its parts as ``part.name``."""
    for name, value in about.items():
        if not prefix and name in (*TAGS, "checksum"):
            continue
        if isinstance(value, Mapping):
            yield from _list_parameters(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


def _format_windows(records: list[WindowRecord]) -> bytes:
    """The curves as a table with a row for each window."""
    rows = [{"window": record.window, **list_curves(record)} for record in records]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return format_csv(columns, [[row.get(name, "") for name in columns] for row in rows])
