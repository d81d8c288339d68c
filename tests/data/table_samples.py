"""A small table, and what the tests of tables read from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cilf.data.dataset import Dataset
from cilf.data.options import Options
from cilf.data.readers import read_table
from cilf.data.tables import to_dataset
from cilf.errors import BadConfig, BadInput


def dataset(path: Path, **options: Any) -> Dataset:
    return to_dataset("toy", read_table(path), None, Options(**options))


def rows_of(data: Dataset) -> dict[str, tuple[Any, Any]]:
    """Identity -> instance and label, of both splits."""
    splits = [data.train, data.test]
    return {
        name: (x.tolist() if isinstance(x, np.ndarray) else x, y)
        for split in splits
        for name, x, y in zip(split.ids.tolist(), split.X, split.y.tolist(), strict=True)
    }


def refused(path: Path, text: str | None = None, **options: Any) -> str:
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises((BadInput, BadConfig)) as caught:
        dataset(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


CSV = "a,b,label\n1,0.5,u\n2,1.5,v\n3,2.5,u\n4,3.5,v\n"


EXPECTED = {
    "t.csv:0": ([1.0, 0.5], "u"),
    "t.csv:1": ([2.0, 1.5], "v"),
    "t.csv:2": ([3.0, 2.5], "u"),
    "t.csv:3": ([4.0, 3.5], "v"),
}
