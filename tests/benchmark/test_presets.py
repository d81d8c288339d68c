from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from cilf.benchmark import PRESETS, SCALES, SCENARIOS, RunConfig, preset
from cilf.benchmark.scales import default_scale
from cilf.core import Label
from cilf.data import Dataset, load_dataset
from cilf.errors import BadConfig
from cilf.learners import LEARNERS
from cilf.stream import Stream

NAMED = ["digits", "mnist", "cifar10", "cifar50", "cifar100"]
TRAINING_IMAGES = {"digits": 139, "mnist": 5421, "cifar10": 5000, "cifar50": 500, "cifar100": 500}
N_CLASSES = {"digits": 10, "mnist": 10, "cifar10": 10, "cifar50": 50, "cifar100": 100}
OWN = {"learner": "iforest", "data": "photos/", "scenario": "multiple"}


def of_sizes(sizes: dict[Label, int], n_test: int = 30) -> Dataset:
    """A data set with this many training instances of each class."""
    y_train = np.repeat(list(sizes), list(sizes.values()))
    y_test = np.repeat(list(sizes), n_test)
    X_train, X_test = np.zeros((len(y_train), 1)), np.zeros((len(y_test), 1))
    return Dataset.from_arrays("made", X_train, y_train, X_test, y_test)


def own_stream(dataset: Dataset, **values: Any) -> Stream:
    return RunConfig.of(**(OWN | values)).make_stream(dataset)


def test_every_protocol_has_a_name() -> None:
    expected = {
        f"{d}-{scenario}-{scale}" for d in NAMED for scenario in SCENARIOS for scale in SCALES
    }
    assert set(PRESETS) == expected
    assert len(PRESETS) == 30
    for name, made in PRESETS.items():
        assert made.name == name
        assert made == preset(made.data, made.scenario, made.scale)


@pytest.mark.parametrize("scale", ["smoke", "cpu", "paper"])
@pytest.mark.parametrize(
    ("data", "single", "multiple", "max_novel"),
    [
        ("digits", 5, 3, 3), ("mnist", 5, 3, 3), ("cifar10", 5, 3, 3), ("cifar50", 30, 30, 5),
        ("cifar100", 50, 50, 10),
    ],
)  # fmt: skip
def test_classes_are_the_papers_at_every_scale(
    data: str, single: int, multiple: int, max_novel: int, scale: str
) -> None:
    one, several = (preset(data, scenario, scale).stream for scenario in ("single", "multiple"))
    assert (one["n_initial"], several["n_initial"]) == (single, multiple)
    assert several["max_novel"] == max_novel
    assert "max_novel" not in one
    used_up = scale == "paper" and data in ("cifar50", "cifar100")
    assert one["vanishing"] == several["vanishing"] == (0.05 if used_up else 0.1)


@pytest.mark.parametrize(
    ("data", "scale", "sizes", "memory"),
    [
        ("mnist", "cpu", (500, 200, 100, None), 500),
        ("cifar10", "cpu", (500, 200, 100, None), 1000),
        ("cifar50", "cpu", (200, 50, 100, 6), 1500),
        ("cifar100", "cpu", (150, 50, 100, 7), 2000),
        ("mnist", "smoke", (60, 25, 20, 3), 100),
        ("cifar10", "smoke", (60, 25, 20, 3), 100),
        ("cifar50", "smoke", (60, 25, 20, 3), 300),
        ("cifar100", "smoke", (60, 25, 20, 3), 500),
        ("digits", "smoke", (None, None, None, None), 100),
        ("mnist", "paper", (None, None, None, None), 2000),
        ("cifar50", "paper", (200, None, None, None), 2000),
        ("cifar100", "paper", (200, None, None, None), 2000),
    ],
)
@pytest.mark.parametrize("scenario", ["single", "multiple"])
def test_sizes_are_those_of_the_scale(
    data: str, scenario: str, scale: str, sizes: tuple[int | None, ...], memory: int
) -> None:
    made = preset(data, scenario, scale)
    names = ("initial_size", "window_size", "holdout_size", "n_windows")
    assert tuple(made.stream[name] for name in names) == sizes
    assert made.learner["memory_size"] == memory


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_names_every_argument_of_its_stream(name: str) -> None:
    made = PRESETS[name]
    arguments = set(inspect.signature(SCENARIOS[made.scenario]).parameters)
    assert set(made.stream) == arguments - {"dataset", "seed"}


def test_budgets_are_parameters_that_learners_have() -> None:
    known = {name for learner in LEARNERS.values() for name in learner().get_params()}
    for made in (*PRESETS.values(), preset("own", "single", "smoke")):
        assert set(made.learner) <= known


@pytest.mark.parametrize("name", PRESETS)
def test_the_images_of_a_class_suffice(name: str) -> None:
    made = PRESETS[name]
    per_class = TRAINING_IMAGES[made.data]
    dataset = of_sizes(dict.fromkeys(range(N_CLASSES[made.data]), per_class))
    for seed in range(3):
        stream = SCENARIOS[made.scenario](dataset, seed=seed, **made.stream)
        n_used = sum(
            stream.counts(i).get(stream.plan.initial[0], 0) for i in range(len(stream) + 1)
        )
        assert 0 < n_used <= per_class


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("data", ["cifar50", "cifar100"])
def test_windows_of_cifar_at_paper_have_many_images_of_a_class(data: str, scenario: str) -> None:
    dataset = of_sizes(dict.fromkeys(range(N_CLASSES[data]), 500), n_test=1)
    for seed in range(5):
        stream = SCENARIOS[scenario](dataset, seed=seed, **preset(data, scenario, "paper").stream)
        assert set(stream.counts(0).values()) == {200}
        assert len(stream.plan.arrivals) == N_CLASSES[data]  # every class comes
        for index, window in enumerate(stream.plan.windows, start=1):
            counts = stream.counts(index)
            assert {counts[label] for label in window.novel} == {200}
            assert all(25 <= counts[label] <= 50 for label in window.known)
            assert len(window.known) > 3


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("data", ["mnist", "cifar10", "photos/"])
def test_a_novel_class_is_as_large_as_an_initial_one_at_paper(data: str, scenario: str) -> None:
    dataset = of_sizes(dict.fromkeys(range(10), 5000))
    stream = SCENARIOS[scenario](dataset, **preset(data, scenario, "paper").stream)
    assert set(stream.counts(0).values()) == {2000}
    for index, window in enumerate(stream.plan.windows, start=1):
        assert {stream.counts(index)[label] for label in window.novel} == {2000}


def test_image_sets_name_their_network() -> None:
    networks = {(made.scale, made.learner.get("backbone")) for made in PRESETS.values()}
    # Digits at smoke leave it to the learner, which takes the same.
    assert networks == {
        ("smoke", "convnet"), ("smoke", None), ("cpu", "convnet"), ("paper", "resnet18"),
    }  # fmt: skip
    assert "backbone" not in PRESETS["digits-single-smoke"].learner


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("data", ["photos/", "tables/birds.csv", "hf:someone/something"])
def test_own_data_name_no_network(data: str, scale: str) -> None:
    made = preset(data, "multiple", scale)
    assert made.name == f"own-multiple-{scale}"
    assert "backbone" not in made.learner


def test_the_stream_decides_the_numbers_of_classes_of_own_data() -> None:
    assert preset("photos/", "multiple", "cpu").stream["n_initial"] is None


@pytest.mark.parametrize(
    ("names", "said"),
    [(("digits", "singel", "cpu"), "did you mean 'single'"),
     (("digits", "single", "gpu"), "unknown scale 'gpu': did you mean 'cpu'")],
)  # fmt: skip
def test_unknown_names_are_answered(names: tuple[str, str, str], said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        preset(*names)


# ----------------------------------------------------------------- digits stay as recorded


def test_digits_at_smoke_stay_as_they_were_recorded() -> None:
    config = RunConfig.of(learner="cilf", data="digits", scenario="multiple")
    stream = config.make_stream(load_dataset("digits"))
    assert stream.counts(0) == {9: 57, 3: 58, 6: 58}
    assert stream.counts(2) == {9: 28, 6: 28, 5: 28, 0: 28, 4: 28, 1: 29}
    assert len(stream.holdout.y) == 360
    assert stream.initial.X[:3].sum() == 14345
    assert stream.window(2).ids[:3].tolist() == ["digits/939", "digits/1510", "digits/974"]
    usual = LEARNERS["cilf"]().get_params()
    resolved = config.make_learner().get_params()
    assert {k: v for k, v in resolved.items() if v != usual[k]} == {"memory_size": 100}


# ----------------------------------------------------------------- a user's own data


@pytest.mark.parametrize("scenario", ["single", "multiple"])
@pytest.mark.parametrize("scale", ["smoke", "cpu"])
@pytest.mark.parametrize("n_classes", [4, 10, 30])
def test_sixteen_instances_of_a_class_suffice(scenario: str, scale: str, n_classes: int) -> None:
    dataset = of_sizes(dict.fromkeys(range(n_classes), 16))
    stream = own_stream(dataset, scenario=scenario, scale=scale)
    for index in range(len(stream) + 1):
        assert min(stream.counts(index).values()) >= 1


def test_large_classes_are_bounded_and_small_ones_give_their_share() -> None:
    dataset = of_sizes({"few": 40, "some": 900, "many": 5000, "most": 9000}, n_test=150)
    stream = own_stream(dataset, stream={"n_initial": 2, "vanishing": 0})
    seen = {index: stream.counts(index) for index in (0, 1)}
    bound = {"few": (16, 24), "some": (360, 200), "many": (500, 200), "most": (500, 200)}
    assert seen[0] == {label: bound[label][0] for label in stream.plan.initial}
    assert seen[1] == {label: bound[label][1] for label in stream.plan.windows[0].classes}
    assert np.unique(stream.holdout.y, return_counts=True)[1].tolist() == [100] * 4


def test_smoke_bounds_them_more() -> None:
    dataset = of_sizes(dict.fromkeys(range(12), 1000))
    stream = own_stream(dataset, scenario="single", scale="smoke")
    assert set(stream.counts(0).values()) == {60}
    assert set(stream.counts(1).values()) == {25}
    assert len(stream) == 3


def test_sizes_that_are_asked_for_are_exact() -> None:
    dataset = of_sizes(dict.fromkeys(range(6), 2000))
    stream = own_stream(dataset, stream={"initial_size": 700, "n_windows": 1})
    assert set(stream.counts(0).values()) == {700}
    assert set(stream.counts(1).values()) == {200}
    with pytest.raises(BadConfig, match="has 2000 training instances"):
        own_stream(dataset, stream={"initial_size": 2001})


def test_own_data_are_run_at_cpu_unless_told() -> None:
    for data in ("photos/", "hf:someone/something", "digits/"):
        assert RunConfig.of(**(OWN | {"data": data})).scale == "cpu"
    assert [default_scale(data) for data in NAMED] == ["smoke", "cpu", "cpu", "cpu", "cpu"]
