"""Points in the plane, in a table, for tests that fit a model on some classes and find others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

PLACES = {"left": (-6.0, 0.0), "right": (6.0, 0.0), "up": (0.0, 9.0), "down": (0.0, -9.0)}


def write_points(path: Path, sizes: dict[str, int], seed: int, labelled: bool = False) -> Path:
    """Write points around the place of each class; their identities begin with the class."""
    rng = np.random.default_rng(seed)
    lines = ["id,x,y" + (",label" if labelled else "")]
    for name, n in sizes.items():
        for i, (x, y) in enumerate(rng.normal(PLACES[name], 0.5, size=(n, 2))):
            lines.append(f"{name}-{i},{x:.4f},{y:.4f}" + (f",{name}" if labelled else ""))
    path.write_text("\n".join(lines) + "\n")
    return path
