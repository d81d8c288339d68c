"""LACU-SVM: support vector machines for learning with augmented classes."""

from cilf.learners.lacu_svm.learner import LACUSVM

__all__ = ["LACUSVM"]
