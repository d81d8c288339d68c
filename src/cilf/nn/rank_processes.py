"""Start the ranks of one training as processes, and bring back what the first of them returns.

They meet through a file in a temporary folder, so that there is no port to be chosen or taken, and
talk to this process through pipes. If one of them fails, all are ended.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle  # nosec B403  # for its exception only
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import torch
from torch import distributed

from cilf.core import progress
from cilf.core.notices import LOGGER, warn_once
from cilf.core.processes import describe_exit, environment, follow_parent, n_cores
from cilf.errors import BadConfig, CilfError
from cilf.nn.network import resolve_device
from cilf.nn.ranks import Group, use_group

DEVICES = "training.devices"  # the parameter that errors are about
NAME = "cilf-rank-"  # of a process
PATIENCE = timedelta(minutes=10)  # of a rank that waits for another one
STOP_SECONDS = 5.0  # until a process that does not stop is killed
GRACE_SECONDS = 2.0  # in which a rank that was lost shows, after others failed because of it
UNGUARDED = 87  # the exit code of a rank whose import of the main script would train again

Result = TypeVar("Result")


def run_in_ranks(
    work: Callable[..., Result], *arguments: Any, devices: int, device: str = "auto"
) -> Result:
    """Call ``work(*arguments)`` in as many processes as ``devices``, as one group.

    The result is that of the first one, as are progress and notices. ``work`` and the arguments
    are sent to the processes, which import them.
    """
    kind = require_devices(devices, device)
    if multiprocessing.current_process().name.startswith(NAME):
        sys.exit(UNGUARDED)  # a rank that imports the main script
    if multiprocessing.current_process().daemon:
        raise BadConfig(
            f"{DEVICES} is {devices}, but this process is a worker itself, which may not start "
            f"others: set {DEVICES}=1."
        )
    with TemporaryDirectory(prefix="cilf-ranks-") as folder:
        place = _Place(kind, devices, folder, max(1, torch.get_num_threads() // devices))
        with _start(place, work, arguments) as ranks:
            result: Result = _await_result(ranks)
            return result


def require_devices(devices: int, device: str) -> str:
    """Refuse more devices than there are; returns what they are, "cpu" or "cuda"."""
    kind = resolve_device(device).type
    if ":" in str(device):
        raise BadConfig(
            f"device is {device!r}, which is a single one, but {DEVICES} is {devices}: set "
            f"device={kind!r}, or {DEVICES}=1."
        )
    n_available, noun = {
        "cuda": (torch.cuda.device_count(), "GPUs"),
        "cpu": (n_cores(), "cores"),
    }.get(kind, (1, kind))
    if devices > n_available:
        raise BadConfig(
            f"{DEVICES} is {devices}, but this process may use {n_available} {noun}: set {DEVICES} "
            f"to {n_available} or less (--devices {n_available})."
        )
    return kind


@dataclass(frozen=True)
class _Place:
    """Where ranks run: on which kind of device, how many, and the folder in which they meet."""

    kind: str
    size: int
    folder: str
    n_threads: int  # of each


@dataclass(frozen=True)
class _Rank:
    group: Group
    process: BaseProcess
    line: Connection  # messages come in


@dataclass(frozen=True)
class _Progress:
    stage: str
    done: int
    total: int


@dataclass(frozen=True)
class _Notice:
    text: str


@dataclass(frozen=True)
class _Failed:
    error: Exception


@dataclass(frozen=True)
class _Done:
    result: Any


# ----------------------------------------------------------------- in the process that starts them


@contextmanager
def _start(
    place: _Place, work: Callable[..., Any], arguments: Sequence[Any]
) -> Iterator[list[_Rank]]:
    """The ranks, which end with the block."""
    context = multiprocessing.get_context("spawn")
    ranks: list[_Rank] = []
    try:
        for number in range(place.size):
            line, theirs = context.Pipe(duplex=False)
            group = Group(number, place.size)
            process = context.Process(
                target=_run_rank, args=(theirs, group, place, work, arguments), daemon=True,
                name=f"{NAME}{number}",
            )  # fmt: skip
            with environment(_variables(place.kind)):
                process.start()
            theirs.close()  # or the line would not break when the process dies
            ranks.append(_Rank(group, process, line))
        yield ranks
    except (pickle.PicklingError, AttributeError) as error:
        if len(ranks) == place.size:
            raise
        raise BadConfig(
            f"{DEVICES} is {place.size}, but other processes cannot be given what they need "
            f"({error}): define it at the top level of a module, or set {DEVICES}=1."
        ) from error
    finally:
        _stop(ranks)


def _stop(ranks: Sequence[_Rank]) -> None:
    for rank in ranks:
        rank.line.close()
        rank.process.terminate()
    for rank in ranks:
        rank.process.join(STOP_SECONDS)
        if rank.process.is_alive():
            rank.process.kill()
            rank.process.join()


def _variables(kind: str) -> dict[str, str]:
    """Environment variables of a rank. Gloo shall not listen where other machines see it."""
    variables = {"TORCH_CPP_LOG_LEVEL": "ERROR"}  # or each says that no weight is left out
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if kind == "cpu" and loopback:
        variables["GLOO_SOCKET_IFNAME"] = loopback[0]
    return variables


def _await_result(ranks: Sequence[_Rank]) -> Any:
    """Pass progress and notices on until the first rank is done; raise if one fails."""
    by_line: dict[Any, _Rank] = {rank.line: rank for rank in ranks}
    while True:
        for line in wait(list(by_line)):
            try:
                message = by_line[line].line.recv()
            except (EOFError, OSError):
                rank = by_line.pop(line)
                rank.process.join()
                if rank.process.exitcode:
                    raise _describe_loss(rank) from None
                continue
            if isinstance(message, _Done):
                return message.result
            if isinstance(message, _Progress):
                progress.report(message.stage, message.done, message.total)
            elif isinstance(message, _Notice):
                warn_once(message.text)
            else:
                raise _find_cause(ranks, message.error)


def _find_cause(ranks: Sequence[_Rank], error: Exception) -> Exception:
    """Why a rank failed: with an error of its own, or since another one was lost."""
    if isinstance(error, CilfError | OSError):
        return error
    give_up = time.monotonic() + GRACE_SECONDS
    for rank in ranks:
        rank.process.join(max(0.0, give_up - time.monotonic()))
    lost = [rank for rank in ranks if rank.process.exitcode]
    return _describe_loss(lost[0]) if lost else error


def _describe_loss(rank: _Rank) -> CilfError:
    if rank.process.exitcode == UNGUARDED:
        return BadConfig(
            f"{DEVICES} is {rank.group.size}, and each device has a process that imports your "
            "script, which would train again: put what it does under "
            f"\"if __name__ == '__main__':\", or set {DEVICES}=1."
        )
    return CilfError(
        f"process {rank.group.rank + 1} of {rank.group.size} ended "
        f"({describe_exit(rank.process.exitcode)}) while they trained together, and nothing was "
        f"learned: if memory was short, give fewer {DEVICES} or a smaller training.batch_size."
    )


# ----------------------------------------------------------------- in the process of a rank


def _run_rank(
    line: Connection,
    group: Group,
    place: _Place,
    work: Callable[..., Any],
    arguments: Sequence[Any],
) -> None:
    follow_parent()
    try:
        with _report(line) if group.rank == 0 else nullcontext():
            LOGGER.disabled = group.rank > 0
            _join(group, place)
            with use_group(group):
                result = work(*arguments)
        if group.rank == 0:
            line.send(_Done(result))
    except (CilfError, OSError) as error:
        line.send(_Failed(error))
    except Exception:  # noqa: BLE001 - the outermost handler: the parent raises it
        line.send(_Failed(RuntimeError(f"in rank {group.rank}:\n{traceback.format_exc()}")))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # the threads of gloo may abort a process that ends in the usual way


@contextmanager
def _report(line: Connection) -> Iterator[None]:
    """Send progress and notices to the process that waits."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            line.send(_Notice(record.getMessage()))

    LOGGER.addHandler(Handler())
    LOGGER.propagate = False
    with progress.listen(lambda *step: line.send(_Progress(*step))):
        yield


def _join(group: Group, place: _Place) -> None:
    """Meet the other ranks."""
    torch.set_num_threads(place.n_threads)
    on_gpu = place.kind == "cuda"
    if on_gpu:
        torch.cuda.set_device(group.rank)  # which "cuda" means from now on
    distributed.init_process_group(
        "nccl" if on_gpu else "gloo",
        init_method=(Path(place.folder) / "meeting").as_uri(),
        rank=group.rank,
        world_size=group.size,
        timeout=PATIENCE,
        device_id=torch.device("cuda", group.rank) if on_gpu else None,
    )
