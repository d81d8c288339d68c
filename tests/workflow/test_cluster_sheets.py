from __future__ import annotations

from pathlib import Path

import numpy as np

from cilf.report.unusual_values import KnownValues
from cilf.workflow import split_cluster
from cilf.workflow.cluster_sheets import make_sheet

KNOWN = KnownValues(np.array([[0.0, 5.0], [9.0, 5.0]], "f4"), np.ones((2, 2), "f4"))
ROWS = np.array([[0.5, 25.0], [30.0, 1.0], [9.0, 5.5]], "f4")
IDS = ["a", "b", "c"]


def test_rows_are_shown_by_their_unusual_values() -> None:
    suffix, sheet = make_sheet(ROWS, IDS, "three", columns=("size", "weight"), known=KNOWN)
    assert suffix == "txt"
    assert sheet.decode().splitlines() == [
        "three",
        "",
        "most often unusual: weight (2), size (1)",
        "",
        "a: weight 25 (usual 3 to 7, 20.0 spreads above)",
        "b: size 30 (usual 7 to 11, 21.0 spreads above); "
        "weight 1 (usual 3 to 7, 4.0 spreads below)",
        "c: no value is unusual by itself",
    ]


def test_rows_of_which_nothing_is_known_are_shown_by_their_first_values() -> None:
    _, sheet = make_sheet(np.arange(14.0).reshape(2, 7), IDS[:2], "two")
    assert sheet.decode().splitlines()[2:] == [
        "a: value 1 0, value 2 1, value 3 2, value 4 3, value 5 4, value 6 5",
        "b: value 1 7, value 2 8, value 3 9, value 4 10, value 5 11, value 6 12",
    ]


def test_findings_in_a_table_say_what_is_unusual_before_and_after_a_split(points: Path) -> None:
    split_cluster("found", 1)
    sheets = sorted((points / "found").glob("cluster-*"))
    assert [sheet.name for sheet in sheets] == [f"cluster-{n}.txt" for n in (1, 2, 3)]
    for sheet in sheets:
        title, _, common, *_ = sheet.read_text().splitlines()
        assert title.endswith("instances")
        assert common.startswith("most often unusual: y (")
