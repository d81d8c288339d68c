from __future__ import annotations

import pytest

from cilf.core.names import check_name, check_names, normalize_name, require_distinct
from cilf.errors import BadInput


def test_names_that_differ_in_case_only_are_refused() -> None:
    assert check_names(["cat", "dog", "cat"], ["cat"]) == ["cat", "dog", "cat"]
    for name in ("Cat", "CAT"):
        with pytest.raises(BadInput, match=f"the names '{name}' and 'cat' look alike"):
            check_names([name], ["cat"])
    with pytest.raises(BadInput, match="'big  dog' and 'Big dog' look alike"):
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cat", "CAT"),
        ("cat", "c\u0430t"),  # a Cyrillic letter
        ("cat", "\uff43\uff41\uff54"),  # of full width
        ("cat", "ca\u200bt"),  # with a blank of no width
        ("cat", "cat\ufe0f"),
        ("caf\u00e9", "cafe\u0301"),
        ("a b", "a\u00a0 b"),
        ("stra\u00dfe", "STRASSE"),
    ],
)
def test_classes_of_data_that_look_alike_are_refused(one: str, other: str) -> None:
    with pytest.raises(BadInput, match="look alike"):
        require_distinct([one, "dog", other])
    require_distinct([one, one, "dog"])


def test_the_difference_of_two_names_is_in_sight() -> None:
    with pytest.raises(BadInput, match=r"the names 'c\\u0430t' and 'cat' look alike"):
        check_name("c\u0430t", known=["cat"])


def test_a_class_of_data_that_a_terminal_would_obey_is_refused() -> None:
    with pytest.raises(BadInput, match=r"'a\\x1b\[2J' has control characters"):
        require_distinct(["a\x1b[2J"])


def test_names_of_one_script_are_left_alone() -> None:
    require_distinct(
        ["\u043a\u043e\u0442", "\u043a\u0438\u0442", "\u732b", "1", "l", "Oslo", "0slo"]
    )
