from __future__ import annotations

import numpy as np

from cilf.workflow.content_columns import choose_content_columns

TAKEN = ("identity", "label", "name")


def test_texts_are_shown_on_one_line() -> None:
    X = np.array(["two\n lines", "x" * 2000], dtype=object)
    shown = choose_content_columns(X, ("message",), TAKEN)
    assert shown.names == ("message",)
    assert shown.cells(X[0]) == ("two lines",)
    assert len(shown.cells(X[1])[0]) == 1000
    assert choose_content_columns(X, (), TAKEN).names == ("text",)


def test_the_first_values_of_a_table_are_shown_under_names_of_their_own() -> None:
    X = np.arange(14, dtype=np.float32).reshape(2, 7) / 3
    shown = choose_content_columns(X, ("Name", "a", "A", "", " b;\tb ", "c", "d"), TAKEN)
    assert shown.names == ("Name (data)", "a", "A (data)", "value", "b b")
    assert shown.cells(X[0]) == ("0", "0.333333", "0.666667", "1", "1.33333")


def test_images_and_arrays_without_columns_are_not_shown() -> None:
    for X in (np.zeros((2, 4, 4), np.uint8), np.zeros((2, 4))):
        shown = choose_content_columns(X, (), TAKEN)
        assert (shown.names, shown.cells(X[0])) == ((), ())
