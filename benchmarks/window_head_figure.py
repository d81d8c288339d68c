"""One window before and after the head has learned on it: docs/images/window_head.png.

CILF_DATA=... OMP_NUM_THREADS=1 python benchmarks/window_head_figure.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray

from cilf import CILF
from cilf.clustering.kmeans import refine
from cilf.learners.cilf.detect import Detector
from cilf.nn.network import as_tensor

sys.path.insert(0, str(Path(__file__).parent))
from count import CASES, Pool

OUT = Path(__file__).parents[1] / "docs" / "images" / "window_head.png"
DATA, SEED, N_NOVEL = "cifar10", 1008, 2
COLOURS = {"known": "#8a8f98", "novel": "#d9480f"}


def main() -> int:
    torch.set_num_threads(1)
    case, pool = CASES[DATA], Pool(CASES[DATA], SEED)
    learner = CILF(seed=SEED, backbone=case.backbone, memory_size=case.memory)
    learner.fit(pool.X[pool.initial], pool.y[pool.initial])
    rows = pool.draw_novel(N_NOVEL, case.usual, 1)
    is_novel = ~np.isin(pool.y[rows], pool.known)
    x = as_tensor(pool.X[rows], learner._network.device)
    window = learner.detector._transform(x, learner._model())
    found = {
        name: learner.set_params(detector=detector).detect(pool.X[rows], n_novel=N_NOVEL)
        for name, detector in (
            ("without the head", Detector(head_weight=0.0)),
            ("with the head", Detector()),
        )
    }
    cluster = torch.from_numpy(found["without the head"].cluster)
    centres = torch.stack([window.points[cluster == k].mean(0) for k in range(N_NOVEL)])
    margins = window.measure_margins(refine(window.points, window.known, centres)).window
    head = window.start_head(SEED)
    assert head is not None
    excess = head.excess(0).window
    figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), sharey=True, layout="constrained")
    for axis, (name, detection) in zip(axes, found.items(), strict=True):
        plot(axis, margins.numpy(), excess.numpy(), is_novel, detection.is_novel)
        right = np.mean([(detection.is_novel == is_novel)[is_novel == v].mean() for v in (0, 1)])
        axis.set_title(f"{name}: {right:.0%} right, on average of known and novel", fontsize=10)
    axes[0].set_ylabel("excess of the window over labelled instances")
    axes[0].legend(loc="lower right", fontsize=8)
    figure.savefig(OUT, dpi=110)
    print(OUT)
    return 0


def plot(
    axis: Axes, x: NDArray[np.float32], y: NDArray[np.float32], truth: NDArray[np.bool_],
    called: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Dots are called known, triangles are called novel; the colour is the truth."""
    for name, is_class in (("known", ~truth), ("novel", truth)):
        for word, of, marker in (("known", ~called, "."), ("novel", called, "^")):
            shown = is_class & of
            axis.scatter(
                x[shown], y[shown], s=14, marker=marker, color=COLOURS[name], alpha=0.6,
                linewidths=0, label=f"{name}, called {word}",
            )  # fmt: skip
    axis.set_xlabel(
        "margin: distance to the nearest known centre less that to the nearest novel one"
    )


if __name__ == "__main__":
    sys.exit(main())
