"""The server: a process for requests, a worker process, and a store for both."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cilf.core.extras import optional
from cilf.core.files import make_folder
from cilf.errors import BadConfig, BadInput

if TYPE_CHECKING:
    from cilf.console.guard import Access

LOCK = "console.lock"
DATABASE = (
    "CILF_CONSOLE_DATABASE"  # variable of the worker's environment: the URL may hold a password
)
PATIENCE = 2.0  # seconds before a worker is restarted, and before a lock is given up
MIN_TOKEN = 8  # characters
BACKLOG = 128  # connections that may wait
MOST_CONNECTIONS = 1024  # more are told to come back


def serve(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8377,
    token: str | None = None,
    model: Path | None = None,
    database: str | None = None,
    roots: Sequence[Path] = (),
    announce: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve the console until it is interrupted.

    Args:
        folder: the store. It holds windows, uploads, thumbnails and the SQLite database.
        host: the address to listen on.
        port: the port to listen on. 0 takes a free one.
        token: the token that every request must show. Without one, only this machine is served.
        model: the model folder. The default is "model" in the store.
        database: the URL of a PostgreSQL database. The default is a file of SQLite in the store.
        roots: the folders that windows may be read from. Without roots and token, all folders are.
        announce: a function that is called with the address once the server listens.
    """
    require_console_extra()
    import uvicorn

    from cilf.console.app import make_app
    from cilf.console.connections import PatientProtocol
    from cilf.console.guard import Access
    from cilf.console.log import SERVER, open_log
    from cilf.console.service import Console
    from cilf.console.store import Store

    access = Access(host, token)
    require_token(access)
    folder = folder.absolute()  # stored paths hold wherever the server is started
    make_folder(folder)
    with _hold_lock(folder), listen(host, port) as sock:
        open_log(folder, SERVER)
        model = model or folder / "model"
        store = Store(folder, database)
        app = make_app(Console(store, model, readable_roots(token, roots)), access)
        config = uvicorn.Config(
            app, log_level="warning", lifespan="off", timeout_keep_alive=30,
            http=PatientProtocol, limit_concurrency=MOST_CONNECTIONS, access_log=False,
        )  # fmt: skip
        with (
            closing(store),  # after the worker has ended, so that nobody else has it open
            _end_in_order(),
            _run_worker(folder, model, readable_roots(token, roots), database),
        ):
            announce(format_address(sock, host, token))
            uvicorn.Server(config).run(sockets=[sock])


@contextmanager
def _end_in_order() -> Iterator[None]:
    """Let SIGTERM end the block as an exception does, so that what is open is closed."""
    if threading.current_thread() is not threading.main_thread():  # it gets no signals
        yield
        return

    def end(number: int, _: object) -> None:
        raise SystemExit(0)

    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def require_console_extra() -> None:
    """Say what to install if the packages of the console are missing."""
    for module in (
        "uvicorn",
        "fastapi",
        "sqlalchemy",
        "alembic",
        "jinja2",
        "python_multipart",
        "PIL",
    ):
        optional(module, extra="console", purpose="the console")


def readable_roots(token: str | None, roots: Sequence[Path]) -> list[Path] | None:
    """The folders that may be read. None is all of them, for this machine only."""
    return None if token is None and not roots else list(roots)


def require_token(access: Access) -> None:
    """Refuse an address that other machines reach without a token, and a weak token."""
    if not access.local and access.token is None:
        raise BadConfig(f"--host {access.host} lets other machines in: demand a token (--token).")
    if access.token is not None and (len(access.token) < MIN_TOKEN or " " in access.token):
        raise BadConfig(f"--token: give at least {MIN_TOKEN} characters without blanks.")


@contextmanager
def _hold_lock(folder: Path) -> Iterator[None]:
    with (folder / LOCK).open("a") as file:
        end = time.monotonic() + PATIENCE  # the worker of a killed server may still hold it
        while not _try_lock(file):
            if time.monotonic() > end:
                raise BadInput(f"another console uses {folder}: open that one, or stop it.")
            time.sleep(0.1)
        yield


def _try_lock(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """Listen on an address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends answers without delay only if the protocol is named.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            sock.listen(BACKLOG)  # clients that come before the first answer wait
        except (OSError, OverflowError) as error:
            raise BadConfig(f"cannot listen on {host}:{port} ({error}): choose another.") from error
        yield sock


def format_address(sock: socket.socket, host: str, token: str | None) -> str:
    """The URL that a person opens."""
    shown = f"[{host}]" if ":" in host else host
    login = "" if token is None else "login"
    return f"http://{shown}:{sock.getsockname()[1]}/{login}"


@contextmanager
def _run_worker(
    folder: Path, model: Path, roots: list[Path] | None, database: str | None
) -> Iterator[None]:
    """Run the worker as long as the server runs. A worker that dies is restarted."""
    threads = str(max(1, (os.cpu_count() or 2) - 1))  # one core is for requests
    environment = os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads)}
    if database is not None:
        environment[DATABASE] = database
    module = "cilf.console.worker"
    readable = None if roots is None else [str(root.absolute()) for root in roots]
    arguments = [str(os.getpid()), str(folder), str(model), json.dumps(readable)]
    command = [sys.executable, "-m", module, *arguments]
    stopping = threading.Event()
    processes: list[subprocess.Popen[bytes]] = []

    def watch() -> None:
        while not stopping.is_set():
            processes[:] = [subprocess.Popen(command, env=environment)]
            processes[0].wait()
            stopping.wait(PATIENCE)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stopping.set()
        for process in processes:
            process.terminate()
        watcher.join(timeout=10)
