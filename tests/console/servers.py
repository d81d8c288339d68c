"""A real server in a process of its own, and a real PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 120.0  # seconds for a machine with much else to do


class Server:
    """``cilf console`` on a store."""

    def __init__(self, store: Path, *options: str) -> None:
        self.store, self.options = store, options
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self) -> None:
        command = [sys.executable, "-m", "cilf", "console", "--store", str(self.store)]
        self.process = subprocess.Popen(
            [*command, "--port", "0", *self.options],
            stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "http://" in line, f"the server did not start: {line}"
        self.url = "http://" + line.split("http://")[1].split("/")[0]

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self._wait()

    def _wait(self) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        code = self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()
        return code


@contextlib.contextmanager
def serving(store: Path, *options: str) -> Iterator[Server]:
    server = Server(store, *options)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()


# ----------------------------------------------------------------- PostgreSQL


def missing_postgres() -> str | None:
    """Why no PostgreSQL can be started here, if so."""
    for program in ("postgres", "initdb"):
        if shutil.which(program) is None:
            return f"no {program} on the path"
    if os.getuid() == 0 and _find_user() is None:
        return "PostgreSQL does not run as root, and there is no other user"
    return None


def _find_user() -> pwd.struct_passwd | None:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return None


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The URL of an empty database that ends with the block."""
    folder.mkdir(parents=True)
    other = _find_user() if os.getuid() == 0 else None
    ids = {} if other is None else {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
    if other is not None:
        os.chown(folder, other.pw_uid, other.pw_gid)
    data, quiet = folder / "data", {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    subprocess.run(
        ["initdb", "-D", str(data), "-U", "cilf", "--auth=trust", "--no-sync", "-E", "UTF8"],
        check=True, cwd=folder, **ids, **quiet,
    )  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["postgres", "-D", str(data), "-p", str(port), "-k", "", "-h", "127.0.0.1", "-F"],
        cwd=folder, **ids, **quiet,
    )  # fmt: skip
    try:
        _wait_for(port)
        yield f"postgresql://cilf@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=PATIENCE)


def _wait_for(port: int) -> None:
    import psycopg

    end = time.monotonic() + PATIENCE
    while True:
        try:
            psycopg.connect(f"postgresql://cilf@127.0.0.1:{port}/postgres").close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
