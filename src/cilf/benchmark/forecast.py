"""A forecast of run times that nobody has measured: images to pass, and their speed here."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cilf.benchmark.config import RunConfig
from cilf.benchmark.image_passes import StreamSizes, count_passes
from cilf.benchmark.job import one_thread
from cilf.core.types import Array
from cilf.data import Dataset
from cilf.errors import CilfError
from cilf.nn.network import Network, as_tensor, make_network, resolve_device
from cilf.nn.training import Training, epochs

FIRST_SIZE = 8  # images of the batch that tells how long a batch takes
LONGEST_BATCH = 1.0  # seconds
MEASURED = 1.0  # seconds of training that are timed, or one batch
MOST_BATCHES = 1000
EMBEDDING_SIZE = 64
NEEDED = ("backbone", "width", "device", "training")  # parameters of learners with a forecast
N_SOME = 2  # instances that tell whether a frozen network runs before the learner


@dataclass(frozen=True)
class Speed:
    """The speed at which a network is trained on this machine, in one thread."""

    backbone: str
    shape: tuple[int, ...]  # of an instance
    device: str
    images_per_second: float

    def describe(self) -> str:
        """
        >>> Speed("resnet18", (32, 32, 3), "cpu", 17.4).describe()
        'resnet18 on cpu, 32 x 32 x 3: 17 images/s'
        """
        size = " x ".join(map(str, self.shape))
        return f"{self.backbone} on {self.device}, {size}: {self.images_per_second:.0f} images/s"

    def to_json(self) -> dict[str, Any]:
        return {
            "backbone": self.backbone,
            "shape": list(self.shape),
            "device": self.device,
            "images_per_second": round(self.images_per_second, 1),
        }


class _StreamFacts(NamedTuple):
    """A stream without its instances, but for some."""

    sizes: StreamSizes
    some: Array


class Forecaster:
    """Forecasts the seconds of cells. Each stream is made once, and each speed measured once."""

    def __init__(self) -> None:
        self._data: tuple[str, Dataset] | None = None  # the last one that was loaded
        self._streams: dict[str, _StreamFacts] = {}
        self._speeds: dict[str, Speed] = {}

    @property
    def speeds(self) -> list[Speed]:
        """The speeds that were measured."""
        return list(self._speeds.values())

    def forecast(self, configs: Iterable[RunConfig]) -> Iterator[tuple[RunConfig, float]]:
        """Yield the configs whose run time can be forecast, and the seconds of each.

        That is not so for learners without a network or with one that is trained in a way of its
        own, for instances that pass a frozen network first, and for data that cannot be loaded
        here.
        """
        for config in sorted(configs, key=lambda config: config.data):
            try:
                seconds = self._forecast_one(config)
            except (CilfError, OSError):  # the cell itself will say so
                continue
            if seconds is not None:
                yield config, seconds
        self._data = None  # it may be large

    def _forecast_one(self, config: RunConfig) -> float | None:
        learner = config.make_learner()
        parameters = learner.get_params()
        if not set(NEEDED) <= parameters.keys():
            return None
        stream = self._find_stream(config)
        if learner.features_for(stream.some) is not None:
            return None
        speed = self._find_speed(stream.some.shape[1:], parameters)
        passes = count_passes(
            stream.sizes,
            parameters,
            keeps_everything=learner.takes_all_labels,
            detects=not config.policy.is_given,
        )
        return passes / speed.images_per_second

    def _find_stream(self, config: RunConfig) -> _StreamFacts:
        """The stream of a config; seeds are taken to make no difference."""
        key = _key(config.data, config.loading, config.scenario, config.stream_arguments())
        if key not in self._streams:
            stream = config.make_stream(self._load(config))
            self._streams[key] = _StreamFacts(StreamSizes.of(stream), stream.initial.X[:N_SOME])
        return self._streams[key]

    def _load(self, config: RunConfig) -> Dataset:
        key = _key(config.data, config.loading)
        if self._data is None or self._data[0] != key:
            self._data = key, config.load()
        return self._data[1]

    def _find_speed(self, shape: tuple[int, ...], parameters: Mapping[str, Any]) -> Speed:
        training: Training = parameters["training"]
        architecture = {name: parameters[name] for name in ("backbone", "width")}
        key = _key(shape, architecture, parameters["device"], repr(training))
        if key not in self._speeds:
            device = resolve_device(parameters["device"])
            network = make_network(
                instance_shape=shape, embedding_size=EMBEDDING_SIZE, seed=0, device=device,
                **architecture,
            )  # fmt: skip
            speed = measure_speed(network, shape, training)
            self._speeds[key] = Speed(str(parameters["backbone"]), shape, str(device), speed)
        return self._speeds[key]


def _key(*values: Any) -> str:
    return json.dumps(values, sort_keys=True, default=str)


def measure_speed(network: Network, shape: tuple[int, ...], training: Training) -> float:
    """Images per second that this network is trained on, in one thread, as workers have it.

    The images are made up. A batch is as large as in training, unless it would take too long.
    """
    with one_thread():
        rough = _time_batch(network, shape, training, FIRST_SIZE, least_seconds=0.0)
        most = max(FIRST_SIZE, int(LONGEST_BATCH * FIRST_SIZE / rough))
        size = min(training.batch_size, most)
        return size / _time_batch(network, shape, training, size, least_seconds=MEASURED)


def _time_batch(
    network: Network, shape: tuple[int, ...], training: Training, size: int, least_seconds: float
) -> float:
    """Mean seconds of the training on one batch, after one to warm up."""
    images = np.random.default_rng(0).integers(0, 256, (size, *shape), dtype=np.uint8)
    x = as_tensor(images, network.device)
    y = torch.arange(size, device=network.device) % EMBEDDING_SIZE

    def objective(z: Tensor, rows: Tensor) -> Tensor:
        return F.cross_entropy(z, y[rows])

    batches = [torch.arange(size, device=network.device)]
    settings = training.settings(MOST_BATCHES, learning_rate=0.0)
    ends: list[float] = []
    for _ in epochs(network, x, lambda _: batches, objective, settings, seed=0, purpose="speed"):
        ends.append(time.perf_counter())
        if len(ends) > 1 and ends[-1] - ends[0] >= least_seconds:
            break
    return (ends[-1] - ends[0]) / (len(ends) - 1)
