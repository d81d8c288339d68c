"""Class-incremental learning on unlabelled streams.

Learn some classes, watch a stream, find the instances of classes nobody told you about (several
at once, and how many), ask a person for names, learn them, and do not forget the old ones.
"""

from importlib.metadata import version

from cilf.core import Detection
from cilf.learners import CILF, load

__all__ = ["CILF", "Detection", "load"]
__version__ = version("cilf")
