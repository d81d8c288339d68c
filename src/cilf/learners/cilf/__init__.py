"""CILF as we measured it to be best and as its paper states it, and joint, its upper bound."""

from cilf.learners.cilf.curriculum import CurriculumDetector
from cilf.learners.cilf.detect import Detector
from cilf.learners.cilf.embedding import Loss
from cilf.learners.cilf.joint import Joint
from cilf.learners.cilf.learner import CILF, DETECTORS
from cilf.learners.cilf.paper import CILFPaper

__all__ = ["CILF", "DETECTORS", "CILFPaper", "CurriculumDetector", "Detector", "Joint", "Loss"]
