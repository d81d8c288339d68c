"""The exceptions can be caught as cilf's own and as Python's."""

from __future__ import annotations

import pytest

from cilf.errors import BadConfig, BadInput, CilfError, NotFitted
from cilf.learners import make


@pytest.mark.parametrize("error", [BadInput, BadConfig, NotFitted])
def test_every_error_has_the_root_and_is_a_value_error(error: type[CilfError]) -> None:
    assert issubclass(error, CilfError)
    assert issubclass(error, ValueError)


def test_each_mistake_raises_its_own_error() -> None:
    with pytest.raises(BadConfig, match="did you mean 'cilf'"):
        make("clif")
    with pytest.raises(BadInput, match=r"^y "):
        make("iforest").fit([[0.0], [1.0]], [1])
    with pytest.raises(NotFitted, match="call fit"):
        make("iforest").predict([[0.0]])
