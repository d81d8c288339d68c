from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cilf.console import verbs
from cilf.console.app import make_app
from cilf.console.bodies import ClustersBody
from cilf.console.guard import Access
from cilf.console.pages import ACTIONS
from cilf.console.service import Console
from cilf.console.state import Cluster, Patch, State
from cilf.console.verbs import VERBS, Context, Verb, describe_event
from cilf.errors import BadInput

from .conftest import COWS, URL

DOCS = Path(__file__).parents[2] / "docs" / "console.md"


def make_state() -> State:
    """Rows 0-1 are known, 2-5 in cluster 1, 6-8 in cluster 2, 9 in cluster 3."""
    return State(np.array([-1, -1, 0, 0, 0, 0, 1, 1, 1, 2]))


def patch_of(state: State, verb: str, key: str = "", **fields: Any) -> Patch:
    embedding = np.arange(10.0)[:, None].astype(np.float32)
    body = VERBS[verb].body(**fields)
    return VERBS[verb].function(Context(state, embedding, key), body)


def apply(state: State, verb: str, key: str = "", **fields: Any) -> None:
    state.apply(patch_of(state, verb, key, **fields))


def content(state: State) -> dict[str, Any]:
    return {
        "clusters": dict(state.clusters),
        "rows": state.cluster_of.tolist(),
        "opinions": dict(state.opinions),
    }


USES: dict[str, tuple[str, dict[str, Any]]] = {
    "name": ("name", {"key": "cow", "clusters": [1, 2], "name": "cow"}),
    "into": ("into", {"key": "cow", "clusters": [1], "name": "cow"}),
    "reject": ("reject", {"clusters": [2]}),
    "skip": ("skip", {"clusters": [1]}),
    "merge": ("merge", {"clusters": [2, 1, 3]}),
    "split": ("split", {"cluster": 1, "rows": [2, 3]}),
    "split by k-means": ("split", {"cluster": 1}),
    "move": ("move", {"rows": [2, 6], "to": 3}),
    "move the last one": ("move", {"rows": [9], "to": 1}),
    "move to a new cluster": ("move", {"rows": [0, 2, 9], "to": "new"}),
    "move to the known": ("move", {"rows": [7, 8], "to": "known"}),
    "assign": ("assign", {"clusters": [1, 3], "assignee": "Ann"}),
    "review": ("review", {"rows": [0, 4]}),
    "opinion": ("opinion", {"key": "cow", "rows": [2, 0], "name": "cow"}),
    "label": ("label", {"key": "cow", "rows": [2, 9, 0], "name": "cow"}),
}


@pytest.mark.parametrize("use", USES)
def test_every_verb_changes_something_and_can_be_undone_and_redone(use: str) -> None:
    state = make_state()
    before = content(state)
    verb, fields = USES[use]
    patch = patch_of(state, verb, **fields)
    assert content(state) == before, "a verb is pure"
    assert Patch.from_json(patch.to_json()) == patch
    state.apply(patch)
    after = content(state)
    assert after != before
    state.apply(patch.reverse())
    assert content(state) == before
    state.apply(patch.reverse().reverse())
    assert content(state) == after
    assert state.version == 3


def test_the_uses_cover_the_table() -> None:
    assert {verb for verb, _ in USES.values()} | {"reopen"} == set(VERBS)


def test_name() -> None:
    state = make_state()
    apply(state, "name", "cow", clusters=[1, 2], name="cow")
    assert state.clusters == {0: Cluster("cow"), 1: Cluster("cow"), 2: Cluster()}


def test_merge_takes_the_first_name_there_is() -> None:
    state = make_state()
    apply(state, "name", "cow", clusters=[1], name="cow")
    apply(state, "merge", clusters=[2, 1])
    assert state.clusters == {1: Cluster("cow"), 2: Cluster()}
    assert state.members(1).tolist() == [2, 3, 4, 5, 6, 7, 8]


def test_split_makes_new_clusters_and_leaves_the_rest() -> None:
    state = make_state()
    state.apply(verbs.split_off(state, 0, [[2, 3], [5]]))
    assert [state.members(number).tolist() for number in (0, 3, 4)] == [[4], [2, 3], [5]]


def test_numbers_of_clusters_are_never_used_twice() -> None:
    state = make_state()
    first = patch_of(state, "move", rows=[2], to="new")
    state.apply(first)
    state.apply(first.reverse())
    second = patch_of(state, "move", rows=[6], to="new")
    assert max(first.clusters) < max(second.clusters)


def test_a_cluster_without_members_ends() -> None:
    state = make_state()
    apply(state, "move", rows=[9], to=2)
    assert 2 not in state.clusters


def test_label_uses_the_cluster_of_that_class() -> None:
    state = make_state()
    apply(state, "name", "cow", clusters=[2], name="cow")
    state.apply(verbs.label_rows(state, {2: "cow", 3: "hen"}))
    assert state.cluster_of[2] == 1
    assert state.clusters[3] == Cluster("hen")


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "no cluster": ("name", {"clusters": [], "name": "cow"}),
    "unknown cluster": ("name", {"clusters": [8], "name": "cow"}),
    "open already": ("reopen", {"clusters": [1]}),
    "one to merge": ("merge", {"clusters": [2, 2]}),
    "all split off": ("split", {"cluster": 1, "rows": [2, 3, 4, 5]}),
    "one member to split": ("split", {"cluster": 3}),
    "more than there are": ("split", {"cluster": 2, "n_clusters": 4}),
    "not a member": ("split", {"cluster": 1, "rows": [6]}),
    "no rows": ("move", {"rows": [], "to": 1}),
    "row out of range": ("move", {"rows": [10], "to": 1}),
    "negative row": ("move", {"rows": [-1], "to": 1}),
    "there already": ("move", {"rows": [2], "to": 1}),
    "unknown target": ("move", {"rows": [2], "to": 9}),
    "no labels": ("label", {"rows": [], "name": "cow"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused(case: str) -> None:
    verb, fields = REFUSED[case]
    with pytest.raises((BadInput, ValidationError)):
        patch_of(make_state(), verb, **fields)


@pytest.mark.parametrize("lists", [[], [[2], [2]], [[6]]])
def test_lists_of_members_that_cannot_be_split_off(lists: list[list[int]]) -> None:
    with pytest.raises(BadInput):
        verbs.split_off(make_state(), 0, lists)


rows = st.lists(st.integers(0, 9), min_size=1, max_size=4)
clusters = st.lists(st.integers(1, 6), min_size=1, max_size=3)
names = st.sampled_from(["cow", "hen"])
steps = st.one_of(
    st.tuples(
        st.sampled_from(["name", "into", "merge", "reject", "skip", "reopen"]),
        names,
        st.fixed_dictionaries({"clusters": clusters}),
    ),
    st.tuples(
        st.just("split"), names, st.fixed_dictionaries({"cluster": st.integers(1, 6), "rows": rows})
    ),
    st.tuples(
        st.just("move"),
        names,
        st.fixed_dictionaries(
            {"rows": rows, "to": st.one_of(st.integers(1, 6), st.sampled_from(["new", "known"]))}
        ),
    ),
    st.tuples(st.just("label"), names, st.fixed_dictionaries({"rows": rows})),
)


@given(st.lists(steps, max_size=12))
def test_any_story_can_be_undone_step_by_step(story: list[Any]) -> None:
    state = make_state()
    contents, patches = [content(state)], []
    for verb, key, fields in story:
        if "name" in VERBS[verb].body.model_fields:
            fields = fields | {"name": key}
        try:
            patch = patch_of(state, verb, key, **fields)
        except BadInput:
            continue
        state.apply(patch)
        patches.append(patch)
        contents.append(copy.deepcopy(content(state)))
        assert set(state.cluster_of[state.cluster_of >= 0].tolist()) == set(state.clusters)
    for patch in reversed(patches):
        assert content(state) == contents.pop()
        state.apply(patch.reverse())
    assert content(state) == contents.pop()


# ----------------------------------------------------------------- the table


def archive(context: Context, body: ClustersBody) -> Patch:
    """Archive clusters for the records."""
    state = context.state
    return Patch({n: (state.clusters[n], Cluster("archive")) for n in body.numbers})


def test_a_new_verb_is_a_function_and_a_line(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checklist: REST, schema, button, key, help, history and undo derive from the table."""
    line = Verb(archive, ClustersBody, "Archive", "a", "archived {clusters}")
    monkeypatch.setitem(VERBS, "archive", line)
    with TestClient(make_app(console, Access()), base_url=URL) as client:
        done = client.post("/api/windows/1/archive", json={"clusters": [COWS], "person": "Ann"})
        assert done.status_code == 200, done.text
        assert done.json()["event"]["verb"] == "archive"
        assert client.get(f"/api/windows/1/clusters/{COWS}").json()["name"] == "archive"
        described = client.get("/openapi.json").json()["paths"]["/api/windows/{window}/archive"]
        assert described["post"]["description"] == "Archive clusters for the records."
        page = client.get("/windows/1").text
        assert re.search(
            r'<button [^>]*data-verb="archive"[^>]*aria-keyshortcuts="a">Archive', page
        )
        assert "<dt><kbd>A</kbd></dt><dd>Archive clusters for the records.</dd>" in page
        assert "Ann archived cluster 1" in page
        assert client.post("/api/windows/1/archive", json={"clusters": []}).status_code == 422
        assert client.post("/api/windows/1/undo", json={}).status_code == 200
        assert client.get(f"/api/windows/1/clusters/{COWS}").json()["name"] is None


def test_keys_are_free_and_every_verb_describes_itself() -> None:
    keys = [verb.key for verb in VERBS.values() if verb.key]
    assert len(set(keys)) == len(keys)
    assert not set(keys) & {action.key for action in ACTIONS.values()}  # of the page itself
    assert all(verb.description.endswith(".") for verb in VERBS.values())
    assert {verb.for_rows for verb in VERBS.values() if verb.for_rows} <= set(VERBS)


def test_the_docs_have_the_table() -> None:
    lines = [
        f"| `{verb.key.upper()}` | {name} | {verb.description} |"
        for name, verb in VERBS.items()
        if verb.key
    ]
    table = "\n".join(lines)
    assert table in DOCS.read_text(), f"the table of docs/console.md has to be:\n{table}"


def test_the_history_reads_as_sentences() -> None:
    assert describe_event("name", {"clusters": [1, 2], "name": "a{b}"}) == (
        "named cluster 1, 2 “a{b}”"
    )
    assert describe_event("label", {"n": 2, "name": "a, b"}) == "labelled 2 as “a, b”"
    assert describe_event("move", {"n": 1, "to": 3}) == "moved 1 to cluster 3"
    assert describe_event("undo", {"what": "name", "about": {}}) == "undid name"
    assert describe_event("a verb of another version", {}) == "a verb of another version"
