"""CPE: a prototype ensemble that grows with the classes."""

from cilf.learners.cpe.learner import CPE

__all__ = ["CPE"]
