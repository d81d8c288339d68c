"""Changes that arrive together: one transaction, in order, and no answer before its time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from cilf.console.group_commit import GroupCommit
from cilf.console.origin import Origin
from cilf.console.service import Action, Conflict, Console
from cilf.console.store import CLASSES, Event, Store
from cilf.console.verbs import VERBS
from cilf.errors import BadInput

from .conftest import COWS, HENS, act, list_clusters, put_window, restart

N = 40


def make_action(verb: str, window: int = 1, address: str = "", **fields: Any) -> Action:
    return Action(window, verb, VERBS[verb].body(**fields), Origin("", address))


def make_labels(n: int = N) -> list[Action]:
    """Labels of one instance each, in this order."""
    return [make_action("label", rows=[row], name=f"class {row % 7}") for row in range(n)]


def act_together(console: Console, actions: Sequence[Action]) -> list[Event | BaseException]:
    """Send actions as requests do that arrive at once."""

    async def send() -> list[Event | BaseException]:
        group = GroupCommit(console)
        return await asyncio.gather(*map(group.act, actions), return_exceptions=True)

    return asyncio.run(send())


class Transactions:
    """The sizes of the groups that a store writes."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        write = store.append_all

        def append_all(events: Sequence[tuple[Event, Origin]]) -> None:
            self.sizes.append(len(events))
            write(events)

        monkeypatch.setattr(store, "append_all", append_all)


def test_changes_that_arrive_together_are_one_transaction_in_order(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactions = Transactions(console.store, monkeypatch)
    done = act_together(console, make_labels())
    assert sum(transactions.sizes) == N
    assert len(transactions.sizes) <= 2, "the first may go alone, the others wait for it"
    assert [event.seq for event in done if isinstance(event, Event)] == list(range(1, N + 1))
    assert [e.about["name"] for e in console.store.events(1)] == [
        f"class {i % 7}" for i in range(N)
    ]
    assert list_clusters(restart(console)) == list_clusters(console)


def test_a_change_is_on_disk_before_it_is_answered(console: Console) -> None:
    other = Store(console.store.folder)  # what another process sees

    async def label(group: GroupCommit, action: Action) -> bool:
        event = await group.act(action)
        return event in other.events(1)

    async def send() -> list[bool]:
        group = GroupCommit(console)
        return await asyncio.gather(*(label(group, action) for action in make_labels()))

    assert all(asyncio.run(send()))
    other.close()


def test_a_refused_change_leaves_the_others(console: Console) -> None:
    refused = [
        make_action("label", rows=[10_000], name="cow"),
        make_action("name", clusters=[99], name="cow"),
        make_action("name", window=77, clusters=[1], name="cow"),
        make_action("into", clusters=[COWS], name="nobody has this name"),
    ]
    good = make_labels(4)
    done = act_together(console, [one for pair in zip(refused, good, strict=True) for one in pair])
    assert all(isinstance(error, BadInput) for error in done[::2]), done
    assert [event.seq for event in done[1::2] if isinstance(event, Event)] == [1, 2, 3, 4]


def test_the_first_of_two_who_change_the_same_cluster_at_once_wins(console: Console) -> None:
    first, second, third = console.act_all(
        [
            make_action("name", clusters=[COWS], name="cow", version=0, person="ann"),
            make_action("name", clusters=[COWS], name="calf", version=0, person="bob"),
            make_action("name", clusters=[HENS], name="hen", version=0, person="bob"),
        ]
    )
    assert isinstance(second, Conflict)
    assert (second.version, [event.person for event in second.events]) == (1, ["ann"])
    assert [first, third] == console.store.events(1)
    assert [name for name, _, _ in list_clusters(console).values()] == ["cow", "hen"]


def test_a_group_holds_several_windows_and_people(console: Console) -> None:
    second = put_window(console, "second", seed=1)
    actions = [
        make_action("name", window, address, clusters=[COWS], name=name)
        for window, address, name in ((second, "10.0.0.1", "cow"), (1, "10.0.0.2", "cow"))
    ]
    assert all(isinstance(event, Event) for event in console.act_all(actions))
    assert [len(console.store.events(window)) for window in (1, second)] == [1, 1]
    lines = [(row.window, row.address) for row in console.store.audit() if row.action == "name"]
    assert lines == [(second, "10.0.0.1"), (1, "10.0.0.2")]
    (made,) = console.store.events(CLASSES)  # by the first of them
    assert made.about == {"name": "cow"}
    assert ("new class", "10.0.0.1") in [(r.action, r.address) for r in console.store.audit()]


def test_a_group_goes_on_after_what_another_server_wrote(console: Console) -> None:
    console.open(1)
    other, write = restart(console), console.store.append_all

    def append_late(events: Sequence[tuple[Event, Origin]]) -> None:
        console.store.append_all = write  # type: ignore[method-assign]
        act(other, 1, "name", clusters=[HENS], name="hen", person="bob")
        console.store.append_all(events)

    console.store.append_all = append_late  # type: ignore[method-assign]
    done = console.act_all([make_action("name", clusters=[COWS], name="cow"), *make_labels(3)])
    assert [event.seq for event in done if isinstance(event, Event)] == [2, 3, 4, 5]
    assert [event.seq for event in console.store.events(1)] == [1, 2, 3, 4, 5]
    assert list_clusters(restart(console)) == list_clusters(console)


def test_a_failed_transaction_changes_nothing(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list_clusters(console)

    def fail(events: object) -> None:
        raise OperationalError("insert", {}, Exception("database or disk is full"))

    with monkeypatch.context() as broken:
        broken.setattr(console.store, "append_all", fail)
        done = act_together(console, make_labels(5))
    assert all(isinstance(error, OperationalError) for error in done)
    assert (list_clusters(console), console.open(1).state.version) == (before, 0)
    assert [isinstance(e, Event) and e.seq for e in act_together(console, make_labels(2))] == [1, 2]
