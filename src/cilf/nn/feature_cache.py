"""A cache of features on disk, under a hash of the instance that they belong to.

There is one file for each network and version of its weights. If the file cannot be read or
written, features are computed without it.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from cilf.core import progress
from cilf.core.cache import cache_folder
from cilf.core.notices import warn_once
from cilf.core.types import Array, Floats
from cilf.nn.pretrained import Extractor

LOOKED_UP = 500  # keys in one query: every SQLite takes 999
COMPUTED = 256  # instances between two writes: what an interruption may lose
FEWEST, BYTES = 16, 2**26  # of large images fewer, so that they fit into memory
PATIENCE = 10.0  # seconds to wait for another process that writes

Answer = TypeVar("Answer")


def cached_features(extractor: Extractor, X: Array) -> Floats:
    """The features of every instance: (n, f). Only what the cache lacks is computed."""
    keys = [_key(instance) for instance in X]
    with closing(_Store(store_path(extractor))) as store:
        found = store.look_up(list(dict.fromkeys(keys)))
        missing = {key: row for row, key in enumerate(keys) if key not in found}
        n_known = len(found)
        for some in _portions(missing, X):
            computed = extractor.extract(X[[missing[key] for key in some]])
            store.keep(some, computed)
            found |= zip(some, computed, strict=True)
            progress.report(progress.FEATURES, len(found) - n_known, len(missing))
    return np.stack([found[key] for key in keys])


def store_path(extractor: Extractor) -> Path:
    """The file that keeps this network's features."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", extractor.name)[-80:]
    return cache_folder() / "features" / f"{name}-{extractor.digest}.sqlite"


def _key(instance: Array | str) -> bytes:
    if isinstance(instance, str):
        return hashlib.blake2b(instance.encode(), digest_size=16).digest()
    about = f"{instance.shape} {instance.dtype.str} ".encode()
    return hashlib.blake2b(about + instance.tobytes(), digest_size=16).digest()


def _portions(rows: dict[bytes, int], X: Array) -> Iterator[list[bytes]]:
    """The keys in portions. Texts are sorted by length, since a batch holds texts of one length."""
    keys = list(rows)
    if X.ndim == 1:
        keys.sort(key=lambda key: len(X[rows[key]]))
    size = min(COMPUTED, max(FEWEST, BYTES // X[:1].nbytes))
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


class _Store:
    """Features in a file. After an error of the file the store is empty."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._connection = self._try(lambda: _connect(path), None)

    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, Floats]:
        """The features that are kept under these keys."""
        found: dict[bytes, Floats] = {}
        for start in range(0, len(keys), LOOKED_UP):
            found |= self._read_cached(keys[start : start + LOOKED_UP])
        return found

    def _read_cached(self, keys: Sequence[bytes]) -> dict[bytes, Floats]:
        connection = self._connection
        if connection is None:
            return {}
        marks = ",".join("?" * len(keys))
        query = f"SELECT key, value, crc FROM features WHERE key IN ({marks})"  # nosec B608  # marks are "?"
        none: list[tuple[bytes, bytes, int]] = []
        rows = self._try(lambda: connection.execute(query, keys).fetchall(), none)
        return {
            key: np.frombuffer(value, dtype="<f4")
            for key, value, crc in rows
            if _is_sound(value, crc)
        }

    def keep(self, keys: Sequence[bytes], features: Floats) -> None:
        """Write these features at once."""
        connection = self._connection
        if connection is None:
            return
        values = [row.astype("<f4").tobytes() for row in features]
        rows = [(key, v, zlib.crc32(v)) for key, v in zip(keys, values, strict=True)]

        def write() -> None:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?)", rows)

        self._try(write, None)

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _try(self, work: Callable[[], Answer], otherwise: Answer) -> Answer:
        try:
            return work()
        except (sqlite3.Error, OSError) as error:
            warn_once(
                f"the feature cache {self._path} cannot be used ({error}): features are computed "
                "without it. Remove the file, or set CILF_CACHE to another folder."
            )
            self.close()
            return otherwise


def _connect(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=PATIENCE)
    try:
        _allow_readers_beside_a_writer(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS features "
                "(key BLOB PRIMARY KEY, value BLOB, crc INTEGER)"
            )
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _allow_readers_beside_a_writer(connection: sqlite3.Connection) -> None:
    """Set the journal mode. SQLite does not wait if two processes set it at once, so this does."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def _is_sound(value: object, crc: object) -> bool:
    return isinstance(value, bytes) and len(value) % 4 == 0 and zlib.crc32(value) == crc
