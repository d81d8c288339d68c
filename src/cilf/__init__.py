"""Class-incremental learning on unlabelled streams.

A learner is fitted on some classes. In unlabelled windows it finds instances of novel classes and
estimates how many there are. A person answers queries, and an update learns the new labels without
forgetting the old classes.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cilf.core import Detection

if TYPE_CHECKING:
    from cilf.learners import CILF, load

__all__ = ["CILF", "Detection", "load"]
__version__ = version("cilf")


def __getattr__(name: str) -> Any:
    """Import the learners at their first use, since torch takes seconds to load."""
    if name not in __all__:
        raise AttributeError(f"module 'cilf' has no attribute {name!r}")
    from cilf import learners

    return getattr(learners, name)
