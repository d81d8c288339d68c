"""A model that is loaded again when another version of it becomes the current one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from cilf.errors import BadInput, CilfError
from cilf.workflow.versions import LoadedModel, ModelFolder, load_model

LOGGER = logging.getLogger("cilf.serving")
SECONDS = 1.0  # between two looks at the pointer to the current version
MOST_WAITING = 32  # requests, which leaves threads for others; more are told to come back

Result = TypeVar("Result")


class Busy(BadInput):
    """Too many requests wait for the model."""


class LiveModel:
    """The current version of a model. What has started ends with the version it started with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_failed = 0  # versions that could not be loaded
        self._turn = threading.Lock()
        self._count = threading.Lock()
        self._n_waiting = 0
        self._seen: int | None = None
        self.loaded = self._load()

    @property
    def n_waiting(self) -> int:
        """The requests that wait for the model, and the one that has it."""
        return self._n_waiting

    def use(self, work: Callable[[LoadedModel], Result]) -> Result:
        """Do some work with the model. One request after another has it.

        A network that computes must not be set up by another thread meanwhile, and one computation
        uses all cores.
        """
        with self._waiting(), self._turn:
            return work(self.loaded)

    def refresh(self) -> bool:
        """Load the current version if it is another one; returns whether that was so.

        Requests are answered by the former version until the new one is loaded. If the new one
        cannot be loaded, the former one stays.
        """
        try:
            if self._current() == self._seen:
                return False
            self.loaded = self._load()
        except (CilfError, OSError) as error:
            self.n_failed += 1
            LOGGER.error("version %s stays in use: %s", self.loaded.version, error)
            return False
        LOGGER.warning("version %s is in use", self.loaded.version)
        return True

    @contextmanager
    def refreshing(self, seconds: float = SECONDS) -> Iterator[None]:
        """Look for another version again and again, inside the block."""
        stopping = threading.Event()

        def look() -> None:
            while not stopping.wait(seconds):
                self.refresh()

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()

    def _current(self) -> int | None:
        folder = ModelFolder(self.path)
        return folder.current if folder.exists() else None

    def _load(self) -> LoadedModel:
        self._seen = self._current()  # one that fails is not loaded again and again
        loaded = load_model(self.path)
        loaded.learner.classes_  # noqa: B018 - loads it now, not with the first request
        return loaded

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        with self._count:
            if self._n_waiting >= MOST_WAITING:
                raise Busy(f"{MOST_WAITING} requests wait for the model: try again later.")
            self._n_waiting += 1
        try:
            yield
        finally:
            with self._count:
                self._n_waiting -= 1
