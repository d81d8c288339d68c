from __future__ import annotations

import numpy as np
import pytest

from cilf.core.types import Array
from cilf.learners.base import Clean, LabelCheck
from cilf.workflow.label_doubts import LabelDoubts, bound_excess, find_label_doubts

CLEAN = Clean(n=100, n_doubtful=2, n_agreeing=95)


def judge(
    doubtful: int, n: int = 40, *, clean: Clean = CLEAN, group: Array | None = None
) -> list[LabelDoubts]:
    """The doubts about ``n`` labels of a class and as many of another, which are fine."""
    is_doubtful = np.arange(2 * n) < doubtful
    check = LabelCheck(
        is_doubtful=is_doubtful,
        likely=np.where(is_doubtful, "cat", "dog"),
        group=np.arange(2 * n) if group is None else group,
        clean=clean,
    )
    y = np.repeat(["dog", "eel"], n)
    return find_label_doubts(check, y, [f"image-{row}" for row in range(2 * n)])


@pytest.mark.parametrize(("doubtful", "refuses"), [(0, None), (2, None), (6, False), (14, True)])
def test_more_doubts_than_right_labels_have(doubtful: int, refuses: bool | None) -> None:
    found = {doubts.label: doubts for doubts in judge(doubtful)}
    assert ("dog" in found) == (refuses is not None)
    assert "eel" not in found
    if refuses is not None:
        assert found["dog"].refuses == refuses
        assert found["dog"].suspects == tuple(f"image-{row}" for row in range(doubtful))


def test_a_check_that_cannot_tell_the_classes_refuses_nothing() -> None:
    (dog, everything) = judge(20, clean=Clean(100, 2, 60))
    assert not dog.refuses
    assert not everything.refuses


def test_classes_whose_right_labels_look_wrong_are_not_doubted() -> None:
    assert judge(12, clean=Clean(100, 30, 80)) == []


def test_copies_count_once() -> None:
    assert judge(12, group=np.where(np.arange(80) < 12, 0, np.arange(80))) == []


def test_nothing_to_compare_with() -> None:
    assert find_label_doubts(None, np.array(["a"]), ["i"]) == []
    assert judge(14, clean=Clean(0, 0, 0)) == []


def test_the_message_names_the_suspects() -> None:
    assert str(judge(14)[0]) == (
        "14 of 40 new labels of class 'dog' contradict the others (of right labels 2% do): they, "
        "or labels of 'cat', are wrong: image-0, image-1, image-2, image-3, image-4 and 9 more"
    )


def test_the_bound_of_a_difference() -> None:
    """Newcombe (1998) gives 0.0524 for 56 of 70 against 48 of 80."""
    assert bound_excess(56, 70, 48, 80) == pytest.approx(0.0524, abs=1e-4)
