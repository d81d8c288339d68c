"""Findings written without a model, with names in their tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cilf.core import Detection
from cilf.core.types import Array
from cilf.data import Instances
from cilf.workflow import Findings
from cilf.workflow.findings_writer import hold_findings, write_findings

from .tables import edit_table

IDS = (
    "=1+1", "-2", "+3.png", "@me", "plain", "a,b;c", "sub/pic 5.png", "Ähre", "quo\"te", "7",
    "007", "x" * 300,
)  # fmt: skip
NAMES = {"=1+1": "=cow", "-2": "Hühner/Küken", "a,b;c": "known, but wrong"}


def write_named(folder: Path, X: Array, data: str = "") -> Findings:
    """Findings of 12 instances: 4 known, and two clusters; some have names, one by its cluster."""
    n, cluster = len(X), np.array([0, 0, 1, 1, -1, -1, 0, 1, -1, -1, 0, 1])
    detection = Detection(
        novelty=np.linspace(0, 1, n).astype(np.float32),
        label=np.array(["cat", "dog & co"]).repeat(n // 2),
        cluster=cluster, n_novel=2, curve={},
        embedding=np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32),
        novelty_p=np.ones(n, dtype=np.float32),
    )  # fmt: skip
    about = {"model_id": "m", "version": 3, "data": data}
    with hold_findings(folder):
        findings = write_findings(folder, about, Instances(X, np.array(IDS)), detection, page=False)

    def name(row: dict[str, str]) -> None:
        identity = row["identity"].removeprefix("'")
        row["name"] = NAMES.get(identity, "-" if identity == "007" else "")

    edit_table(folder / "findings.csv", name)
    edit_table(
        folder / "clusters.csv", lambda row: row.update(name=["", "hen"][int(row["cluster"]) - 1])
    )
    return findings
