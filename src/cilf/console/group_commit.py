"""Changes that arrive together are written in one transaction.

While one group is on its way to disk, the next one gathers. Each request is answered once its own
change is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from cilf.console.service import Action, Console
from cilf.console.store import Event

MOST_TOGETHER = 256  # changes of a transaction

Waiting = tuple[Action, "asyncio.Future[Event]"]


class GroupCommit:
    """Writes the actions of requests, in the order of their arrival."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="group-commit")
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Waiting]]
        self._waiting = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()  # one that nobody refers to may vanish

    async def act(self, action: Action) -> Event:
        """Change a window by a verb. The event that is returned is on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Event] = loop.create_future()
        waiting = self._waiting.get(loop)
        if waiting is not None:
            waiting.append((action, future))
        else:
            self._waiting[loop] = [(action, future)]
            task = loop.create_task(self._write_all(loop))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _write_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Write groups until nothing waits."""
        while waiting := self._waiting[loop]:
            group, self._waiting[loop] = waiting[:MOST_TOGETHER], waiting[MOST_TOGETHER:]
            actions = [action for action, _ in group]
            try:
                done: Sequence[Event | Exception]
                done = await loop.run_in_executor(self._writer, self._console.act_all, actions)
            except Exception as error:  # noqa: BLE001 - each request says so
                done = [error] * len(group)
            for (_, future), result in zip(group, done, strict=True):
                _answer(future, result)
        del self._waiting[loop]


def _answer(future: asyncio.Future[Event], result: Event | Exception) -> None:
    if future.done():  # the client has gone
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
