"""DTC: deep transfer clustering of a window."""

from cilf.learners.dtc.learner import DTC

__all__ = ["DTC"]
