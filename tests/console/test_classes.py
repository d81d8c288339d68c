from __future__ import annotations

import pytest

from cilf.console import window_view
from cilf.console.classes import Classes
from cilf.console.service import Conflict, Console
from cilf.console.store import Event, Store
from cilf.errors import BadInput

from .conftest import (
    COWS,
    HENS,
    act,
    list_clusters,
    restart,
)


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\nb", "Cat", "ca\u200bt"])
def test_names_that_cannot_be_used(console: Console, name: str) -> None:
    with pytest.raises(BadInput):
        console.make_class(name)


def test_rename_shows_everywhere_and_can_be_undone(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cwo")
    console.rename("cwo", "cow")
    console.rename("dog", "hound")
    assert list_clusters(console)[COWS][0] == "cow"
    assert window_view.count_known(console, 1) == {"cat": 20, "hound": 10}
    console.undo_rename()
    assert window_view.count_known(console, 1) == {"cat": 20, "dog": 10}
    console.undo_rename()
    assert list_clusters(restart(console))[COWS][0] == "cwo"
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


def test_a_label_of_the_model_is_no_name_for_another_class() -> None:
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


def test_a_name_that_was_undone_is_in_nobodys_way(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="Cow")
    with pytest.raises(BadInput, match="look alike"):
        act(console, 1, "name", clusters=[HENS], name="cow")
    console.undo(1)
    act(console, 1, "name", clusters=[COWS], name="cow")
    assert list_clusters(console)[COWS][0] == "cow"
