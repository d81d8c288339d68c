"""Records as curves in TensorBoard, window by window."""

from __future__ import annotations

import shutil
from typing import Any

from cilf.core import WindowRecord
from cilf.core.extras import optional
from cilf.evaluate.curves import list_curves
from cilf.evaluate.records import RunFolder

PURPOSE = "a TensorBoard log"


def require_tensorboard() -> None:
    """Raise if TensorBoard is not installed."""
    optional("tensorboard", extra="tensorboard", purpose=PURPOSE)


class TensorBoardLog:
    """A log in the folder of a run.

    It is made anew, since a resumed run gives its finished records once more.
    """

    def __init__(self, folder: RunFolder) -> None:
        module: Any = optional("torch.utils.tensorboard", extra="tensorboard", purpose=PURPOSE)
        if folder.tensorboard.exists():
            shutil.rmtree(folder.tensorboard)
        self._writer = module.SummaryWriter(str(folder.tensorboard))

    def add(self, record: WindowRecord) -> None:
        """Write a point of each curve."""
        for tag, value in list_curves(record).items():
            self._writer.add_scalar(tag, value, global_step=record.window)
        self._writer.flush()

    def close(self, *, is_whole: bool) -> None:
        """Close the log, whether or not the run is whole."""
        self._writer.close()
