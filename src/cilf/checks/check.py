"""What a check is: a function of an unfitted learner that returns, or raises ``CheckFailed``."""

from __future__ import annotations

import functools
from collections.abc import Callable

from cilf.learners.base import Learner

Check = Callable[[Learner], None]


class CheckFailed(AssertionError):
    """A learner does not keep its contract; the message names the check and what was seen."""


def check(function: Check) -> Check:
    """Make whatever goes wrong inside a check a ``CheckFailed`` that says which check it was."""

    @functools.wraps(function)
    def named_check(learner: Learner) -> None:
        try:
            function(learner)
        except AssertionError as failure:
            raise CheckFailed(f"{name_of(function)}: {failure}") from failure
        except Exception as error:
            seen = f"{type(learner).__name__} raised {type(error).__name__}: {error}"
            raise CheckFailed(f"{name_of(function)}: {seen}") from error

    return named_check


def name_of(function: Check) -> str:
    """The name a check goes by: its function's, without the prefix."""
    return function.__name__.removeprefix("check_")


def require(holds: bool, seen: str) -> None:
    """Fail the check that is running, with what was seen, unless ``holds``."""
    if not holds:
        raise AssertionError(seen)
