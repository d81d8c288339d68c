"""Stories of two people on servers of their own, against a small model of one window.

No label is lost, none is there twice, and the log has every acknowledged change once, in order.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cilf.console.app import make_app
from cilf.console.detections import detection_folder
from cilf.console.guard import Access
from cilf.console.jobs import Worker
from cilf.console.service import Console
from cilf.console.store import DONE, Store

from .conftest import SIZES, URL, put_model, put_window

NAMES = ("cow", "hen", "calf")
N_ROWS = sum(SIZES.values())
FIRST_COW, FIRST_HEN = SIZES["cat"] + SIZES["dog"], SIZES["cat"] + SIZES["dog"] + SIZES["cow"]
KNOWN = 0

people = st.sampled_from(("ann", "bob"))
rows = st.lists(st.integers(0, N_ROWS - 1), min_size=1, max_size=3, unique=True)
names = st.sampled_from(NAMES)
places = st.integers(0, 9)  # of a cluster among those that are there


@dataclass
class Window:
    """The model: the cluster of each row, the name of each cluster, the last change of each."""

    cluster_of: list[int]
    names: dict[int, str | None]
    changed: dict[int, int] = field(default_factory=dict)

    @property
    def labels(self) -> dict[int, str]:
        named = {row: self.names.get(number) for row, number in enumerate(self.cluster_of)}
        return {row: name for row, name in named.items() if name is not None}

    def copy(self) -> Window:
        return replace(self, cluster_of=list(self.cluster_of), names=dict(self.names))


class Story(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="cilf-story-"))
        store = Store(self.folder)
        put_model(store)
        first = Console(store, self.folder / "model")
        put_window(first)
        self.consoles = {"ann": first, "bob": Console(Store(self.folder), self.folder / "model")}
        self.clients = {
            person: TestClient(make_app(console, Access()), base_url=URL)
            for person, console in self.consoles.items()
        }
        for client in self.clients.values():
            client.__enter__()
        cluster_of = [KNOWN] * FIRST_COW + [1] * SIZES["cow"] + [2] * SIZES["hen"]
        self.window = Window(cluster_of, {1: None, 2: None})
        self.highest = 2
        self.log: list[str] = []  # verbs, in the order in which they were acknowledged
        self.standing: list[tuple[Window, set[int]]] = []  # before each change, and what it changed
        self.renewed = 0  # seq of the last event that changed the detection
        self.seen = {"ann": 0, "bob": 0}  # versions

    def teardown(self) -> None:
        for client in self.clients.values():
            client.__exit__(None, None, None)
        for console in self.consoles.values():
            console.store.close()
        shutil.rmtree(self.folder)

    # ------------------------------------------------------------- the model

    def note(self, verb: str, changed: set[int], before: Window) -> None:
        """A change that was acknowledged."""
        self.log.append(verb)
        self.standing.append((before, changed))
        self.window.changed |= dict.fromkeys(changed - {KNOWN}, len(self.log))

    def move(self, wanted: dict[int, str]) -> set[int]:
        """Move rows to the first cluster of their name. Returns the clusters that are changed."""
        changed = set()
        for name in dict.fromkeys(wanted.values()):
            named = sorted(n for n, known in self.window.names.items() if known == name)
            target = named[0] if named else self.highest + 1
            self.highest = max(self.highest, target)
            self.window.names.setdefault(target, name)
            for row in (row for row, one in wanted.items() if one == name):
                if self.window.cluster_of[row] != target:
                    changed |= {self.window.cluster_of[row], target}
                    self.window.cluster_of[row] = target
        self.drop_empty()
        return changed

    def drop_empty(self) -> None:
        there = set(self.window.cluster_of)
        self.window.names = {n: name for n, name in self.window.names.items() if n in there}

    def find_cluster(self, place: int) -> int:
        numbers = sorted(self.window.names)
        return numbers[place % len(numbers)]

    def send(self, person: str, verb: str, **body: Any) -> httpx.Response:
        body = {"person": person, **body}
        return self.clients[person].post(f"/api/windows/1/{verb}", json=body)

    # ------------------------------------------------------------- what people do

    @rule(person=people)
    def look(self, person: str) -> None:
        """See what there is."""
        self.seen[person] = self.clients[person].get("/api/windows/1/clusters").json()["version"]
        assert self.seen[person] == len(self.log)

    @rule(person=people, rows=rows, name=names)
    def label(self, person: str, rows: list[int], name: str) -> None:
        before = self.window.copy()
        changed = self.move(dict.fromkeys(rows, name))
        answer = self.send(person, "label", rows=rows, name=name)
        assert answer.status_code == (200 if changed else 400), answer.text
        if changed:
            self.note("label", changed, before)

    @precondition(lambda self: self.window.names)
    @rule(person=people, place=places, name=names, checks=st.booleans())
    def name(self, person: str, place: int, name: str, checks: bool) -> None:
        """Name a cluster; who ``checks`` is refused if it has changed since they looked."""
        number, before = self.find_cluster(place), self.window.copy()
        version = {"version": self.seen[person]} if checks else {}
        answer = self.send(person, "name", clusters=[number], name=name, **version)
        seen = self.seen[person] if checks else len(self.log)
        if max(self.window.changed.get(number, 0), self.renewed) > seen:
            assert answer.status_code == 409, answer.text
        elif self.window.names[number] == name:
            assert answer.status_code == 400, answer.text
        else:
            assert answer.status_code == 200, answer.text
            self.window.names[number] = name
            self.note("name", {number}, before)

    @precondition(lambda self: len(self.window.names) > 1)
    @rule(person=people, place=places, step=st.integers(1, 5))
    def merge(self, person: str, place: int, step: int) -> None:
        first, before = self.find_cluster(place), self.window.copy()
        others = [number for number in sorted(self.window.names) if number != first]
        other = others[step % len(others)]
        assert self.send(person, "merge", clusters=[first, other]).status_code == 200
        self.window.names[first] = self.window.names[first] or self.window.names[other]
        self.window.cluster_of = [first if n == other else n for n in self.window.cluster_of]
        self.drop_empty()
        self.note("merge", {first, other}, before)

    @rule(person=people)
    def undo(self, person: str) -> None:
        answer = self.send(person, "undo")
        if not self.standing:
            assert answer.status_code == 400, answer.text
            return
        assert answer.status_code == 200, answer.text
        (former, changed), later = self.standing.pop(), self.window.changed
        self.window = replace(former, changed=later)
        self.log.append("undo")
        if not changed:  # a detection
            self.renewed = len(self.log)
        self.window.changed |= dict.fromkeys(changed - {KNOWN}, len(self.log))

    @rule(person=people, labels=st.dictionaries(st.integers(0, N_ROWS - 1), names, max_size=4))
    def import_labels(self, person: str, labels: dict[int, str]) -> None:
        console, before = self.consoles[person], self.window.copy()
        ids = console.open(1).gallery.ids
        lines = [f"{ids[row]},{name}\n" for row, name in labels.items()]
        content = ("identity,label\n" + "".join(lines)).encode()
        job = self.clients[person].post("/api/windows/1/labels", content=content).json()["job"]
        claimed = console.store.claim_job()
        assert claimed is not None
        Worker(console.store, console.model_path).do(claimed)
        done = self.clients[person].get(f"/api/jobs/{job}").json()
        assert done["status"] == DONE, done
        fresh = {row: name for row, name in labels.items() if before.labels.get(row) != name}
        assert done["result"]["labels"] == len(fresh)
        if fresh:
            self.note("label", self.move(fresh), before)

    @rule(person=people)
    def detect_again(self, person: str) -> None:
        """Find the same clusters again: every label is carried over, into new clusters."""
        console, before = self.consoles[person], self.window.copy()
        seq = len(self.log) + 1
        folder = detection_folder(console.folder(1), seq)
        folder.mkdir()
        for path in console.folder(1).iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        facts = {**console.window(1).facts, "version": 1}
        console.renew(1, seq, facts, lambda former: np.arange(N_ROWS), person)
        self.log.append("detect again")
        self.standing.append((before, set()))
        self.renewed = seq
        state = console.open(1).state
        self.window.cluster_of = [int(number) + 1 for number in state.cluster_of]
        self.window.names = {n + 1: cluster.name for n, cluster in state.clusters.items()}
        self.highest = state.highest + 1
        assert self.window.labels == before.labels

    # ------------------------------------------------------------- what holds

    @invariant()
    def everybody_sees_every_label_once(self) -> None:
        for client in self.clients.values():
            lines = client.get("/api/windows/1/labels?format=jsonl").content.splitlines()
            shown = [json.loads(line)["label"] for line in lines]
            assert len(shown) == N_ROWS
            labels = {row: label for row, label in enumerate(shown) if label}
            assert labels == self.window.labels

    @invariant()
    def the_log_has_every_change_once_and_in_order(self) -> None:
        for console in self.consoles.values():
            events = console.store.events(1)
            assert [event.seq for event in events] == list(range(1, len(self.log) + 1))
            assert [event.verb for event in events] == self.log


TestStory = Story.TestCase
TestStory.settings = settings(
    max_examples=6, stateful_step_count=10, derandomize=True, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
