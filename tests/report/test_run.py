from __future__ import annotations

from pathlib import Path

import pytest

from cilf.errors import BadInput
from cilf.evaluate.records import RunFolder
from cilf.report.run import Run


def test_classes_go_by_name_in_order_of_arrival(run: Run) -> None:
    assert run.classes == ("3", "0", "8", "5", "1", "6", "9", "2", "7", "4")
    assert run.group(0) == ("3", "0", "8")
    assert run.group(2) == ()
    assert run.group(4) == ("2", "7", "4")


def test_a_run_without_a_plan_is_refused_by_name(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_run({"learner": "cilf"})
    with pytest.raises(BadInput, match=r"run\.json has no usable plan"):
        Run.read(folder)
