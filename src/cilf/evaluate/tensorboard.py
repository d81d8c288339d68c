"""Records as curves in TensorBoard, window by window."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cilf.core import WindowRecord
from cilf.core.extras import optional
from cilf.evaluate.metric_table import METRICS

PURPOSE = "a TensorBoard log"
COUNTS = (
    "n_known", "n_novel_true", "n_novel_planned", "n_novel_found", "n_queried", "n_propagated",
)  # fmt: skip
SECONDS = ("seconds_detect", "seconds_update")


def require_tensorboard() -> None:
    """Raise if TensorBoard is not installed."""
    optional("tensorboard", extra="tensorboard", purpose=PURPOSE)


def log_records(records: Iterable[WindowRecord], folder: str | Path) -> Iterator[WindowRecord]:
    """Yield the same records and write each to a log in this folder.

    The log is made anew, since a resumed run gives its finished records once more.
    """
    require_tensorboard()
    module = optional("torch.utils.tensorboard", extra="tensorboard", purpose=PURPOSE)
    return _write(records, Path(folder), module.SummaryWriter)


def _write(
    records: Iterable[WindowRecord], folder: Path, writer_class: Any
) -> Iterator[WindowRecord]:
    if folder.exists():
        shutil.rmtree(folder)
    with writer_class(str(folder)) as writer:
        for record in records:
            for tag, value in curves(record).items():
                writer.add_scalar(tag, value, global_step=record.window)
            writer.flush()
            yield record


def curves(record: WindowRecord) -> dict[str, float]:
    """The names of the curves of a record, and the values that are defined."""
    values = {f"scores/{name}": record.metric(name) for name, m in METRICS.items() if m.of_window}
    values |= {f"counts/{name}": getattr(record, name) for name in COUNTS}
    values |= {f"seconds/{name}": getattr(record, name) for name in SECONDS}
    values |= {f"holdout/group_{group}": value for group, value in record.holdout_accuracy.items()}
    return {
        name: value for name, value in values.items() if value is not None and not math.isnan(value)
    }
