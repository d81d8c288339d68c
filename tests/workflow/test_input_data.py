from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cilf import workflow
from cilf.errors import BadInput
from cilf.learners import persistence
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


def write_model(folder: Path, shape: tuple[int, ...]) -> Path:
    """A model of a shape, enough to refuse data in another form."""
    description = {
        "learner": "iforest", "parameters": {}, "classes": ["a", "b"], "history": [],
        "instance_shape": list(shape), "features": None, "state": {},
    }  # fmt: skip
    persistence.write(folder, description, {})
    return folder


@pytest.mark.parametrize(
    ("shape", "data", "problem"),
    [
        (
            (8, 8),
            "numbers.csv",
            "csv is a table of numbers, but the model takes images of 8 x 8 pix",
        ),
        ((8, 8), "texts.csv", "csv is a table of texts, but the model takes images"),
        (
            (8, 8, 3),
            "numbers.npz",
            "npz holds numbers, but the model takes images of 8 x 8 x 3 pix",
        ),
        ((2,), "photos", "photos is a folder of images, but the model takes tables of 2 numbers"),
        ((2,), "texts.csv", "csv is a table of texts, but the model takes tables of 2 numbers"),
        (
            (),
            "numbers.csv",
            "csv is a table of numbers, but the model takes texts: give a table with",
        ),
        ((), "photos", "photos is a folder of images, but the model takes texts"),
        ((2,), "paths.csv", "csv is a table of images, but the model takes tables of 2 numbers"),
    ],
)
def test_data_in_another_form_than_the_model_are_refused(
    tmp_path: Path, shape: tuple[int, ...], data: str, problem: str
) -> None:
    model = write_model(tmp_path / "model", shape)
    (tmp_path / "photos").mkdir()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "photos" / "a.png")
    (tmp_path / "numbers.csv").write_text("a,b\n1,2\n")
    (tmp_path / "texts.csv").write_text("text\nhello there\n")
    (tmp_path / "paths.csv").write_text("file\nphotos/a.png\n")
    np.savez(tmp_path / "numbers.npz", x=np.zeros((3, 2)))
    with pytest.raises(BadInput, match=problem):
        workflow.predict(model, tmp_path / data)


def test_a_model_of_a_table_names_its_columns(points: Path) -> None:
    (points / "texts.csv").write_text("text\nhello there\n")
    with pytest.raises(
        BadInput, match=r"takes tables of 2 numbers \('x', 'y'\): give a table with"
    ):
        workflow.predict("model", "texts.csv")
