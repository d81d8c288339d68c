"""The rules for the number of novel classes in a window, by name."""

from __future__ import annotations

from cilf.clustering.evidence import CountRule
from cilf.clustering.excess_mass import ExcessMass
from cilf.clustering.validity_curve import Curvature, Silhouette

COUNT_RULES: dict[str, type[CountRule]] = {
    "excess-mass": ExcessMass,
    "silhouette": Silhouette,
    "curvature": Curvature,
}
