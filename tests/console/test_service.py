from __future__ import annotations

import pytest

from cilf.console import service, updates, window_view
from cilf.console.service import Conflict, Console, NotFound
from cilf.console.store import Store
from cilf.errors import BadInput

from .conftest import (
    COWS,
    HENS,
    act,
    list_clusters,
    put_window,
    restart,
)


def test_everything_is_there_after_a_restart(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", person="ann")
    act(console, 1, "split", cluster=HENS, rows=[42, 43])
    act(console, 1, "label", rows=[0], name="calf")
    console.undo(1)
    assert list_clusters(restart(console)) == list_clusters(console)
    assert list_clusters(console) == {
        COWS: ("cow", "open", 12), HENS: (None, "open", 6), 3: (None, "open", 2),
    }  # fmt: skip


def test_undo_one_after_the_other(console: Console) -> None:
    first = list_clusters(console)
    act(console, 1, "name", clusters=[COWS], name="cow")
    act(console, 1, "merge", clusters=[COWS, HENS])
    act(console, 1, "skip", clusters=[COWS])
    for _ in range(3):
        console.undo(1)
    assert list_clusters(console) == first
    with pytest.raises(BadInput, match="nothing to undo"):
        console.undo(1)


def test_undo_of_an_earlier_change_leaves_later_ones(console: Console) -> None:
    named = act(console, 1, "name", clusters=[COWS], name="cow")
    act(console, 1, "reject", clusters=[HENS])
    console.undo(1, seq=named.seq)
    assert list_clusters(console) == {COWS: (None, "open", 12), HENS: (None, "rejected", 8)}


def test_undo_that_others_build_on_is_a_conflict(console: Console) -> None:
    named = act(console, 1, "name", clusters=[COWS], name="cow")
    act(console, 1, "name", clusters=[COWS], name="calf", person="bob")
    with pytest.raises(Conflict, match="undo what came later first") as refused:
        console.undo(1, seq=named.seq)
    assert [event.person for event in refused.value.events] == ["bob"]


def test_two_people_on_the_same_cluster(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", version=0, person="ann")
    with pytest.raises(Conflict, match="cluster 1 was changed by somebody else") as refused:
        act(console, 1, "name", clusters=[COWS], name="calf", version=0, person="bob")
    (what,) = refused.value.events
    assert (what.person, what.verb, what.about["name"]) == ("ann", "name", "cow")
    assert refused.value.version == 1
    act(console, 1, "name", clusters=[COWS], name="calf", version=1, person="bob")
    assert list_clusters(console)[COWS][0] == "calf"


def test_nobody_undoes_what_they_have_not_seen(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", person="ann")
    act(console, 1, "name", clusters=[HENS], name="hen", person="bob")
    with pytest.raises(Conflict, match="somebody else has made a change since") as refused:
        console.undo(1, version=1, person="ann")
    assert [event.person for event in refused.value.events] == ["bob"]
    console.undo(1, seq=1, version=1, person="ann")  # her own, by its number
    console.undo(1, version=3)
    assert list_clusters(console) == {COWS: (None, "open", 12), HENS: (None, "open", 8)}


def test_two_people_on_different_clusters(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", version=0, person="ann")
    act(console, 1, "name", clusters=[HENS], name="hen", version=0, person="bob")
    assert {name for name, *_ in list_clusters(console).values()} == {"cow", "hen"}


def test_two_servers_on_one_store(console: Console) -> None:
    other = restart(console)
    assert list_clusters(other) == list_clusters(console)  # both have it in memory now
    act(console, 1, "name", clusters=[COWS], name="cow", version=0)
    with pytest.raises(Conflict):
        act(other, 1, "name", clusters=[COWS], name="calf", version=0)
    act(other, 1, "name", clusters=[HENS], name="hen", version=0)
    assert list_clusters(restart(console)) == list_clusters(other) == list_clusters(console)


def test_rows_that_somebody_else_moved(console: Console) -> None:
    act(console, 1, "move", rows=[30], to=HENS, version=0, person="ann")
    with pytest.raises(Conflict):
        act(console, 1, "label", rows=[30], name="calf", version=0, person="bob")


def test_into_needs_a_class_that_is_known(console: Console) -> None:
    with pytest.raises(BadInput, match="'cow' is not known"):
        act(console, 1, "into", clusters=[COWS], name="cow")
    act(console, 1, "into", clusters=[COWS], name="dog")
    assert list_clusters(console)[COWS][0] == "dog"


def test_split_by_k_means(console: Console) -> None:
    act(console, 1, "merge", clusters=[COWS, HENS])
    act(console, 1, "split", cluster=COWS)
    assert sorted(size for *_, size in list_clusters(console).values()) == [8, 12]


def test_labels_go_out_and_come_back(console: Console, store: Store) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow")
    told = {row.identity: row.label for row in window_view.list_labels(console, 1, "") if row.label}
    other = put_window(console, "second")
    assert console.import_labels(other, told) is not None
    assert console.import_labels(other, told) is None
    again = {
        row.identity: row.label for row in window_view.list_labels(console, other, "") if row.label
    }
    assert again == told
    with pytest.raises(BadInput, match="1 identities are not in this window"):
        console.import_labels(1, {"owl-1": "owl"})


def test_what_is_not_there(console: Console) -> None:
    with pytest.raises(NotFound):
        console.window(9)
    with pytest.raises(NotFound):
        console.open(9)
    with pytest.raises(NotFound):
        console.job(9)
    for path in ("/no/such/folder", "~nobody-of-this-name/x", "/" + "x" * 5000, "a\0b"):
        with pytest.raises(BadInput, match="path"):
            console.add_window(path)


def test_only_some_folders_may_be_read(store: Store, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    inside, outside = tmp_path_factory.mktemp("inside"), tmp_path_factory.mktemp("outside")
    (inside / "link").symlink_to(outside)
    console = Console(store, store.folder / "model", roots=[inside])
    assert console.add_window(str(inside)).status == "queued"
    for path in (outside, inside / ".." / outside.name, inside / "link"):
        with pytest.raises(BadInput, match="outside of what may be read"):
            console.add_window(str(path))
    store.put_fact("model", {"version": None, "classes": [], "events": []})
    for data in (str(outside), "hf:somebody/something"):
        with pytest.raises(BadInput, match="outside of what may be read"):
            updates.start_fit(console, data)
    assert updates.start_fit(console, "digits")
    with pytest.raises(BadInput, match="changed already"):
        updates.start_fit(console, str(inside))


def test_memory_is_bounded(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_OPEN", 2)
    for _ in range(3):
        put_window(console)
    for window in (1, 2, 3, 4):
        act(console, window, "name", clusters=[COWS], name="cow")
    assert len(console._open) == 2
    assert all(list_clusters(console, window)[COWS][0] == "cow" for window in (1, 2, 3, 4))
