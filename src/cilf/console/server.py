"""The server: one process for the pages, one for the work, one store for both."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cilf.core.extras import optional
from cilf.core.files import make_folder
from cilf.errors import BadConfig, BadInput

if TYPE_CHECKING:
    from cilf.console.guard import Access

LOCK = "console.lock"
DATABASE = "CILF_CONSOLE_DATABASE"  # environment of the worker: the URL may hold a password
PATIENCE = 2.0  # seconds until a worker that died is started again, or a lock is given up
SHORTEST_TOKEN = 8
BACKLOG = 128  # connections that may wait


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8377,
    token: str | None = None,
    model: Path | None = None,
    database: str | None = None,
    roots: Sequence[Path] = (),
    tell: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve the console on a store until it is interrupted.

    Args:
        folder: the store: windows, uploads, thumbnails, and the database unless it is elsewhere.
        host, port: where to listen; port 0 takes a free one.
        token: demanded from everybody; without one, only this machine may come.
        model: the model folder; "model" in the store if None.
        database: the URL of a PostgreSQL database; a file of SQLite in the store if None.
        roots: folders that windows may be pointed at; all, if there are none and no token.
        tell: called with the address once it is open.
    """
    uvicorn = optional("uvicorn", extra="console", purpose="the console")
    for module in ("fastapi", "sqlalchemy", "jinja2", "python_multipart", "PIL"):
        optional(module, extra="console", purpose="the console")
    from cilf.console.app import make_app
    from cilf.console.guard import Access
    from cilf.console.service import Console
    from cilf.console.store import Store

    access = Access(host, token)
    _require_token(access)
    folder = folder.absolute()  # what is written down holds wherever it is started from
    make_folder(folder)
    with _alone_in(folder), _listening(host, port) as sock:
        store = Store(folder, database)
        model = model or folder / "model"
        app = make_app(Console(store, model, _limits(token, roots)), access)
        config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_keep_alive=30)
        with _worker(folder, model, database):
            tell(_address(sock, host, token))
            uvicorn.Server(config).run(sockets=[sock])
        store.close()


def _limits(token: str | None, roots: Sequence[Path]) -> list[Path] | None:
    """The folders that may be read; None: all of them, since only this machine may come."""
    return None if token is None and not roots else list(roots)


def _require_token(access: Access) -> None:
    if not access.local and access.token is None:
        raise BadConfig(
            f"--host {access.host} lets other machines in: demand a token from them (--token)."
        )
    if access.token is not None and (len(access.token) < SHORTEST_TOKEN or " " in access.token):
        raise BadConfig(f"--token: give at least {SHORTEST_TOKEN} characters without blanks.")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    with (folder / LOCK).open("a") as file:
        end = time.monotonic() + PATIENCE  # of one that was killed, a child may still hold it
        while not _locked(file):
            if time.monotonic() > end:
                raise BadInput(f"another console uses {folder}: open that one, or stop it.")
            time.sleep(0.1)
        yield


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sends answers without delay only if it is.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            sock.listen(BACKLOG)  # whoever comes once the address is told, waits for an answer
        except (OSError, OverflowError) as error:
            raise BadConfig(f"cannot listen on {host}:{port} ({error}): name another.") from error
        yield sock


def _address(sock: socket.socket, host: str, token: str | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    login = "" if token is None else "login"
    return f"http://{shown}:{sock.getsockname()[1]}/{login}"


@contextmanager
def _worker(folder: Path, model: Path, database: str | None) -> Iterator[None]:
    """A worker that is there as long as the server is, started anew if it dies."""
    threads = str(max(1, (os.cpu_count() or 2) - 1))  # one core is for the pages
    environment = os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads)}
    if database is not None:
        environment[DATABASE] = database
    module = "cilf.console.worker"
    command = [sys.executable, "-m", module, str(os.getpid()), str(folder), str(model)]
    stopping = threading.Event()
    running: list[subprocess.Popen[bytes]] = []

    def watch() -> None:
        while not stopping.is_set():
            running[:] = [subprocess.Popen(command, env=environment)]
            running[0].wait()
            stopping.wait(PATIENCE)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stopping.set()
        for process in running:
            process.terminate()
        watcher.join(timeout=10)
