from __future__ import annotations

from pathlib import Path

import pytest

from cilf import workflow
from cilf.errors import BadInput
from cilf.workflow import Findings
from cilf.workflow.findings_writer import hold_findings


def test_findings_are_not_replaced_unless_told_to(points: Path) -> None:
    before = Findings.open("found").id
    with pytest.raises(BadInput, match=r"holds findings already.*--overwrite"):
        workflow.detect("model", "new.csv", "found")
    with pytest.raises(BadInput, match="holds other things"):
        workflow.detect("model", "new.csv", "model", overwrite=True)
    assert Findings.open("found").id == before
    assert workflow.detect("model", "new.csv", "found", overwrite=True).id != before
    assert not list(points.glob(".found*"))


def test_one_command_at_a_time_writes_findings(points: Path) -> None:
    with (
        hold_findings(Path("later")),
        pytest.raises(BadInput, match="another command is changing later"),
    ):
        workflow.detect("model", "new.csv", "later")
    assert not list(points.glob("*later*"))


def test_findings_come_back_after_a_kill_while_they_were_replaced(points: Path) -> None:
    """Where folders cannot be swapped at once."""
    before = Findings.open("found").id
    (points / "found").rename(points / ".found.former")
    with hold_findings(Path("found")):
        assert Findings.open("found").id == before


def test_what_was_seen_before_is_left_out(points: Path) -> None:
    with pytest.raises(BadInput, match=r"all 100 instances of .* are in earlier findings"):
        workflow.detect("model", "new.csv", "later", seen=["found"])
    with (points / "new.csv").open("a") as file:
        file.write("up-99,0.1,9.2\nleft-99,-6.0,0.1\n")
    later = workflow.detect("model", "new.csv", "later", seen=["found"])
    assert later.assignments.ids.tolist() == ["up-99", "left-99"]


def test_nothing_new_is_fine(points: Path) -> None:
    lines = (points / "known.csv").read_text().splitlines()
    (points / "same.csv").write_text("\n".join(lines[:20]))
    found = workflow.detect("model", "same.csv", "same", n_novel=0)
    assert found.assignments.cluster_sizes == []
    assert (points / "same/clusters.csv").read_text().count("\n") == 1
