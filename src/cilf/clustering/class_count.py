"""The rules for the number of novel classes in a window, by name."""

from __future__ import annotations

from cilf.clustering.evidence import CountRule
from cilf.clustering.unexplained_mass import UnexplainedMass
from cilf.clustering.validity_curve import Curvature, Silhouette

COUNT_RULES: dict[str, type[CountRule]] = {
    "unexplained-mass": UnexplainedMass,
    "silhouette": Silhouette,
    "curvature": Curvature,
}
