from __future__ import annotations

from typing import Any

import pytest

from cilf.data.options import Options
from cilf.errors import BadConfig


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 2}, "size is 2"),
        ({"size": (2, 8)}, "size is 2"),
        ({"size": (8,)}, r"size is \(8,\): give pixels a side, \(h, w\), or \(h, w, 3\)"),
        ({"size": (8, 8, 4)}, r"size is \(8, 8, 4\)"),
        ({"test_share": 0.0}, "test_share is 0.0"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        Options(**options)


def test_an_option_without_a_meaning_is_refused() -> None:
    options = Options(size=16)
    options.refuse("label", "column", where="here")
    with pytest.raises(BadConfig, match="size is 16, which means nothing for here: leave it out"):
        options.refuse("label", "size", where="here")


def test_every_option_has_a_name() -> None:
    assert Options.names() == ["label", "column", "columns", "size", "skip_bad", "test_share"]
