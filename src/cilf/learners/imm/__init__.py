"""IMM: incremental moment matching by the mean and by the mode."""

from cilf.learners.imm.learner import IMMMean, IMMMode

__all__ = ["IMMMean", "IMMMode"]
