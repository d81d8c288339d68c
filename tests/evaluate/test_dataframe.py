from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from cilf.benchmark import RunConfig, run_cell
from cilf.errors import BadConfig, BadInput
from cilf.evaluate import RunFolder, read_records

pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of two windows; read only."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        config = RunConfig.of(
            learner="iforest", data="digits", scenario="multiple", seed=seed, query=0.5,
            parameters={"n_estimators": 8, "max_samples": 60},
            stream={"n_windows": 2, "window_size": 8},
        )  # fmt: skip
        list(run_cell(config, folder / f"seed{seed}"))
    return folder


def test_a_row_is_a_window_and_says_which_run_it_is_of(runs: Path) -> None:
    table = read_records(runs)
    assert table[["seed", "window"]].values.tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert table["run"].unique().tolist() == [str(runs / "seed0"), str(runs / "seed1")]
    assert set(table["changes"]) == {
        "n_estimators=8 max_samples=60 stream.n_windows=2 stream.window_size=8"
    }
    first = table.iloc[0]
    assert (first["learner"], first["data"], first["query"]) == ("iforest", "digits", 0.5)


def test_its_numbers_are_those_of_the_records(runs: Path) -> None:
    table = read_records(runs / "seed1")
    for row, record in zip(
        table.to_dict("records"), RunFolder.open(runs / "seed1").read_records(), strict=True
    ):
        assert (row["na"], row["n_queried"]) == (record.na, record.n_queried)
        for group in (0, 1, 2):
            expected = record.holdout_accuracy.get(group, math.nan)
            assert row[f"holdout_{group}"] == pytest.approx(expected, nan_ok=True)


def test_folders_may_be_many(runs: Path) -> None:
    both = read_records([runs / "seed1", str(runs / "seed0")])
    assert both["seed"].tolist() == [1, 1, 0, 0]


def test_no_run_and_no_pandas_cost_one_line(
    tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="holds no run"):
        read_records(tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BadConfig, match=r"needs pandas: pip install 'cilf\[analysis\]'"):
        read_records(runs)
