from __future__ import annotations

import numpy as np
import pytest

from cilf.console.state import KNOWN, Cluster, Move, Patch, PatchConflict, State

NEW = Patch({2: (None, Cluster())}, (Move((2,), 0, 2),))


def make_state() -> State:
    """Row 0 is known, 1-2 in cluster 0, 3-4 in cluster 1."""
    return State(np.array([KNOWN, 0, 0, 1, 1]))


def content(state: State) -> tuple[dict[int, Cluster], list[int], int]:
    return dict(state.clusters), state.cluster_of.tolist(), state.version


def test_undo_is_refused_when_others_build_on_it() -> None:
    state = make_state()
    state.apply(NEW)
    state.apply(Patch({}, (Move((3,), 1, 2),)))
    before = content(state)
    with pytest.raises(PatchConflict, match="other members"):
        state.apply(NEW.reverse())
    assert content(state) == before


def test_undo_of_a_name_is_refused_when_it_was_changed_since() -> None:
    state = make_state()
    first = Patch({0: (Cluster(), Cluster("cow"))})
    state.apply(first)
    state.apply(Patch({0: (Cluster("cow"), Cluster("hen"))}))
    with pytest.raises(PatchConflict, match="cluster 1 has changed since"):
        state.apply(first.reverse())


def test_instances_that_have_moved_are_not_moved_again() -> None:
    state = make_state()
    state.apply(NEW)
    with pytest.raises(PatchConflict, match="instances have moved since"):
        state.check(Patch({}, NEW.moves))


def test_versions_and_numbers() -> None:
    state = State(np.array([KNOWN, 0, 0, 1, 1]))
    for patch in (NEW, NEW.reverse()):
        state.apply(patch)
    assert (state.version, state.highest) == (2, 2)
    assert state.last_change == {0: 2, 2: 2}
    assert state.sizes() == {0: 2, 1: 2}
    assert NEW.numbers == {0, 2}
