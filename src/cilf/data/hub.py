"""Data sets of the Hugging Face hub, read with the package ``datasets`` and its cache."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cilf.core.cache import fingerprint
from cilf.core.extras import optional
from cilf.data import local
from cilf.data.columns import Table
from cilf.data.dataset import Dataset
from cilf.data.options import Options
from cilf.data.table_files import describe_features
from cilf.data.tables import to_dataset
from cilf.errors import BadConfig, BadInput

PREFIX = "hf:"
TRAIN, TEST = ("train",), ("test", "validation", "valid", "dev")  # names of splits, best first
BATCH = 512
PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


class NotAvailable(Exception):
    """The data set is neither in the cache nor on the hub, or the hub cannot be reached."""


def read_hub(name: str, options: Options) -> Dataset:
    """Read ``hf:ID`` or ``hf:ID:CONFIGURATION``, a data set of labelled images, texts or numbers.

    The data set is read from ``CILF_DATA/ID`` if it is there, else from the hub.
    """
    id_, _, configuration = name.removeprefix(PREFIX).partition(":")
    if not id_:
        raise BadConfig(f"data set {name!r} has no id: write hf:ID, for example hf:ag_news.")
    folder = local.local_folder(id_)
    if not configuration and folder and (read := local.find_dataset(folder, name, options)):
        return read()
    try:
        return load_from_hub(name, id_, configuration or None, options)
    except NotAvailable as problem:
        raise BadInput(
            f"{name} is not here: {problem}; {fetch_command(id_)!r} fetches it once the hub can be "
            "reached."
        ) from problem


def load_from_hub(name: str, id_: str, configuration: str | None, options: Options) -> Dataset:
    """Load a data set by its id, from the cache of ``datasets`` if the hub cannot be reached."""
    train, test = load_tables(id_, configuration)
    return to_dataset(name, train, test, options)


def fetch_command(id_: str, folder: str | None = None) -> str:
    """The command that downloads a data set."""
    where = f" --local-dir {folder}" if folder else ""
    return f"hf download {id_} --repo-type dataset{where}"


def load_tables(id_: str, configuration: str | None) -> tuple[Table, Table | None]:
    """Load the training and the test split; the latter is None if there is none."""
    splits = _splits(id_, configuration)
    train = _find_first(splits, TRAIN) or next(iter(splits))
    test = _find_first(splits, TEST)
    held_out = _table(id_, test, splits[test]) if test and test != train else None
    return _table(id_, train, splits[train]), held_out


def _find_first(splits: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in splits), None)


def _table(id_: str, split: str, rows: Any) -> Table:
    def batches(columns: Sequence[str]) -> Iterator[Any]:
        chosen = rows.select_columns(list(columns)).with_format("arrow")
        for batch in chosen.iter(batch_size=BATCH):
            yield from batch.to_batches()

    files = [Path(file["filename"]) for file in rows.cache_files]
    return Table(
        where=f"{id_} ({split})",
        n_rows=len(rows),
        features=describe_features(rows.features.to_dict(), rows.features.arrow_schema),
        batches=batches,
        root=None,
        key={"hub": id_, "split": split, "content": fingerprint(files)},
    )


def _splits(id_: str, configuration: str | None) -> dict[str, Any]:
    datasets = optional("datasets", extra="data", purpose=f"{PREFIX}{id_}")
    try:
        with _go_offline_unless(_is_reachable), _hide_bars(datasets):
            return dict(datasets.load_dataset(id_, configuration))
    except ConnectionError as error:
        raise NotAvailable("the hub cannot be reached, its cache does not hold it") from error
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise NotAvailable(_join_lines(error)) from error


def _join_lines(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _is_reachable() -> bool:
    """Whether the name of the hub resolves; assumed behind a proxy, which resolves it."""
    constants = optional("huggingface_hub.constants", extra="data", purpose="the hub")
    if any(os.environ.get(variable) for variable in PROXIES):
        return True
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, None)
    except OSError:
        return False
    return True


@contextmanager
def _go_offline_unless(reachable: Callable[[], bool]) -> Iterator[None]:
    """Read the cache only if there is no network: the libraries would retry for 30 seconds."""
    constants = optional("huggingface_hub.constants", extra="data", purpose="the hub")
    config = optional("datasets.config", extra="data", purpose="the hub")
    before = constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE
    if not reachable():
        constants.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE = before


@contextmanager
def _hide_bars(datasets: Any) -> Iterator[None]:
    """Hide the progress bars of downloads unless standard error is a terminal."""
    import sys

    if sys.stderr.isatty():
        yield
        return
    were_shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if were_shown:
            datasets.enable_progress_bars()
