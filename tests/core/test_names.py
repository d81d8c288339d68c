from __future__ import annotations

import pytest

from cilf.core.names import check_name, check_names, normalize_name
from cilf.errors import BadInput


def test_names_that_differ_in_case_only_are_refused() -> None:
    assert check_names(["cat", "dog", "cat"], ["cat"]) == ["cat", "dog", "cat"]
    for name in ("Cat", "CAT"):
        with pytest.raises(BadInput, match=f"'{name}' differs from 'cat' in case"):
            check_names([name], ["cat"])
    with pytest.raises(BadInput, match="'big  dog' differs from 'Big dog'"):
        check_names(["Big dog", "big  dog"])


@pytest.mark.parametrize("typed", ["", "  ", "a\0", "a\tb", "a\nb", "\ud800", "x" * 201])
def test_what_cannot_be_read_is_no_name(typed: str) -> None:
    with pytest.raises(BadInput, match="give 1 to 200 printable characters"):
        check_name(typed)


def test_a_known_class_keeps_its_name_whatever_it_is() -> None:
    assert check_name("a\tb", known=["a\tb"]) == "a\tb"
    assert check_names(["Cat", "cat"], known=["cat", "Cat"]) == ["Cat", "cat"]


def test_accents_are_written_in_one_way() -> None:
    assert normalize_name("cafe\u0301 ") == check_name("caf\u00e9") == "caf\u00e9"
