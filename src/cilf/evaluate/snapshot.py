"""Snapshots: a 2-D map of a window's instances, their thumbnails or first words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cilf.core.random import derive_seed, generator
from cilf.core.types import Array, Floats, Ints
from cilf.evaluate.records import LONGEST_EXCERPT, Snapshot

if TYPE_CHECKING:
    from cilf.evaluate.run import Step

MAX_INSTANCES = 1000  # of a window
MIN_MAPPED = 10  # instances; with fewer the map shows the main directions
MAX_SIDE = 32  # pixels of a thumbnail
MAX_STRIP = 128  # pixels of a vector, shown as a strip
COLOUR = 3
# A third of the time of scikit-learn's 1000 steps and angle 0.5. On 1000 embedded digits the map is
# as faithful: trustworthiness 0.961 against 0.960, divergence 1.296 against 1.282.
STEPS, ANGLE = 500, 0.8


def take_snapshot(step: Step, *, seed: int) -> Snapshot:
    """Keep all the instances of a window, or a random part of a large one."""
    window, found = step.window, step.detection
    rows = _choose_rows(len(found), seed, window.index)
    matched = [step.matching.get(cluster, "") for cluster in range(found.n_novel)]
    in_clusters = found.cluster[found.is_novel]
    X = window.X[rows]  # before anything is made of it: a window may be far larger
    return Snapshot(
        ids=window.ids[rows],
        map=flat_map(found.embedding[rows], derive_seed(seed, "map", window.index)),
        truth=window.y[rows],
        novel=np.isin(window.y[rows], np.array(step.novel, dtype=window.y.dtype)),
        label=step.label[rows],
        cluster=found.cluster[rows],
        novelty=found.novelty[rows],
        thumbnails=thumbnails(X),
        matched=np.array([str(label) for label in matched], dtype=str),
        sizes=np.bincount(in_clusters, minlength=found.n_novel).astype(np.int64),
        texts=excerpts(X),
    )


def _choose_rows(n: int, seed: int, window: int) -> Ints:
    if n <= MAX_INSTANCES:
        return np.arange(n)
    return np.sort(generator(seed, "drawing", window).permutation(n)[:MAX_INSTANCES])


def flat_map(embedding: Floats, seed: int) -> Floats:
    """Each instance in the plane: near ones stay near (t-SNE)."""
    from sklearn.manifold import TSNE

    directions = main_directions(embedding)
    n = len(embedding)
    if n < MIN_MAPPED or not directions.any():
        return directions
    # Two columns at the least are what t-SNE starts from.
    wide = np.pad(embedding, ((0, 0), (0, max(0, 2 - embedding.shape[1]))))
    tsne = TSNE(
        init="pca", random_state=seed, perplexity=min(30.0, (n - 1) / 3), max_iter=STEPS,
        angle=ANGLE,
    )  # fmt: skip

    return np.asarray(tsne.fit_transform(wide), dtype=np.float32)


def main_directions(embedding: Floats) -> Floats:
    """The two directions in which instances differ most; zeros where there are fewer."""
    centred = embedding.astype(np.float64) - embedding.mean(axis=0, dtype=np.float64)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    scores = np.zeros((len(embedding), 2))
    scores[:, : min(2, len(s))] = (u * s)[:, :2]
    return scores.astype(np.float32)


def excerpts(X: Array) -> Array:
    """The beginning of each text, on one line; "" for each instance that is no text.

    >>> excerpts(np.array(["A cat\\n   sat.", "Then"], dtype=object)).tolist()
    ['A cat sat.', 'Then']
    """
    if X.ndim > 1:
        return np.zeros(len(X), dtype=str)
    return np.array([" ".join(text.split())[:LONGEST_EXCERPT] for text in X.tolist()], dtype=str)


def thumbnails(X: Array, *, largest: int = MAX_SIDE) -> Array:
    """Small uint8 pictures: grey (n, h, w), colour (n, h, w, 3), vectors as (n, 1, d) strips.

    Images of more than ``largest`` pixels a side are shrunk. The
    thumbnails of texts are empty: (n, 0, 0).
    """
    if X.ndim == 1:
        return np.zeros((len(X), 0, 0), dtype=np.uint8)
    if X.ndim == 2:
        return _shrink(_to_bytes(X, axis=0)[:, None, :], MAX_STRIP)
    if X.ndim == 4:
        X = X[..., :COLOUR] if X.shape[3] >= COLOUR else X[..., 0]
    return _to_bytes(_shrink(X, largest))  # shrunk first: scaling works in float64


def _to_bytes(X: Array, axis: int | None = None) -> Array:
    """Numbers on the scale 0..255; floats from their own range, over all or along an axis."""
    if X.dtype == np.uint8:
        return X
    lowest = X.min(axis=axis, keepdims=True).astype(np.float64)
    span = X.max(axis=axis, keepdims=True) - lowest
    scaled = (X - lowest) / np.where(span > 0, span, 1.0)
    return np.asarray(np.round(255 * scaled).astype(np.uint8))


def _shrink(images: Array, most: int) -> Array:
    """Blocks of pixels averaged until the larger side fits; bytes stay bytes."""
    n, height, width = images.shape[:3]
    block = math.ceil(max(height, width) / most)
    if block == 1:
        return images
    tall, wide = max(1, height // block), max(1, width // block)
    whole = images[:, : tall * block, : wide * block]
    split = whole.reshape(n, tall, min(block, height), wide, min(block, width), *images.shape[3:])
    means = split.mean(axis=(2, 4), dtype=np.float64)
    return np.asarray(means.round().astype(np.uint8) if images.dtype == np.uint8 else means)
