"""Models to serve, made once and copied for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("pyarrow")

from fastapi.testclient import TestClient

from cilf import workflow
from cilf.console.guard import Access
from cilf.serving.app import make_app
from cilf.serving.live_model import LiveModel

from ..points import write_points

URL = "http://127.0.0.1"
PARAMETERS = {"contamination": 0.05, "n_estimators": 30}


@pytest.fixture(scope="session")
def _points_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serving")
    known = write_points(folder / "known.csv", {"left": 60, "right": 60}, 0, labelled=True)
    workflow.fit(str(known), folder / "model", learner="iforest", parameters=PARAMETERS)
    return folder / "model"


@pytest.fixture
def model(_points_model: Path, tmp_path: Path) -> Path:
    """A model of two classes of points, left and right."""
    return Path(shutil.copytree(_points_model, tmp_path / "model"))


@pytest.fixture
def live(model: Path) -> LiveModel:
    return LiveModel(model)


@pytest.fixture
def client(live: LiveModel) -> Iterator[TestClient]:
    with TestClient(make_app(live, Access()), base_url=URL) as made:
        yield made
