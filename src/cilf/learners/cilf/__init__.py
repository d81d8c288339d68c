"""CILF, the method of the paper, and joint, which trains its network anew on everything."""

from cilf.learners.cilf.joint import Joint
from cilf.learners.cilf.learner import CILF

__all__ = ["CILF", "Joint"]
