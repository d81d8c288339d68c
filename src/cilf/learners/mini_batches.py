"""A learner in the manner of river: it learns labelled instances as they come.

River's pipelines and evaluations take it once it is registered as one of its classifiers::

    river.base.MiniBatchClassifier.register(MiniBatchLearner)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from cilf.core import Detection, Label, validation
from cilf.core.extras import optional
from cilf.core.types import Array, Floats
from cilf.errors import BadInput, NotFitted
from cilf.learners.base import Learner

Row = Mapping[str, float]  # the name of a feature -> its value


class MiniBatchLearner:
    """A learner that takes mini-batches as tables of pandas, or single instances as dictionaries.

    Labelled instances wait until there are enough of them. Then the learner is fitted, or updated
    if it is fitted already.

    Parameters
    ----------
    learner : Learner
        The learner. One that is fitted already is updated from the start.
    at_least : int, default=100
        Number of labelled instances that a fit or an update takes at least.

    Examples
    --------
    >>> import pandas as pd
    >>> from cilf.learners.iforest import IForest
    >>> stream = MiniBatchLearner(IForest(n_estimators=20), at_least=40)
    >>> X = pd.DataFrame({"length": [i % 20 / 20 + 5 * (i >= 20) for i in range(40)]})
    >>> y = pd.Series(["ant"] * 20 + ["bee"] * 20)
    >>> stream.predict_many(X.head(1)).tolist()
    [None]
    >>> stream.learn_many(X, y).predict_many(X.iloc[[3, 33]]).tolist()
    ['ant', 'bee']
    >>> stream.predict_one({"length": 5.2})
    'bee'
    >>> stream.detect_many(pd.DataFrame({"length": [0.5, 90.0]})).novelty.argsort().tolist()
    [0, 1]
    """

    _supervised: ClassVar[bool] = True  # what a pipeline of river asks before it gives labels

    def __init__(self, learner: Learner, *, at_least: int = 100) -> None:
        self.learner = learner
        self.at_least = validation.whole_number("at_least", at_least, least=1)
        self.columns: tuple[str, ...] = ()
        self._waiting: list[tuple[Array, Label]] = []
        self._is_fitted = hasattr(learner, "_classes")

    @property
    def n_waiting(self) -> int:
        """The number of labelled instances that wait to be learned."""
        return len(self._waiting)

    def learn_one(self, x: Row, y: Label) -> None:
        """Take a labelled instance."""
        self._take(self._read_row(x), [y])

    def learn_many(self, X: Any, y: Any) -> MiniBatchLearner:
        """Take labelled instances: a table, and the class of each of its rows."""
        values = self._read_table(X)
        labels = validation.labels(y, n=len(values)).tolist()
        self._take(values, labels)
        return self

    def learn_waiting(self) -> None:
        """Learn the instances that wait, however few they are."""
        if not self._waiting:
            return
        X, y = np.stack([x for x, _ in self._waiting]), [label for _, label in self._waiting]
        if self._is_fitted:
            self.learner.update(X, y)
        else:
            self.learner.fit(X, y)
        self._is_fitted, self._waiting = True, []

    def predict_one(self, x: Row) -> Label | None:
        """The known class of an instance; None before anything was learned."""
        return self._predict(self._read_row(x))[0]

    def predict_many(self, X: Any) -> Any:
        """The known class of each row of a table, as a series; None before anything was learned."""
        return _pandas().Series(self._predict(self._read_table(X)), index=X.index, dtype=object)

    def predict_proba_one(self, x: Row) -> dict[Label, float]:
        """The probability of each class; none if the learner gives no probabilities."""
        if (probability := self._find_probabilities(self._read_row(x))) is None:
            return {}
        return dict(zip(self._classes, probability[0].tolist(), strict=True))

    def predict_proba_many(self, X: Any) -> Any:
        """The probability of each class for each row, as a table with a column for each class."""
        probability = self._find_probabilities(self._read_table(X))
        columns = [] if probability is None else self._classes
        return _pandas().DataFrame(probability, index=X.index, columns=columns)

    def detect_many(self, X: Any, n_novel: int | None = None) -> Detection:
        """Find the novel classes in a table, as ``Learner.detect`` does."""
        values = self._read_table(X)
        if not self._is_fitted:
            raise NotFitted(f"nothing was learned yet, and {self.n_waiting} instances wait.")
        return self.learner.detect(values, n_novel)

    # ------------------------------------------------------------- inside

    @property
    def _classes(self) -> list[Label]:
        classes: list[Label] = self.learner.classes_.tolist()
        return classes

    def _take(self, values: Array, labels: list[Label]) -> None:
        self._waiting += zip(values, labels, strict=True)
        if len(self._waiting) >= self.at_least and (self._is_fitted or self._has_two_classes()):
            self.learn_waiting()

    def _has_two_classes(self) -> bool:
        return len({label for _, label in self._waiting}) >= validation.FEWEST_CLASSES

    def _predict(self, values: Array) -> list[Label | None]:
        if not self._is_fitted:
            return [None] * len(values)
        labels: list[Label | None] = self.learner.predict(values).tolist()
        return labels

    def _find_probabilities(self, values: Array) -> Floats | None:
        return self.learner.class_probabilities(values) if self._is_fitted else None

    def _read_row(self, x: Row) -> Array:
        if not isinstance(x, Mapping):
            raise BadInput(f"x is a {type(x).__name__}: give a dictionary of features.")
        self._require_columns(tuple(x))
        return validation.instances([[x[name] for name in self.columns]], name="x")

    def _read_table(self, X: Any) -> Array:
        if not isinstance(X, _pandas().DataFrame):
            raise BadInput(f"X is a {type(X).__name__}: give a table of pandas.")
        self._require_columns(tuple(X.columns))
        return validation.instances(X[list(self.columns)])

    def _require_columns(self, given: tuple[str, ...]) -> None:
        """Fix the features by the first instances; refuse others later, in whatever order."""
        self.columns = self.columns or given
        if set(given) != set(self.columns):
            odd = sorted(map(str, set(given) ^ set(self.columns)))
            raise BadInput(
                f"the features differ from the first ones in {', '.join(odd)}: give "
                f"{', '.join(map(str, self.columns))}."
            )


def _pandas() -> Any:
    return optional("pandas", extra="analysis", purpose="tables of instances")
