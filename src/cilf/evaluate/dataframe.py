"""The records of many runs as one pandas table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cilf.core import WindowRecord
from cilf.core.extras import optional
from cilf.evaluate.records import RunFolder, find_runs

if TYPE_CHECKING:
    from pandas import DataFrame

ABOUT = (
    "learner", "data", "scenario", "scale", "seed", "query", "n_novel", "strategy", "propagate",
    "protocol",
)  # fmt: skip
HOLDOUT = "holdout_"  # and the window in which a group of classes came: holdout_0, holdout_1, ...


def read_records(folders: str | Path | Iterable[str | Path]) -> DataFrame:
    """Read the records of one or many runs as a pandas table with one row for each window.

    Parameters
    ----------
    folders : path or iterable of paths
        Run folders, or folders with runs anywhere below them.

    The columns are ``run`` (the folder), what tells runs apart (``learner``, ``data``,
    ``scenario``, ``scale``, ``seed``, ``query``, ``n_novel``, ``strategy``, ``propagate``,
    ``protocol``, and ``changes``, as ``--set`` takes them), and the fields of a
    :class:`~cilf.core.WindowRecord`, with a column ``holdout_N`` for each group of classes.

    >>> import tempfile
    >>> from cilf.benchmark import RunConfig, run_cell
    >>> folder = tempfile.mkdtemp()
    >>> for seed in (0, 1):
    ...     config = RunConfig.of(
    ...         learner="iforest", data="digits", scenario="single", seed=seed,
    ...         stream={"n_windows": 2})
    ...     records = list(run_cell(config, f"{folder}/seed{seed}"))
    >>> table = read_records(folder)
    >>> table.groupby("seed")["window"].count().to_dict()
    {0: 2, 1: 2}
    >>> table["changes"].unique().tolist()
    ['stream.n_windows=2']
    """
    pandas = optional("pandas", extra="analysis", purpose="a table of records")
    given = [folders] if isinstance(folders, str | Path) else list(folders)
    runs = [run for folder in given for run in find_runs(folder)]
    return pandas.DataFrame([row for run in runs for row in _rows(run)])


def _rows(run: RunFolder) -> list[dict[str, Any]]:
    about = run.read_run()
    names = {"run": str(run.path)} | {name: about.get(name) for name in ABOUT}
    names["changes"] = " ".join(about.get("changes") or ())
    return [names | _row(record) for record in run.read_records()]


def _row(record: WindowRecord) -> dict[str, Any]:
    fields: dict[str, Any] = dict(vars(record))
    groups, extra = fields.pop("holdout_accuracy"), fields.pop("extra")
    del fields["holdout_classes"]
    fields |= extra
    return fields | {f"{HOLDOUT}{group}": value for group, value in groups.items()}
