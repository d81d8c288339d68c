"""CILF with the choices of its paper, wherever it states one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from cilf.core.parameters import inherit_descriptions
from cilf.core.types import Array
from cilf.errors import BadConfig
from cilf.learners.cilf.curriculum import CurriculumDetector
from cilf.learners.cilf.detect import Detector
from cilf.learners.cilf.embedding import Loss
from cilf.learners.cilf.learner import CILF
from cilf.learners.cilf.readout import PROTOTYPE
from cilf.nn.backbones import IMAGE_BACKBONES, Factory
from cilf.nn.training import Training

REMEDIES = {1: ("texts", "minilm"), 2: ("vectors", "mlp")}  # by the number of axes of X


@inherit_descriptions
@dataclass(kw_only=True, repr=False, eq=False)
class CILFPaper(CILF):
    """CILF as its paper states it: ResNet-18, and detection by curriculum clustering.

    It is :class:`CILF` with other defaults: the paper's choices wherever it states one, and those
    of :class:`CILF` elsewhere. For every number of novel classes ``detect`` tunes a copy of the
    network on pseudo-labels of the window, from easy to hard (Algorithm 2).

    Parameters
    ----------
    backbone : str or callable, default="resnet18"
        Network that turns an instance into features. That of the paper takes images. "mlp" takes
        vectors, "minilm" texts. ``docs/methods/cilf.md`` lists all names.
    update_epochs : int, default=20
        Number of passes over the data in an update.
    calibration_size : int, default=0
        Number of labelled instances of each class that are kept out of all training.
    training : Training, default=Training(batch_size=128, augmentation=None)
        Optimiser and batches; see :class:`cilf.nn.training.Training`.
    readout : {"auto", "lda", "prototype", "ridge"}, default="prototype"
        How ``predict`` tells the known classes. The paper takes the nearest prototype.
    loss : Loss, default=Loss(margin=5.0, negatives=None, lambda2=1.0, exact_prototypes=False)
        Terms of the objective; see :class:`cilf.learners.cilf.embedding.Loss`.
    detector : Detector or CurriculumDetector, default=CurriculumDetector()
        Search for novel classes. ``DETECTORS`` names both.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1.0, size=(40, 2)) for c in (0, 8, 16)])
    >>> learner = CILFPaper(backbone="mlp", epochs=5).fit(X[:80], ["a"] * 40 + ["b"] * 40)
    >>> learner.set_params(detector__epochs=1, detector__k_max=2).detect(X, n_novel=1).n_novel
    1

    Reference: Yang, Sun, Zhu, Fu, Xiong and Yang, "Learning Adaptive Embedding Considering
    Incremental Class", TKDE. ``docs/methods/cilf.md`` numbers the differences that remain.
    """

    name: ClassVar[str] = "cilf-paper"
    check_parameters: ClassVar[Mapping[str, Any]] = {
        "backbone": "mlp",
        "width": 64,
        "detector__epochs": 1,
        "detector__steps": 10,
        "detector__k_max": 3,
    }

    backbone: str | Factory = "resnet18"
    update_epochs: int = 20
    calibration_size: int = 0
    readout: str = PROTOTYPE
    training: Training = Training(batch_size=128, augmentation=None)
    loss: Loss = Loss(margin=5.0, negatives=None, lambda2=1.0, exact_prototypes=False)
    detector: Detector | CurriculumDetector = CurriculumDetector()

    def _wanted_features(self, X: Array) -> str | None:
        if X.ndim in REMEDIES and self.backbone in IMAGE_BACKBONES:
            kind, remedy = REMEDIES[X.ndim]
            raise BadConfig(
                f"backbone of {self.name!r} is {self.backbone!r}, which takes images, but X holds "
                f"{kind}: set backbone={remedy!r} (--set backbone={remedy})."
            )
        return super()._wanted_features(X)
