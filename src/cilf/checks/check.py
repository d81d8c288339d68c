"""A check is a function of an unfitted learner that returns or raises ``CheckFailed``."""

from __future__ import annotations

import functools
from collections.abc import Callable

from cilf.learners.base import Learner

Check = Callable[[Learner], None]


class CheckFailed(AssertionError):
    """A learner breaks its contract. The message names the check and what it observed."""


def check(function: Check) -> Check:
    """Turn every exception inside a check into a ``CheckFailed`` that names the check."""

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
    """The name of a check: the name of its function without the prefix ``check_``."""
    return function.__name__.removeprefix("check_")


def require(holds: bool, seen: str) -> None:
    """Fail the current check with the message ``seen`` unless ``holds``."""
    if not holds:
        raise AssertionError(seen)
