from __future__ import annotations

import json

import pytest

from cilf.console import updates
from cilf.console.service import Conflict, Console
from cilf.console.store import Store, Update
from cilf.errors import BadInput

from .conftest import (
    COWS,
    HENS,
    act,
)


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
    assert store.updates()[0].decision == "pending"


def test_an_update_needs_names(console: Console) -> None:
    act(console, 1, "name", clusters=[COWS], name="cow")
    act(console, 1, "skip", clusters=[COWS])
    with pytest.raises(BadInput, match="no cluster has a name yet"):
        updates.start_update(console, 1)
