"""What a watched stream has brought so far, in one SQLite file.

An instance is known by the hash of its content. It is taken into the queue in the transaction that
notes the hash, and a shard is noted after all of its instances. So a process that is killed neither
skips nor repeats one. A window gets its instances in one transaction, and is made again, with the
same ones, if the process is killed before the window is done.
"""

from __future__ import annotations

import io
import json
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cilf.core.files import make_folder
from cilf.core.locks import hold_lock
from cilf.core.types import Array
from cilf.data import Instances
from cilf.errors import BadInput
from cilf.workflow.ledger import hash_instances

FILE, LOCK = "watch.sqlite", "watch.lock"
FORMAT = 1  # of the tables; files of an earlier cilf say 0 and have the same ones
ID_LENGTH = 8
SCHEMA = """
CREATE TABLE IF NOT EXISTS about (only INTEGER PRIMARY KEY CHECK (only = 1), id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS seen (content TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shards (name TEXT PRIMARY KEY, stamp TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS queue (
    id INTEGER PRIMARY KEY, identity TEXT NOT NULL, instance BLOB NOT NULL, window INTEGER);
CREATE TABLE IF NOT EXISTS windows (number INTEGER PRIMARY KEY, is_done INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (
    id INTEGER PRIMARY KEY, channel TEXT NOT NULL, body TEXT NOT NULL,
    tries INTEGER NOT NULL, due REAL NOT NULL);
"""


@dataclass(frozen=True)
class Message:
    """A notification that has not arrived yet.

    Attributes:
        id: its number.
        channel: where it goes.
        body: what it says.
        tries: how often it was sent in vain.
        due: when it may be sent again, in seconds since 1970.
    """

    id: int
    channel: str
    body: Mapping[str, Any]
    tries: int
    due: float


class WatchState:
    """The state of one watched stream. ``most`` instances may wait at once."""

    def __init__(self, folder: Path, most: int) -> None:
        self.most = most
        try:
            self._db = sqlite3.connect(folder / FILE, isolation_level=None)
            self._db.execute("PRAGMA synchronous = FULL")
            self._require_format(folder)
            self._db.executescript(SCHEMA)
            self._db.execute(f"PRAGMA user_version = {FORMAT}")
            name = uuid.uuid4().hex[:ID_LENGTH]
            self._db.execute("INSERT OR IGNORE INTO about VALUES (1, ?)", (name,))
        except sqlite3.Error as error:
            raise BadInput(
                f"the state in {folder} cannot be opened ({error}): name another with --state."
            ) from error

    def _require_format(self, folder: Path) -> None:
        found = self._count("PRAGMA user_version")
        if found > FORMAT:
            self._db.close()
            raise BadInput(
                f"the state in {folder} has format {found}, and this cilf reads {FORMAT}: it was "
                "written by a newer cilf, so update cilf."
            )

    def close(self) -> None:
        self._db.close()

    @property
    def id(self) -> str:
        """The name of the state, which tells its windows from those of another one."""
        return str(self._db.execute("SELECT id FROM about").fetchone()[0])

    # ------------------------------------------------------------- taking in

    @property
    def n_waiting(self) -> int:
        """The instances that are in no window yet."""
        return self._count("SELECT count(*) FROM queue WHERE window IS NULL")

    @property
    def room(self) -> int:
        """How many more instances may wait."""
        return max(0, self.most - self._count("SELECT count(*) FROM queue"))

    def has_shard(self, name: str, stamp: str) -> bool:
        """Whether a shard was taken in, and has not changed since."""
        query = "SELECT count(*) FROM shards WHERE name = ? AND stamp = ?"
        return self._count(query, name, stamp) > 0

    def is_seen(self, content: str) -> bool:
        return self._count("SELECT count(*) FROM seen WHERE content = ?", content) > 0

    def take(self, instances: Instances) -> int:
        """Take in the instances that are new, as many as there is room for.

        Returns the number of instances that were left out because there is no room.
        """
        room, n_left = self.room, 0
        contents = hash_instances(instances.X)
        with self._transaction():
            for row, content in enumerate(contents):
                if self.is_seen(content):
                    continue
                if room == 0:
                    n_left += 1
                    continue
                self._db.execute("INSERT INTO seen VALUES (?)", (content,))
                self._db.execute(
                    "INSERT INTO queue (identity, instance) VALUES (?, ?)",
                    (str(instances.ids[row]), _pack(instances.X[row])),
                )
                room -= 1
        return n_left

    def note_shard(self, name: str, stamp: str) -> None:
        """Note that all of a shard was taken in, or that it cannot be read."""
        self._db.execute("INSERT OR REPLACE INTO shards VALUES (?, ?)", (name, stamp))

    # ------------------------------------------------------------- windows

    def start_window(self, at_least: int) -> int | None:
        """The number of the window to detect in: an unfinished one, or one of all that wait.

        None if fewer than ``at_least`` instances wait.
        """
        unfinished = "SELECT number FROM windows WHERE NOT is_done"
        if (found := self._db.execute(unfinished).fetchone()) is not None:
            return int(found[0])
        if self.n_waiting < at_least:
            return None
        with self._transaction():
            number = 1 + self._count("SELECT coalesce(max(number), 0) FROM windows")
            self._db.execute("INSERT INTO windows VALUES (?, 0)", (number,))
            self._db.execute("UPDATE queue SET window = ? WHERE window IS NULL", (number,))
        return number

    def read_window(self, number: int) -> Instances:
        """The instances of a window, in the order they came."""
        rows = self._db.execute(
            "SELECT identity, instance FROM queue WHERE window = ? ORDER BY id", (number,)
        ).fetchall()
        return Instances(
            _stack([_unpack(instance) for _, instance in rows]),
            np.array(_make_unique([identity for identity, _ in rows]), dtype=str),
        )

    def end_window(self, number: int, messages: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Note that a window is done, and what is to be sent, by channel."""
        with self._transaction():
            self._db.execute("UPDATE windows SET is_done = 1 WHERE number = ?", (number,))
            self._db.execute("DELETE FROM queue WHERE window = ?", (number,))
            for channel, body in messages:
                self._db.execute(
                    "INSERT INTO outbox (channel, body, tries, due) VALUES (?, ?, 0, 0)",
                    (channel, json.dumps(body)),
                )

    # ------------------------------------------------------------- notifications

    def messages(self) -> list[Message]:
        """The notifications that have not arrived, the oldest first."""
        rows = self._db.execute("SELECT id, channel, body, tries, due FROM outbox ORDER BY id")
        return [
            Message(id, channel, json.loads(body), tries, due)
            for id, channel, body, tries, due in rows
        ]

    def remove_message(self, message: Message) -> None:
        self._db.execute("DELETE FROM outbox WHERE id = ?", (message.id,))

    def postpone_message(self, message: Message, due: float) -> None:
        """Note that a notification did not arrive, and when it may be sent again."""
        self._db.execute(
            "UPDATE outbox SET tries = tries + 1, due = ? WHERE id = ?", (due, message.id)
        )

    # ------------------------------------------------------------- inside

    def _count(self, query: str, *values: Any) -> int:
        return int(self._db.execute(query, values).fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


@contextmanager
def open_state(folder: Path, most: int) -> Iterator[WatchState]:
    """Open the state in a folder. One command at a time may have it open."""
    make_folder(folder)
    with hold_lock(folder / LOCK, folder):
        state = WatchState(folder, most)
        try:
            yield state
        except sqlite3.Error as error:
            raise BadInput(
                f"the state in {folder} cannot be read or written ({error}): make room, or restore "
                "it from a copy."
            ) from error
        finally:
            state.close()


def _pack(instance: Any) -> bytes:
    """An instance as bytes: a text, or an array without a pickle."""
    if isinstance(instance, str):
        return b"t" + instance.encode(errors="surrogatepass")
    written = io.BytesIO()
    np.save(written, instance, allow_pickle=False)
    return b"a" + written.getvalue()


def _unpack(packed: bytes) -> Any:
    if packed[:1] == b"t":
        return packed[1:].decode(errors="surrogatepass")
    return np.load(io.BytesIO(packed[1:]), allow_pickle=False)


def _stack(instances: list[Any]) -> Array:
    if isinstance(instances[0], str):
        X = np.empty(len(instances), dtype=object)
        X[:] = instances
        return X
    if len({each.shape for each in instances}) > 1:
        raise BadInput("a window holds instances of two shapes: let it watch with another --state.")
    return np.stack(instances)


def _make_unique(names: list[str]) -> list[str]:
    """Names with a number after those that came before.

    >>> _make_unique(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    counts: Counter[str] = Counter()
    taken, unique = set(names), []
    for name in names:
        counts[name] += 1
        other = name if counts[name] == 1 else f"{name} ({counts[name]})"
        while counts[name] > 1 and other in taken:
            counts[name] += 1
            other = f"{name} ({counts[name]})"
        taken.add(other)
        unique.append(other)
    return unique
