from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cilf import workflow
from cilf.core import Detection
from cilf.errors import BadInput
from cilf.workflow import Findings
from cilf.workflow.detection import apply_answers
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


def test_a_cluster_that_a_person_has_labelled_is_no_cluster() -> None:
    found = Detection(
        novelty=np.arange(6, dtype=np.float32),
        label=np.array(["cat"] * 6),
        cluster=np.array([-1, 0, 0, 1, 1, 2]),
        n_novel=3,
        curve={},
        embedding=np.zeros((6, 1)),
        count_probability={3: 0.6, 2: 0.3, 0: 0.1},
        novelty_p=np.full(6, 0.01, dtype=np.float32),
    )
    seen = apply_answers(found, ["dog", "a long name", "dog", None, "cat", None])
    assert seen.label.tolist() == ["dog", "a long name", "dog", "cat", "cat", "cat"]
    assert seen.cluster.tolist() == [-1, -1, -1, 0, -1, 1]
    assert seen.n_novel == 2
    assert dict(seen.count_probability) == pytest.approx({2: 0.6, 1: 0.3, 0: 0.1})
    assert seen.novelty_p.tolist() == pytest.approx([1, 1, 1, 0.01, 1, 0.01])
    assert apply_answers(found, [None] * 6) is found
