"""CFO: a classifier that is trained on counterfactual images of no known class."""

from cilf.learners.cfo.learner import CFO

__all__ = ["CFO"]
