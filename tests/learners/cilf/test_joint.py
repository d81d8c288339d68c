"""Joint training."""

from collections.abc import Callable

import numpy as np

from cilf import CILF
from cilf.core.types import Array
from cilf.learners import Joint

Digits = Callable[..., tuple[Array, Array]]


def test_joint_learns_everything_again(digits: Digits) -> None:
    first, second = digits(range(3), 0, 45), digits(range(3, 5), 0, 45)
    learner = Joint(epochs=3).fit(*first).update(*second)
    both = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    anew = CILF(epochs=3).fit(*both)
    fresh = digits(range(5), 60, 15)[0]
    assert np.array_equal(learner.predict(fresh), anew.predict(fresh))
