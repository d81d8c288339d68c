"""The log files of the server and the worker, in the store: what failed, with its traceback."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOGGER = logging.getLogger("cilf.console")
SERVER, WORKER = "server.log", "worker.log"
MAX_BYTES, N_OLD = 1 << 20, 3  # of a file, and files that are kept beside it
FORM = "%(asctime)s %(levelname)s %(message)s"


def open_log(folder: Path, name: str) -> logging.Handler:
    """Write what fails to a file of the store from now on. Old lines are given up in time."""
    handler = RotatingFileHandler(
        folder / name, maxBytes=MAX_BYTES, backupCount=N_OLD, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter(FORM))
    LOGGER.addHandler(handler)
    return handler
