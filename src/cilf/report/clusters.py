"""The detection of a window compared with the truth: correct instances, and the clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cilf.core.types import Array, Bools, Ints
from cilf.evaluate.records import Snapshot


@dataclass(frozen=True)
class Cluster:
    """A cluster that the learner found novel."""

    index: int
    size: int  # in the whole window
    matched: str  # the true class it was matched to, or ""
    members: Ints  # (m,) rows of the snapshot, those of the matched class first
    n_right: int  # members of the matched class

    @property
    def number(self) -> int:
        """The number that people see; it starts at 1."""
        return self.index + 1

    @property
    def share(self) -> float:
        """The share of the members that are of the matched class."""
        return self.n_right / max(1, len(self.members))


def to_text(labels: Array) -> Array:
    """Convert labels to text."""
    return np.array([str(label) for label in labels.tolist()], dtype=str)


def find_correct(snapshot: Snapshot) -> Bools:
    """Find the instances that were detected correctly.

    A known instance is correct with its class, a novel one in the cluster matched to its class.
    """
    truth = to_text(snapshot.truth)
    as_known = ~snapshot.novel & (to_text(snapshot.label) == truth)
    # Cluster -1 picks the "" at the end, which no class is called.
    in_cluster = np.append(to_text(snapshot.matched), "")[snapshot.cluster] == truth
    return np.asarray(np.where(snapshot.cluster >= 0, in_cluster, as_known))


def list_clusters(snapshot: Snapshot) -> list[Cluster]:
    """List the clusters in the order of their numbers."""
    correct = find_correct(snapshot)
    sizes = snapshot.sizes.tolist()
    return [_cluster(snapshot, correct, index, size) for index, size in enumerate(sizes)]


def _cluster(snapshot: Snapshot, correct: Bools, index: int, size: int) -> Cluster:
    members = np.flatnonzero(snapshot.cluster == index)
    members = members[np.argsort(~correct[members], kind="stable")]
    matched = str(snapshot.matched[index]) if index < len(snapshot.matched) else ""
    return Cluster(index, size, matched, members, int(correct[members].sum()))
