"""Thumbnails and map of a window, made once by the worker."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cilf.console.gallery import IMAGES, STRIPS, TEXTS, VECTORS, Gallery, encode_png, write_gallery
from cilf.console.stacks import stack_pictures, stack_texts, stack_vectors
from cilf.console.state import KNOWN
from cilf.core.progress import report
from cilf.core.random import generator
from cilf.core.types import Array, Floats, Ints
from cilf.evaluate.snapshot import excerpts, flat_map, thumbnails
from cilf.learners import Learner
from cilf.workflow.findings import Findings

LARGEST_SIDE = 48  # pixels of a thumbnail
LARGEST_WHOLE = 512  # pixels of a picture that no file of the source shows
MOST_MAPPED = 1000  # instances by t-SNE; the others are placed beside their neighbours
NEIGHBOURS = 3
CHUNK = 1000
SEED = 0


def build_gallery(folder: Path, findings: Findings, learner: Learner) -> Gallery:
    """Write the gallery of a window's findings, which the learner has detected."""
    found = findings.assignments
    X = findings.instances(np.arange(len(found.ids)))
    form = _form_of(X)
    thumbs, stack = _show(X, form)
    has_files = Path(findings.about["data"]).expanduser().is_dir()
    return write_gallery(
        folder,
        ids=found.ids,
        label=found.label,
        novelty=found.novelty,
        cluster=found.cluster,
        embedding=findings.embedding,
        places=_places(findings.embedding, found.cluster),
        form=form,
        thumbs=thumbs,
        whole=None if has_files else _keep_whole(X, form),
        stack=stack,
        features=learner.embed(X),
        source=found.source,
    )


def build_known_gallery(folder: Path, learner: Learner) -> Gallery | None:
    """Write the gallery of the instances that a learner keeps; None if it keeps none."""
    kept = learner.remembered()
    if kept is None:
        return None
    is_seen = kept.X.shape[1:] == learner.instance_shape  # else vectors of a frozen network
    form = _form_of(kept.X) if is_seen else VECTORS
    thumbs, stack = _show(kept.X, form)
    return write_gallery(
        folder,
        ids=np.array([f"{label} {row}" for row, label in enumerate(kept.y.tolist())]),
        label=kept.y.astype(str),
        novelty=np.zeros(len(kept.y), dtype=np.float32),
        cluster=np.full(len(kept.y), KNOWN),
        embedding=learner.embed_remembered(kept),
        places=np.zeros((len(kept.y), 2), dtype=np.float32),
        form=form,
        thumbs=thumbs,
        stack=stack,
    )


def _form_of(X: Array) -> str:
    return TEXTS if X.ndim == 1 else STRIPS if X.ndim == 2 else IMAGES


def _show(X: Array, form: str) -> tuple[list[bytes], Ints]:
    """The thumbnails of instances, or the beginnings of texts, and the stack of each."""
    if form == TEXTS:
        return [text.encode() for text in excerpts(X).tolist()], stack_texts(X.tolist())
    if form == VECTORS:
        return [b""] * len(X), np.arange(len(X))
    pictures = _shrink(X, LARGEST_SIDE, "thumbnails")
    report("near-duplicates", 0, 1)
    stack = stack_vectors(X) if form == STRIPS else stack_pictures(np.stack(pictures))
    return [encode_png(picture) for picture in pictures], stack


def _keep_whole(X: Array, form: str) -> list[bytes] | None:
    """Whole texts, or pictures that are larger than thumbnails."""
    if form == TEXTS:
        return [text.encode() for text in X.tolist()]
    if form == STRIPS or max(X.shape[1:3]) <= LARGEST_SIDE:
        return None
    return [encode_png(picture) for picture in _shrink(X, LARGEST_WHOLE, "pictures")]


def _shrink(X: Array, largest: int, stage: str) -> list[Array]:
    pieces = range(0, len(X), CHUNK if X.dtype == np.uint8 else len(X))
    pictures: list[Array] = []
    for start in pieces:  # floats are scaled by the range of all instances
        pictures += list(thumbnails(X[start : start + pieces.step], largest=largest))
        report(stage, len(pictures), len(X))
    return pictures


def _places(embedding: Floats, cluster: Ints) -> Floats:
    """(n, 2) places in a square of side 1, with the same scale along both axes."""
    mapped = _choose_mapped(cluster)
    report("map", 0, 1)
    on_map = flat_map(embedding[mapped], SEED)
    places = np.empty((len(cluster), 2), dtype=np.float32)
    places[mapped] = on_map
    rest = np.setdiff1d(np.arange(len(cluster)), mapped)
    if len(rest):
        from scipy.spatial import KDTree

        _, near = KDTree(embedding[mapped]).query(embedding[rest], k=NEIGHBOURS)
        places[rest] = on_map[near].mean(axis=1)
    low, high = places.min(axis=0), places.max(axis=0)
    side = max(float((high - low).max()), 1e-9)
    return np.asarray((places - (low + high) / 2) / side + 0.5, dtype=np.float32)


def _choose_mapped(cluster: Ints) -> Ints:
    """The rows to map by t-SNE. Half of them are novel, if there are so many."""
    if len(cluster) <= MOST_MAPPED:
        return np.arange(len(cluster))
    shuffled = generator(SEED, "map", len(cluster)).permutation(len(cluster))
    novel, known = shuffled[cluster[shuffled] >= 0], shuffled[cluster[shuffled] < 0]
    n_novel = min(len(novel), max(MOST_MAPPED // 2, MOST_MAPPED - len(known)))
    return np.sort(np.concatenate([novel[:n_novel], known[: MOST_MAPPED - n_novel]]))
