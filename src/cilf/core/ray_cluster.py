"""A connection to a Ray cluster, an existing one or one on this machine."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from cilf.core.extras import optional
from cilf.core.notices import warn_once
from cilf.errors import BadConfig

# Ray reads this when it is imported: set to 0, a cluster made here is not seen from outside.
BEYOND_THIS_MACHINE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
PREFIX = "CILF_"  # of the environment variables that are passed on to the nodes
AUTO = "auto"
PATIENCE = 5.0  # seconds until an address counts as silent; Ray itself would try for minutes
REMEDY = "start one with 'ray start --head', or leave it out to use this machine."


def import_ray(address: str | None, purpose: str) -> Any:
    """Import Ray, which is an extra."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # usage is not reported
    if address is None:
        os.environ.setdefault(BEYOND_THIS_MACHINE, "0")
    return optional("ray", extra="cluster", purpose=purpose)


def require_address(address: str | None) -> None:
    """Refuse an address that no cluster can have, before anything slow."""
    if address is not None and address != AUTO and not re.fullmatch(r"[^\s/]+:\d{1,5}", address):
        raise BadConfig(f"address is {address!r}: give HOST:PORT of a Ray cluster, or 'auto'.")


@contextmanager
def connect(address: str | None, n_cpus: int, purpose: str) -> Iterator[Any]:
    """Connect to a cluster inside the block; yields the module ``ray``.

    Args:
        address: the address of an existing cluster. None starts one on this machine, which ends
            with the block.
        n_cpus: the number of cores of a cluster on this machine.
        purpose: what needs Ray, for the message if it is not installed.
    """
    require_address(address)
    ray = import_ray(address, purpose)
    if ray.is_initialized():  # by the caller, who also ends it
        yield ray
        return
    own = {"address": "local", "num_cpus": n_cpus, "include_dashboard": False}
    if address is not None and address != AUTO:
        _require_answer(address)
    try:
        ray.init(
            log_to_driver=False,
            logging_level="ERROR",
            **(own if address is None else {"address": address}),
        )
    except (ConnectionError, RuntimeError, ray.exceptions.RayError, SystemExit) as error:
        raise _unreachable(address, error) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_answer(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str | None, error: BaseException) -> BadConfig:
    """The error of an address; Ray leaves the process if what answers there is no cluster."""
    is_exit = isinstance(error, SystemExit)
    reason = "something else does" if is_exit else str(error).partition("\n")[0].partition(". ")[0]
    return BadConfig(f"address is {address!r}: no Ray cluster answers there ({reason}); {REMEDY}")


@contextmanager
def silence() -> Iterator[None]:
    """Keep what Ray prints out of standard output, which belongs to the result of a command.

    Ray prints the end of a node there, in dozens of lines. ``report_lost_nodes`` says it in one.
    """
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):  # noqa: PTH123
        yield


def cilf_variables() -> dict[str, str]:
    """The environment variables that processes on the nodes should have, too."""
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}


def list_nodes(ray: Any) -> dict[str, dict[str, Any]]:
    """The nodes of the cluster that are alive, by their identifiers."""
    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


def report_lost_nodes(ray: Any, before: dict[str, dict[str, Any]]) -> None:
    """Log a line for each node that has left the cluster since ``before``."""
    now = list_nodes(ray)
    for identifier, node in before.items():
        if identifier not in now or not _answers(node):
            place = f"{node['NodeManagerAddress']}:{node['NodeManagerPort']}"
            warn_once(
                f"the node {place} was lost: the other nodes have taken over its rows, and the "
                "result is the same."
            )


def _answers(node: dict[str, Any]) -> bool:
    """Whether a node is there; the cluster itself notices a loss only after some seconds."""
    place = node["NodeManagerAddress"], node["NodeManagerPort"]
    try:
        socket.create_connection(place, PATIENCE).close()
    except OSError:
        return False
    return True
