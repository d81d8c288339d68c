"""Split and merge the clusters of findings, before or while a person names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from cilf.clustering.cluster_split import split_members
from cilf.core import validation
from cilf.core.types import Ints
from cilf.data.spreadsheets import read_sheet
from cilf.errors import BadInput
from cilf.workflow.findings import CLUSTERS, ROWS, Findings
from cilf.workflow.findings_writer import (
    NAME,
    Written,
    hold_findings,
    list_columns,
    rewrite_findings,
)
from cilf.workflow.labels import match_rows, read_cluster_names


def split_cluster(findings: str | Path, cluster: int, n_clusters: int = 2) -> Findings:
    """Split a cluster by k-means on the embedding of its members.

    The largest part keeps the number of the cluster, and the others get the numbers after the last
    one. What people wrote stays: names of instances, and the name of the cluster for each part.

    Args:
        findings: a findings folder, which is changed.
        cluster: the number of the cluster, from 1.
        n_clusters: the number of parts.
    """
    with _hold(Path(findings)) as opened:
        return _split(opened, cluster, n_clusters)


def _split(opened: Findings, cluster: int, n_clusters: int) -> Findings:
    number = _require_cluster(opened, cluster)
    before = opened.assignments
    members = np.flatnonzero(before.cluster == number)
    validation.whole_number("into", n_clusters, least=2)
    if n_clusters > len(members):
        raise BadInput(
            f"into is {n_clusters}: cluster {cluster} has {len(members)} instances, give at most "
            "as many."
        )
    parts = split_members(opened.embedding, members, n_clusters)
    n_before = len(before.cluster_sizes)
    numbers = [number, *range(n_before, n_before + len(parts) - 1)]
    after = before.cluster.copy()
    for part, place in zip(parts, numbers, strict=True):
        after[part] = place
    names = _read_cluster_names(opened)
    if number in names:
        names |= dict.fromkeys(numbers, names[number])
    edit = {"split": cluster, "into": [place + 1 for place in numbers]}
    return rewrite_findings(opened, after, Written(names, _read_rows(opened)), edit)


def merge_clusters(findings: str | Path, clusters: Sequence[int]) -> Findings:
    """Merge clusters into the one with the lowest number; later clusters move up.

    What people wrote stays: names of instances, and the name of the clusters if they have one.

    Args:
        findings: a findings folder, which is changed.
        clusters: the numbers of the clusters, from 1.
    """
    with _hold(Path(findings)) as opened:
        return _merge(opened, clusters)


def _merge(opened: Findings, clusters: Sequence[int]) -> Findings:
    numbers = sorted({_require_cluster(opened, cluster) for cluster in clusters})
    if len(numbers) < 2:
        raise BadInput(f"clusters is {list(clusters)}: name at least two different ones.")
    names = _read_cluster_names(opened)
    kept = _common_name(opened, {number: names[number] for number in numbers if number in names})
    n_clusters = len(opened.assignments.cluster_sizes)
    moved = _renumber(n_clusters, numbers)
    after = opened.assignments.cluster.copy()
    is_novel = after >= 0
    after[is_novel] = moved[after[is_novel]]
    names = {int(moved[number]): name for number, name in names.items() if number not in numbers}
    if kept is not None:
        names[numbers[0]] = kept
    edit = {"merged": [number + 1 for number in numbers], "into": numbers[0] + 1}
    return rewrite_findings(opened, after, Written(names, _read_rows(opened)), edit)


@contextmanager
def _hold(path: Path) -> Iterator[Findings]:
    """Open findings to change them, while no other command does."""
    Findings.open(path)  # refused before there is a lock
    if Path.cwd().is_relative_to(path.resolve()):
        raise BadInput(f"{path} is replaced by a new folder, and you are in it: go one up (cd ..).")
    with hold_findings(path):
        yield Findings.open(path)


def _require_cluster(findings: Findings, cluster: int) -> int:
    """The position of a cluster, from 0."""
    n_clusters = len(findings.assignments.cluster_sizes)
    if not 1 <= cluster <= n_clusters:
        have = f"clusters 1 to {n_clusters}" if n_clusters else "no cluster"
        raise BadInput(f"cluster is {cluster}: the findings in {findings.path} have {have}.")
    return cluster - 1


def _renumber(n_clusters: int, merged: Sequence[int]) -> Ints:
    """The new number of each cluster after a merge."""
    moved = np.zeros(n_clusters, dtype=np.int64)
    others = [number for number in range(n_clusters) if number not in merged[1:]]
    moved[others] = np.arange(len(others))
    moved[merged] = moved[merged[0]]
    return moved


def _common_name(findings: Findings, names: dict[int, str]) -> str | None:
    different = sorted(set(names.values()))
    if len(different) > 1:
        listed = ", ".join(f"{number + 1} is {name!r}" for number, name in names.items())
        raise BadInput(
            f"the clusters have different names in {findings.path / CLUSTERS} ({listed}): give "
            "them the same name, or clear all but one."
        )
    return different[0] if different else None


def _read_cluster_names(findings: Findings) -> dict[int, str]:
    """The names that people gave to clusters, by number from 0."""
    table = findings.path / CLUSTERS
    return read_cluster_names(read_sheet(table), findings.assignments) if table.is_file() else {}


def _read_rows(findings: Findings) -> dict[int, dict[str, str]]:
    """The cells of each instance that people wrote: its name, and those of columns they added.

    A label that was given to a novel instance is its name.
    """
    table = findings.path / ROWS
    if not table.is_file():
        return {}
    sheet, found = read_sheet(table), findings.assignments
    row_of = match_rows(sheet, found)
    ours = {column.lower() for column in list_columns(findings)} - {NAME}
    written: dict[int, dict[str, str]] = {}
    for line in sheet.rows:
        row = row_of[line.line]
        cells = {column: cell for column, cell in line.cells.items() if cell and column not in ours}
        if found.cluster[row] >= 0 and line.cells.get("label"):
            cells.setdefault(NAME, line.cells["label"])
        if cells:
            written[row] = cells
    return written
