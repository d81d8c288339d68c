from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cilf.console import verbs
from cilf.console.state import KNOWN, DoesNotApply, Group, Patch, State
from cilf.errors import BadInput


def window() -> State:
    """Rows 0-1 known, 2-5 in group 0, 6-8 in group 1, 9 in group 2."""
    return State(np.array([-1, -1, 0, 0, 0, 0, 1, 1, 1, 2]))


def picture(state: State) -> dict[str, Any]:
    return {"groups": dict(state.groups), "rows": state.group_of.tolist()}


VERBS = {
    "name": lambda s: verbs.name(s, [0, 1], "cow"),
    "reject": lambda s: verbs.reject(s, [1]),
    "skip": lambda s: verbs.skip(s, [0]),
    "merge": lambda s: verbs.merge(s, [1, 0, 2]),
    "split": lambda s: verbs.split(s, 0, [[2, 3], [5]]),
    "move": lambda s: verbs.move(s, [2, 6], 2),
    "move the last one": lambda s: verbs.move(s, [9], 0),
    "move into a new group": lambda s: verbs.move(s, [0, 2, 9], None),
    "move to the known": lambda s: verbs.move(s, [7, 8], KNOWN),
    "label": lambda s: verbs.label(s, {2: "cow", 9: "cow", 0: "hen"}),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_changes_something_and_can_be_undone_and_redone(verb: str) -> None:
    state = window()
    before = picture(state)
    patch = VERBS[verb](state)
    assert picture(state) == before, "a verb is pure"
    state.apply(patch)
    after = picture(state)
    assert after != before
    state.apply(patch.reversed())
    assert picture(state) == before
    state.apply(patch.reversed().reversed())
    assert picture(state) == after
    assert state.version == 3


@pytest.mark.parametrize("verb", VERBS)
def test_patches_survive_json(verb: str) -> None:
    patch = VERBS[verb](window())
    assert Patch.from_json(patch.to_json()) == patch


def test_name() -> None:
    state = window()
    state.apply(verbs.name(state, [0, 1], "cow"))
    assert state.groups == {0: Group("cow"), 1: Group("cow"), 2: Group()}


def test_merge_takes_the_first_name_there_is() -> None:
    state = window()
    state.apply(verbs.name(state, [0], "cow"))
    state.apply(verbs.merge(state, [1, 0]))
    assert state.groups == {1: Group("cow"), 2: Group()}
    assert state.members(1).tolist() == [2, 3, 4, 5, 6, 7, 8]


def test_split_makes_new_groups_and_leaves_the_rest() -> None:
    state = window()
    state.apply(verbs.split(state, 0, [[2, 3], [5]]))
    assert [state.members(g).tolist() for g in (0, 3, 4)] == [[4], [2, 3], [5]]


def test_numbers_of_groups_are_never_used_twice() -> None:
    state = window()
    first = verbs.move(state, [2], None)
    state.apply(first)
    state.apply(first.reversed())
    second = verbs.move(state, [6], None)
    assert max(first.groups) < max(second.groups)


def test_a_group_without_members_ends() -> None:
    state = window()
    state.apply(verbs.move(state, [9], 1))
    assert 2 not in state.groups


def test_label_uses_the_group_of_that_name() -> None:
    state = window()
    state.apply(verbs.name(state, [1], "cow"))
    state.apply(verbs.label(state, {2: "cow", 3: "hen"}))
    assert state.group_of[2] == 1
    assert state.groups[3] == Group("hen")


REFUSED = {
    "no group": lambda s: verbs.name(s, [], "cow"),
    "unknown group": lambda s: verbs.name(s, [7], "cow"),
    "named so already": lambda s: verbs.reopen(s, [0]),
    "one to merge": lambda s: verbs.merge(s, [1, 1]),
    "all split off": lambda s: verbs.split(s, 0, [[2, 3, 4, 5]]),
    "nothing split off": lambda s: verbs.split(s, 0, []),
    "not a member": lambda s: verbs.split(s, 0, [[6]]),
    "twice": lambda s: verbs.split(s, 0, [[2], [2]]),
    "no rows": lambda s: verbs.move(s, [], 0),
    "row out of range": lambda s: verbs.move(s, [10], 0),
    "negative row": lambda s: verbs.move(s, [-1], 0),
    "there already": lambda s: verbs.move(s, [2], 0),
    "unknown target": lambda s: verbs.move(s, [2], 9),
    "no labels": lambda s: verbs.label(s, {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused(case: str) -> None:
    with pytest.raises(BadInput):
        REFUSED[case](window())


def test_undoing_is_refused_when_others_build_on_it() -> None:
    state = window()
    made = verbs.move(state, [2], None)
    state.apply(made)
    state.apply(verbs.move(state, [6], 3))
    before = picture(state)
    with pytest.raises(DoesNotApply, match="other members"):
        state.apply(made.reversed())
    assert picture(state) == before


def test_undoing_a_name_is_refused_when_it_was_changed_since() -> None:
    state = window()
    first = verbs.name(state, [0], "cow")
    state.apply(first)
    state.apply(verbs.name(state, [0], "hen"))
    with pytest.raises(DoesNotApply, match="group 1 is not as it was"):
        state.apply(first.reversed())


rows = st.lists(st.integers(0, 9), min_size=1, max_size=4)
groups = st.lists(st.integers(0, 5), min_size=1, max_size=3)
names = st.sampled_from(["cow", "hen"])
steps = st.one_of(
    st.tuples(st.just(verbs.name), groups, names),
    st.tuples(st.just(verbs.reject), groups),
    st.tuples(st.just(verbs.skip), groups),
    st.tuples(st.just(verbs.reopen), groups),
    st.tuples(st.just(verbs.merge), groups),
    st.tuples(st.just(verbs.split), st.integers(0, 5), st.lists(rows, max_size=2)),
    st.tuples(st.just(verbs.move), rows, st.one_of(st.none(), st.integers(-1, 5))),
    st.tuples(st.just(verbs.label), st.dictionaries(st.integers(0, 9), names, max_size=3)),
)


@given(st.lists(steps, max_size=12))
def test_any_story_can_be_taken_back_step_by_step(story: list[Any]) -> None:
    state = window()
    pictures, patches = [picture(state)], []
    for verb, *arguments in story:
        try:
            patch = verb(state, *arguments)
        except BadInput:
            continue
        state.apply(patch)
        patches.append(patch)
        pictures.append(copy.deepcopy(picture(state)))
        assert set(state.group_of[state.group_of >= 0].tolist()) == set(state.groups)
    for patch in reversed(patches):
        assert picture(state) == pictures.pop()
        state.apply(patch.reversed())
    assert picture(state) == pictures.pop()
