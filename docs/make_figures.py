"""Make the figures of the explanations anew: ``python docs/make_figures.py``.

Each shows one detection of ``cilf`` in embedded digits. The files are docs/images/window_*.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

IMAGES = Path(__file__).parent / "images"
KNOWN, NOVEL = (
    ("#3b76af", "#519e3e", "#8d69b8", "#84584e", "#7f7f7f"),
    ("#ef8636", "#c53932", "#d57dbe"),
)
SEED = 1


def main() -> None:
    import matplotlib as mpl
    from sklearn.manifold import TSNE

    from cilf import CILF
    from cilf.data import load_dataset

    mpl.use("svg")
    mpl.rcParams |= {"font.size": 9, "axes.titlesize": 10, "axes.spines.top": False}
    data = load_dataset("digits")
    X, y = data.train.X, data.train.y
    known = np.flatnonzero(y < 5)
    labelled, fresh = known[::2], known[1::2]
    novel = np.flatnonzero((y >= 5) & (y < 8))[::2]
    window = np.concatenate([fresh, novel])
    learner = CILF(seed=SEED).fit(X[labelled], y[labelled])
    found = learner.detect(X[window])
    points = TSNE(2, random_state=SEED).fit_transform(found.embedding)
    draw_window(points, found)
    draw_count(found)
    draw_novelty(found, y[window] >= 5)


def draw_window(points, found) -> None:
    """The window before and after its detection, on a plane."""
    import matplotlib.pyplot as plt

    figure, (before, after) = plt.subplots(1, 2, figsize=(7.6, 3.4), layout="constrained")
    before.scatter(*points.T, s=7, color="#9a9a9a", linewidths=0)
    before.set_title("the window, without labels")
    for position, name in enumerate(np.unique(found.label)):
        rows = ~found.is_novel & (found.label == name)
        after.scatter(*points[rows].T, s=7, color=KNOWN[position], linewidths=0, alpha=0.45)
    for cluster in range(found.n_novel):
        rows = found.cluster == cluster
        colour = NOVEL[cluster % len(NOVEL)]
        after.scatter(
            *points[rows].T, s=9, color=colour, linewidths=0, label=f"cluster {cluster + 1}"
        )
    after.set_title("the detection")
    after.legend(frameon=False, loc="best", markerscale=2)
    for axes in (before, after):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    _save(figure, "window_detection")


def draw_count(found) -> None:
    """The probability of each number of novel classes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.6, 2.2), layout="constrained")
    numbers = [k for k in sorted(found.count_probability) if k <= 8]
    axes.bar(numbers, [found.count_probability[k] for k in numbers], color="#3b76af", width=0.7)
    axes.set(xlabel="number of novel classes", ylabel="probability", xticks=numbers)
    axes.spines["right"].set_visible(False)
    _save(figure, "window_count")


def draw_novelty(found, is_novel) -> None:
    """The novelty and the p-value of known and of novel instances."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 2.5), layout="constrained")
    for axes, values, title in (
        (left, found.novelty, "novelty: ranks the window"),
        (right, found.novelty_p, "novelty_p: judges one instance"),
    ):
        bins = np.linspace(values.min(), values.max(), 26)
        for rows, name, colour in ((~is_novel, "known", "#3b76af"), (is_novel, "novel", "#ef8636")):
            axes.hist(values[rows], bins, alpha=0.7, label=f"{name} classes", color=colour)
        axes.set(title=title, ylabel="instances")
        axes.spines["right"].set_visible(False)
    left.legend(frameon=False)
    _save(figure, "window_scores")


def _save(figure, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=160)
    print(IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
