"""DEN: a dynamically expandable network."""

from cilf.learners.den.learner import DEN

__all__ = ["DEN"]
