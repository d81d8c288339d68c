"""CFO: counterfactual images teach a classifier what none of the known classes looks like."""

from cilf.learners.cfo.learner import CFO

__all__ = ["CFO"]
