"""Class-incremental learning on unlabelled streams.

Learn some classes, watch a stream, find the instances of classes nobody told you about (several
at once, and how many), ask a person for names, learn them, and do not forget the old ones.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cilf.core import Detection

if TYPE_CHECKING:
    from cilf.learners import CILF, load

__all__ = ["CILF", "Detection", "load"]
__version__ = version("cilf")


def __getattr__(name: str) -> Any:
    """Import the learners when first asked for: torch, which they need, takes seconds to load."""
    if name not in __all__:
        raise AttributeError(f"module 'cilf' has no attribute {name!r}")
    from cilf import learners

    return getattr(learners, name)
