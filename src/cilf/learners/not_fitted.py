"""The error of a learner that is not fitted; here, since importing scikit-learn takes time."""

from __future__ import annotations

from sklearn.exceptions import NotFittedError

from cilf.errors import NotFitted


class NotFittedLearner(NotFitted, NotFittedError):  # type: ignore[misc] # sklearn has no types
    """``NotFitted``, which scikit-learn knows too."""
