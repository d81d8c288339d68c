"""Where a watched stream comes from: files that appear, or lines."""

from __future__ import annotations

import glob
import os
import select
import tempfile
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from cilf.core.extras import optional
from cilf.core.types import Array
from cilf.data import Instances
from cilf.data.pixels import is_image
from cilf.data.readers import suffixes
from cilf.errors import BadConfig, BadInput, CilfError
from cilf.serving.inputs import read_image, read_line
from cilf.serving.watch_state import WatchState
from cilf.workflow.input_data import read_new
from cilf.workflow.versions import LoadedModel

LINES = "-"  # the source that is standard input
URL_MARK = "://"
PATTERN = "*?["  # characters of a glob
CHUNK = 1 << 16  # bytes of lines that are taken in at once
MOST_OF_LINE = 1 << 24  # bytes

Say = Callable[[str], None]


class Source(ABC):
    """A stream of instances."""

    is_ended = False  # nothing more will come

    @abstractmethod
    def gather(self, state: WatchState, model: LoadedModel, seconds: float) -> bool:
        """Take in what there is; returns whether the queue was full before the end of it.

        A stream of lines is read for ``seconds`` at most.
        """


@dataclass(frozen=True)
class Shard:
    """A file, and what changes when it does."""

    name: str
    stamp: str


class FileSource(Source):
    """Images and tables in a folder, of a pattern, or under a URL of fsspec."""

    def __init__(self, place: str, say: Say) -> None:
        self.place, self.say = place, say

    def gather(self, state: WatchState, model: LoadedModel, seconds: float) -> bool:
        try:
            shards = self._list()
        except CilfError:
            raise
        except Exception as error:  # noqa: BLE001 - each kind of storage has errors of its own
            self.say(f"{self.place} cannot be reached ({_first_line(error)}): it is tried again.")
            return False
        for shard in shards:
            if state.has_shard(shard.name, shard.stamp):
                continue
            if state.room == 0 or self._take(shard, state, model) > 0:
                self.say(f"the queue holds {state.most} instances: reading waits at {shard.name}.")
                return True
        return False

    def _take(self, shard: Shard, state: WatchState, model: LoadedModel) -> int:
        """Take in a shard; returns how many of its instances have to wait for room."""
        try:
            n_left = state.take(self._read(shard, model))
        except CilfError as error:
            self.say(f"{shard.name} is left out: {error}")
            n_left = 0
        except Exception as error:  # noqa: BLE001 - each kind of storage has errors of its own
            self.say(f"{shard.name} cannot be read ({_first_line(error)}): it is tried again.")
            return 0
        if n_left == 0:
            state.note_shard(shard.name, shard.stamp)
        return n_left

    def _read(self, shard: Shard, model: LoadedModel) -> Instances:
        content = self._fetch(shard.name)
        if is_image(PurePath(shard.name)):
            pixels = read_image(shard.name, content, model)
            return Instances(pixels[None], _names([shard.name]))
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / PurePath(shard.name).name
            table.write_bytes(content)
            read = read_new(table, model, skip_bad=True)
        return Instances(read.X, _names(f"{shard.name}#{row}" for row in read.ids.tolist()))

    def _list(self) -> list[Shard]:
        if any(character in self.place for character in PATTERN):
            names = glob.glob(self.place, recursive=True)  # noqa: PTH207 - it may be absolute
        else:
            names = [str(path) for path in _walk(Path(self.place))]
        found = []
        for name in sorted(filter(_is_ours, names)):
            about = Path(name).stat()
            found.append(Shard(name, f"{about.st_mtime_ns} {about.st_size}"))
        return found

    def _fetch(self, name: str) -> bytes:
        return Path(name).read_bytes()


class UrlSource(FileSource):
    """Files under a URL of fsspec, whose credentials come from the environment."""

    def __init__(self, place: str, say: Say) -> None:
        super().__init__(place, say)
        self._fsspec = optional("fsspec", extra="watch", purpose=f"the source {place!r}")
        self._require_protocol(place.partition("://")[0].rpartition("::")[2])

    def _require_protocol(self, protocol: str) -> None:
        """Refuse a storage whose package is missing; it would not come by waiting."""
        try:
            self._fsspec.get_filesystem_class(protocol)
        except (ImportError, ValueError) as error:
            said = str(error).rstrip(".")
            raise BadConfig(f"the source {self.place!r} cannot be opened: {said}.") from error

    def _list(self) -> list[Shard]:
        system, path = self._open()
        system.invalidate_cache()
        if any(character in path for character in PATTERN):
            found = system.glob(path, detail=True)
        else:
            system.info(path)  # says what is wrong if nothing is there
            found = system.find(path, detail=True)
        return [
            Shard(name, _stamp(about)) for name, about in sorted(found.items()) if _is_ours(name)
        ]

    def _fetch(self, name: str) -> bytes:
        content: bytes = self._open()[0].cat_file(name)
        return content

    def _open(self) -> tuple[Any, str]:
        system, path = self._fsspec.core.url_to_fs(self.place)
        return system, path


class LineSource(Source):
    """Lines of JSON from a pipe. What is not read yet waits in it, and so does its writer."""

    def __init__(self, descriptor: int, say: Say) -> None:
        self.descriptor, self.say = descriptor, say
        self._lines: deque[bytes] = deque()  # whole, but not taken in
        self._rest = b""  # of the last line that was read
        self._n_lines = 0
        self._has_all = False  # of the pipe

    def gather(self, state: WatchState, model: LoadedModel, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while True:
            if self._take(state, model):
                self.say(f"the queue holds {state.most} instances: reading waits.")
                return True
            left = end - time.monotonic()
            if self._has_all or left <= 0:
                self.is_ended = self._has_all
                return False
            if select.select([self.descriptor], [], [], left)[0]:
                self._read()

    def _read(self) -> None:
        chunk = os.read(self.descriptor, CHUNK)
        self._has_all = not chunk
        *whole, self._rest = (self._rest + (chunk or b"\n")).split(b"\n")
        self._lines.extend(whole)
        if len(self._rest) > MOST_OF_LINE:
            megabytes = MOST_OF_LINE >> 20
            raise BadInput(f"a line is longer than {megabytes} MB: write a line per instance.")

    def _take(self, state: WatchState, model: LoadedModel) -> bool:
        """Take in the whole lines that were read; returns whether there is no room for some."""
        while self._lines:
            room = state.room
            if room == 0:
                return True
            batch: list[Instances] = []
            while self._lines and len(batch) < room:
                self._n_lines += 1
                batch += self._parse(self._lines.popleft(), model)
            if batch:
                state.take(
                    Instances(
                        np.concatenate([each.X for each in batch]),
                        np.concatenate([each.ids for each in batch]),
                    )
                )
        return False

    def _parse(self, line: bytes, model: LoadedModel) -> list[Instances]:
        """The instance of a line; none of an empty line, or of one that cannot be read."""
        if not line.strip():
            return []
        try:
            return [read_line(line.decode(errors="replace"), model)]
        except CilfError as error:
            self.say(f"line {self._n_lines} is left out: {error}")
            return []


def open_source(place: str, say: Say, descriptor: int = 0) -> Source:
    """The source of this name. ``descriptor`` is that of standard input."""
    if place == LINES:
        return LineSource(descriptor, say)
    return UrlSource(place, say) if URL_MARK in place else FileSource(place, say)


def _walk(folder: Path) -> Iterator[Path]:
    if not folder.exists():
        raise FileNotFoundError("there is no such folder or file")
    if folder.is_file():
        yield folder
    yield from (path for path in folder.rglob("*") if path.is_file())


def _is_ours(name: str) -> bool:
    """Whether a file is an image or a table; others, and hidden ones, are no shards."""
    path = PurePath(name)
    return not path.name.startswith(".") and (
        is_image(path) or path.name.lower().endswith(tuple(suffixes()))
    )


def _stamp(about: Any) -> str:
    """What changes with a file, by whatever names its storage has for it."""
    keys = ("ETag", "etag", "md5Hash", "LastModified", "mtime", "created", "size")
    return " ".join(str(about[key]) for key in keys if key in about)


def _names(names: Iterable[str]) -> Array:
    return np.array(list(names), dtype=str)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
