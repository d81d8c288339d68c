from __future__ import annotations

from pathlib import Path

from cilf.console import guide
from cilf.console.service import Console
from cilf.console.store import DONE, FAILED, PENDING, Store, Update

from .conftest import COWS, HENS, act, put_model, put_window


def test_each_state_has_a_next_step(tmp_path: Path) -> None:
    store = Store(tmp_path)
    console = Console(store, tmp_path / "model")
    assert "fit a model" in guide.find_first_step(console)
    job = store.add_job("fit")
    assert "wait until the model is fitted" in guide.find_first_step(console)
    store.change_job(job, status=DONE)
    put_model(store)
    assert guide.find_first_step(console) == "add a window of new data."
    put_window(console)
    assert "open window 1 (first)" in guide.find_first_step(console)
    assert "the 2 clusters without a name" in guide.find_next_step(console, 1)
    act(console, 1, "reject", clusters=[HENS])
    assert "look at the cluster, and name it (N)" in guide.find_next_step(console, 1)
    act(console, 1, "name", clusters=[COWS], name="cow")
    assert "update the model" in guide.find_next_step(console, 1)
    job = store.add_job("update", 1, labels="labels-2.json")
    assert "wait until the model is updated" in guide.find_next_step(console, 1)
    store.change_job(job, status=DONE)
    store.add_update(Update(job, 1, 2, 1, PENDING, {}))
    assert "accept the version or roll it back" in guide.find_next_step(console, 1)
    store.decide(job, "kept")
    assert "the model knows these names" in guide.find_next_step(console, 1)
    other = store.add_window("broken", "nowhere", 5)
    store.change_window(other, status=FAILED)
    act(console, 1, "name", clusters=[HENS], name="hen")
    assert "why the detection failed" in guide.find_first_step(console)
    store.close()
