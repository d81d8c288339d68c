"""SENC-MAS: matrix sketches of all known data and of each class."""

from cilf.learners.senc_mas.learner import SENCMaS

__all__ = ["SENCMaS"]
