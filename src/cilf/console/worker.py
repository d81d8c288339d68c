"""The entry of the worker's process. It ends with the server even while it still imports."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1  # of Linux: the signal to get when the parent dies


def main(arguments: list[str]) -> None:
    server, folder, model = int(arguments[0]), Path(arguments[1]), Path(arguments[2])
    roots = json.loads(arguments[3])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != server:  # it died before that
        return
    from cilf.console.jobs import run_worker

    run_worker(folder, model, None if roots is None else [Path(root) for root in roots])


if __name__ == "__main__":
    main(sys.argv[1:])
