from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from cilf.benchmark import RunConfig, forecast
from cilf.benchmark.forecast import Forecaster, measure_speed
from cilf.benchmark.image_passes import StreamSizes, count_passes
from cilf.data import load_dataset
from cilf.nn.network import make_network
from cilf.nn.training import Training

SPEED = 50.0  # images per second


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the instances for which a speed was measured; it is not, but made up."""
    shapes: list[tuple[int, ...]] = []

    def measure(network: Any, shape: tuple[int, ...], training: Training) -> float:
        shapes.append(shape)
        return SPEED

    monkeypatch.setattr(forecast, "measure_speed", measure)
    return shapes


def config(learner: str, **values: Any) -> RunConfig:
    names = {"data": "digits", "scenario": "single"}
    return RunConfig.of(learner=learner, **(names | values))


def test_seconds_are_passes_by_speed(measured: list[tuple[int, ...]]) -> None:
    cell = config("cilf", parameters={"epochs": 7})
    ((found, seconds),) = Forecaster().forecast([cell])
    sizes = StreamSizes.of(cell.make_stream(load_dataset("digits")))
    assert found is cell
    assert seconds == pytest.approx(count_passes(sizes, cell.make_learner().get_params()) / SPEED)
    assert measured == [(8, 8)]


def test_longer_training_takes_longer(measured: list[tuple[int, ...]]) -> None:
    cells = [config("dnn-base", parameters={"epochs": n}) for n in (5, 50)]
    (_, short), (_, long) = Forecaster().forecast(cells)
    assert long > 3 * short
    assert len(measured) == 1  # it is the same network


def test_joint_takes_longer_than_what_it_bounds(measured: list[tuple[int, ...]]) -> None:
    (_, cilf), (_, joint) = Forecaster().forecast([config("cilf"), config("joint")])
    assert joint > 2 * cilf


def test_other_networks_have_a_speed_of_their_own(measured: list[tuple[int, ...]]) -> None:
    made = Forecaster()
    wide = config("cilf", parameters={"width": 64})
    assert len(list(made.forecast([config("cilf"), wide, config("cilf", seed=1)]))) == 3
    assert len(measured) == len(made.speeds) == 2
    assert made.speeds[0].to_json() == {
        "backbone": "auto", "shape": [8, 8], "device": "cpu", "images_per_second": SPEED,
    }  # fmt: skip


def test_some_cells_have_no_forecast(measured: list[tuple[int, ...]], tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    rows = [f"some words {i},{label}" for label in "abcd" for i in range(40)]
    table.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    without = [
        config("iforest"),  # it has no network
        config("cilf", data=str(tmp_path / "nowhere")),
        config("cilf", data=str(table)),  # a frozen network embeds the texts
        config("cilf", parameters={"device": "cuda"}),
    ]
    assert torch.cuda.is_available() or list(Forecaster().forecast(without)) == []
    assert measured == []


OWN_TRAINING = """
from dataclasses import dataclass
from typing import ClassVar

from cilf.learners.iforest import IForest

@dataclass(kw_only=True, repr=False, eq=False)
class Mine(IForest):
    name: ClassVar[str] = "mine"
    backbone: str = "mlp"
    device: str = "cpu"
"""


def test_a_network_with_a_training_of_its_own_has_no_forecast(
    measured: list[tuple[int, ...]], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(OWN_TRAINING, encoding="utf-8")
    cell = config(f"{tmp_path / 'mine.py'}:Mine")
    assert list(Forecaster().forecast([cell])) == []
    assert measured == []


@pytest.mark.parametrize(("shape", "backbone"), [((6, 6, 3), "convnet"), ((5,), "mlp")])
def test_a_speed_is_measured_without_a_trace(shape: tuple[int, ...], backbone: str) -> None:
    network = make_network(
        backbone, shape, embedding_size=64, width=2, seed=0, device=torch.device("cpu")
    )
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    assert measure_speed(network, shape, Training(batch_size=16)) > 0
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("images_per_second", "batch_size", "size"), [(20, 64, 20), (2000, 64, 64), (2, 64, 8)]
)
def test_a_batch_is_as_in_training_unless_it_would_take_too_long(
    monkeypatch: pytest.MonkeyPatch, images_per_second: int, batch_size: int, size: int
) -> None:
    timed: list[int] = []

    def time_batch(
        network: Any, shape: Any, training: Training, size: int, least_seconds: float
    ) -> float:
        timed.append(size)
        return size / images_per_second

    monkeypatch.setattr(forecast, "_time_batch", time_batch)
    network = make_network(
        "mlp", (5,), embedding_size=2, width=2, seed=0, device=torch.device("cpu")
    )
    found = measure_speed(network, (5,), Training(batch_size=batch_size))
    assert found == pytest.approx(images_per_second)
    assert timed == [8, size]
