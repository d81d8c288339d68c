from __future__ import annotations

import json

import numpy as np
import pytest

from cilf.console import service, updates, window_view
from cilf.console.classes import Classes
from cilf.console.service import Conflict, Console, NotFound
from cilf.console.store import Event, Store, Update
from cilf.errors import BadInput

from .conftest import COWS, HENS, act, put_window


def clusters(console: Console, window: int = 1) -> dict[int, tuple[str | None, str, int]]:
    return {
        g["cluster"]: (g["name"], g["status"], g["size"])
        for g in window_view.list_clusters(console, window)
    }


def restart(console: Console) -> Console:
    """The console of another process on the same store."""
    return Console(console.store, console.model_path)


def test_clusters_start_as_what_was_found(console: Console) -> None:
    assert clusters(console) == {COWS: (None, "open", 12), HENS: (None, "open", 8)}
    assert window_view.list_clusters(console, 1)[0]["nearest"] == "dog"
    assert window_view.count_known(console, 1) == {"cat": 20, "dog": 10}


def test_everything_is_there_after_a_restart(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", person="ann")
    act(console, 1, "split", cluster=HENS, rows=[42, 43])
    act(console, 1, "label", rows=[0], name="calf")
    console.undo(1)
    assert clusters(restart(console)) == clusters(console)
    assert clusters(console) == {
        COWS: ("cow", "open", 12), HENS: (None, "open", 6), 3: (None, "open", 2),
    }  # fmt: skip


def test_undo_takes_back_one_after_the_other(console: Console) -> None:
    first = clusters(console)
    act(console, 1, "name", clusters=[COWS], name="cow")
    act(console, 1, "merge", clusters=[COWS, HENS])
    act(console, 1, "skip", clusters=[COWS])
    for _ in range(3):
        console.undo(1)
    assert clusters(console) == first
    with pytest.raises(BadInput, match="nothing to undo"):
        console.undo(1)


def test_undo_of_an_earlier_change_leaves_later_ones(console: Console) -> None:
    named = act(console, 1, "name", clusters=[COWS], name="cow")
    act(console, 1, "reject", clusters=[HENS])
    console.undo(1, seq=named.seq)
    assert clusters(console) == {COWS: (None, "open", 12), HENS: (None, "rejected", 8)}


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
    assert clusters(console)[COWS][0] == "calf"


def test_nobody_takes_back_what_they_have_not_seen(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", person="ann")
    act(console, 1, "name", clusters=[HENS], name="hen", person="bob")
    with pytest.raises(Conflict, match="somebody else has changed something since") as refused:
        console.undo(1, version=1, person="ann")
    assert [event.person for event in refused.value.events] == ["bob"]
    console.undo(1, seq=1, version=1, person="ann")  # her own, by its number
    console.undo(1, version=3)
    assert clusters(console) == {COWS: (None, "open", 12), HENS: (None, "open", 8)}


def test_two_people_on_different_clusters(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow", version=0, person="ann")
    act(console, 1, "name", clusters=[HENS], name="hen", version=0, person="bob")
    assert {name for name, *_ in clusters(console).values()} == {"cow", "hen"}


def test_two_servers_on_one_store(console: Console) -> None:
    other = restart(console)
    assert clusters(other) == clusters(console)  # both have it in memory now
    act(console, 1, "name", clusters=[COWS], name="cow", version=0)
    with pytest.raises(Conflict):
        act(other, 1, "name", clusters=[COWS], name="calf", version=0)
    act(other, 1, "name", clusters=[HENS], name="hen", version=0)
    assert clusters(restart(console)) == clusters(other) == clusters(console)


def test_rows_that_somebody_else_moved(console: Console) -> None:
    act(console, 1, "move", rows=[30], to=HENS, version=0, person="ann")
    with pytest.raises(Conflict):
        act(console, 1, "label", rows=[30], name="calf", version=0, person="bob")


def test_into_needs_a_class_that_is_known(console: Console) -> None:
    with pytest.raises(BadInput, match="'cow' is not known"):
        act(console, 1, "into", clusters=[COWS], name="cow")
    act(console, 1, "into", clusters=[COWS], name="dog")
    assert clusters(console)[COWS][0] == "dog"


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\nb", "Cat", "ca\u200bt"])
def test_names_that_cannot_be_used(console: Console, name: str) -> None:
    with pytest.raises(BadInput):
        console.make_class(name)


def test_rename_shows_everywhere_and_can_be_undone(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cwo")
    console.rename("cwo", "cow")
    console.rename("dog", "hound")
    assert clusters(console)[COWS][0] == "cow"
    assert window_view.count_known(console, 1) == {"cat": 20, "hound": 10}
    console.undo_rename()
    assert window_view.count_known(console, 1) == {"cat": 20, "dog": 10}
    console.undo_rename()
    assert clusters(restart(console))[COWS][0] == "cwo"
    with pytest.raises(BadInput, match="nothing to undo"):
        console.undo_rename()


def test_two_people_rename(console: Console) -> None:
    seen = console.classes().version
    act(
        console, 1, "name", clusters=[COWS], name="cow", person="bob"
    )  # makes a class, which is in nobody's way
    console.rename("dog", "hound", version=seen, person="ann")
    console.rename("hound", "dog", person="ann")
    with pytest.raises(Conflict, match="somebody else has renamed the class"):
        console.rename("dog", "wolf", version=seen, person="bob")


def test_a_name_may_be_corrected_in_case_only_and_back(console: Console) -> None:
    console.rename("dog", "Dog")
    console.rename("Dog", "dog")
    assert window_view.count_known(console, 1) == {"cat": 20, "dog": 10}


@pytest.mark.parametrize(
    ("old", "new"), [("dog", "cat"), ("cow", "hen"), ("dog", "dog"), ("dog", "CAT"), ("dog", "")]
)
def test_renames_that_are_refused(console: Console, old: str, new: str) -> None:
    with pytest.raises(BadInput):
        console.rename(old, new)


def test_the_earlier_name_of_another_class_is_refused(console: Console) -> None:
    console.rename("dog", "hound")
    with pytest.raises(BadInput, match="'dog' is a former name of 'hound'"):
        act(console, 1, "name", clusters=[COWS], name="dog")


def test_what_the_model_calls_a_class_is_no_name_for_another_one() -> None:
    update = Event(0, 1, "update", {}, {"keys": {"above": "up"}}, "", "")
    named = Event(0, 2, "rename", {}, {"names": {"up": ["above", "top"]}}, "", "")
    classes = Classes(["above"], [update, named])
    with pytest.raises(BadInput, match="'above' is a former name of 'top'"):
        classes.check_name("above")
    assert classes.renames == {"above": "top"}
    assert classes.make_rename("top", "above") == {"names": {"up": ["top", "above"]}}
    assert classes.make_rename("top", "up") == {"names": {"up": ["top", "up"]}}


def test_a_name_that_another_store_gave_the_model(console: Console, store: Store) -> None:
    model = console.model()
    update = {"event": "update", "version": 2, "before": 1, "renamed": {"dog": "hound"}}
    told = {"version": 2, "classes": ["cat", "hound"], "events": [*model["events"], update]}
    store.put_fact("model", {**model, **told})
    assert window_view.count_known(console, 1) == {
        "cat": 20,
        "hound": 10,
    }  # found when it was "dog"
    assert console.classes().key("hound") == "dog"
    assert not console.classes().renames


def test_a_name_that_was_taken_back_is_in_nobodys_way(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="Cow")
    with pytest.raises(BadInput, match="in case or blanks only"):
        act(console, 1, "name", clusters=[HENS], name="cow")
    console.undo(1)
    act(console, 1, "name", clusters=[COWS], name="cow")
    assert clusters(console)[COWS][0] == "cow"


def test_what_an_update_holds(console: Console, store: Store) -> None:
    act(console, 1, "name", clusters=[COWS], name="cwo")
    console.rename("cwo", "cow")  # before the update: the model never has the typo
    console.rename("dog", "hound")
    act(console, 1, "label", rows=[42], name="hound")
    act(console, 1, "reject", clusters=[HENS])
    job = store.job(updates.start_update(console, 1, person="ann"))
    assert job is not None
    answers = json.loads((console.folder(1) / job.about["labels"]).read_text())
    assert answers == {f"cow-{i}": "cow" for i in range(30, 42)} | {"hen-42": "hound"}
    assert job.about["keys"] == {"cow": "cwo", "hound": "dog"}
    assert job.about["renames"] == {"dog": "hound"}
    with pytest.raises(BadInput, match="changed already"):
        updates.start_update(console, 1)


def test_the_first_decision_about_an_update_counts(console: Console, store: Store) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow")
    job = updates.start_update(console, 1)
    store.add_update(Update(job, 1, 1, 1, "pending", {}))
    updates.decide(console, job, keep=True)
    with pytest.raises(Conflict, match="decided already"):
        updates.decide(console, job, keep=False)
    assert [job.kind for job in store.jobs()] == ["update"]


def test_what_the_model_has_left_is_not_accepted(console: Console, store: Store) -> None:
    fit = console.model()["events"][0]
    update = {"event": "update", "version": 2, "before": 1}
    for version, decided in ((1, False), (2, True)):
        store.put_fact("model", {"version": version, "classes": [], "events": [fit, update]})
        store.add_update(Update(7, 1, 2, 1, "pending", {}))
        if not decided:
            with pytest.raises(Conflict, match="was rolled back since"):
                updates.decide(console, 7, keep=True)
        else:
            assert updates.decide(console, 7, keep=True) is None


def test_the_model_does_one_thing_after_the_other(console: Console, store: Store) -> None:
    events = [*console.model()["events"], {"event": "update", "version": 2, "before": 1}]
    store.put_fact("model", {"version": 2, "classes": [], "events": events})
    updates.start_rollback(console, 1)
    with pytest.raises(BadInput, match="changed already"):
        updates.start_rollback(console, 1)
    store.add_update(Update(7, 1, 2, 1, "pending", {}))
    with pytest.raises(BadInput, match="changed already"):
        updates.decide(console, 7, keep=False)
    assert store.updates(job=7)[0].decision == "pending"


def test_an_update_needs_names(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow")
    act(console, 1, "skip", clusters=[COWS])
    with pytest.raises(BadInput, match="no cluster has a name yet"):
        updates.start_update(console, 1)


def test_split_by_itself(console: Console) -> None:
    act(console, 1, "merge", clusters=[COWS, HENS])
    act(console, 1, "split", cluster=COWS)
    assert sorted(size for *_, size in clusters(console).values()) == [8, 12]


def test_budget_is_spent_by_answers_and_given_back(console: Console) -> None:
    assert window_view.suggest_queries(console, 1, "representative")["left"] == 10
    act(console, 1, "label", rows=[31], name="cow")
    act(console, 1, "name", clusters=[HENS], name="hen")
    queries = window_view.suggest_queries(console, 1, "representative")
    assert (queries["answers"], queries["left"], len(queries["rows"])) == (2, 8, 8)
    console.undo(1)
    assert window_view.suggest_queries(console, 1, "mixed")["answers"] == 1
    console.set_budget(1, 1)
    assert window_view.suggest_queries(console, 1, "mixed")["rows"] == []


@pytest.mark.parametrize("strategy", ["random", "representative", "uncertain", "mixed"])
def test_questions_are_about_open_clusters_in_turns(console: Console, strategy: str) -> None:
    rows = window_view.suggest_queries(console, 1, strategy)["rows"]
    assert len(set(rows)) == 10
    ids = console.open(1).gallery.ids
    assert {ids[row][:3] for row in rows[:2]} == {"cow", "hen"}


def test_corners_of_a_cluster(console: Console) -> None:
    shown = window_view.find_exemplars(console, 1, COWS)
    rows = [shown.medoid, *shown.nearest, *shown.farthest, *shown.random]
    assert len(rows) == 12
    assert set(rows) == set(range(30, 42))
    z = console.open(1).gallery.embedding[30:42].astype(float)
    to_all = ((z[:, None] - z[None]) ** 2).sum(axis=(1, 2))
    assert shown.medoid == 30 + int(np.argmin(to_all))


def test_members_are_paged(console: Console) -> None:
    total, first = window_view.list_members(console, 1, COWS, most=5)
    _, second = window_view.list_members(console, 1, COWS, start=5, most=50)
    assert total == 12
    assert sorted(first + second) == list(range(30, 42))
    assert window_view.list_members(console, 1, 0, "cat", most=100)[0] == 20


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
    assert all(clusters(console, window)[COWS][0] == "cow" for window in (1, 2, 3, 4))
