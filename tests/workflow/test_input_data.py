from __future__ import annotations

from pathlib import Path

import pytest

from cilf import workflow
from cilf.errors import BadInput
from cilf.workflow import Findings


def test_columns_are_found_by_name(points: Path) -> None:
    lines = [line.split(",") for line in (points / "new.csv").read_text().splitlines()]
    mixed = [",".join([y, "note" if y == "y" else "n/a", i, x]) for i, x, y in lines]
    (points / "mixed.csv").write_text("\n".join(mixed))
    assert lines[0] == ["id", "x", "y"]
    found = workflow.detect("model", "mixed.csv", "mixed")
    assert found.assignments.cluster.tolist() == Findings("found").assignments.cluster.tolist()
    (points / "short.csv").write_text("id,x\na,1.0\nb,2.0\n")
    with pytest.raises(BadInput, match=r"short\.csv lacks 'y' \(it has 'id', 'x'\)"):
        workflow.predict("model", "short.csv")
