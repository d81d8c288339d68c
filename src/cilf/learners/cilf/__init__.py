"""CILF, the method of the paper, and joint, which trains its network anew on everything."""

from cilf.learners.cilf.curriculum import CurriculumDetector
from cilf.learners.cilf.detect import Detector
from cilf.learners.cilf.embedding import Loss
from cilf.learners.cilf.joint import Joint
from cilf.learners.cilf.learner import CILF, DETECTORS

__all__ = ["CILF", "DETECTORS", "CurriculumDetector", "Detector", "Joint", "Loss"]
