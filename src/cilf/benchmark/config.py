"""The configuration of a run: names and changes from the defaults, and all that follows."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from cilf.benchmark import scales
from cilf.benchmark.presets import SCENARIOS, Preset, preset, stream_defaults
from cilf.core import parameters, validation
from cilf.data import Dataset, load_dataset
from cilf.data.options import Options
from cilf.data.paths import plain_name
from cilf.errors import BadConfig
from cilf.learners import learner_class, make
from cilf.learners.plugins import get_digest
from cilf.query.budget import Query
from cilf.query.query_policy import FOUND, QueryPolicy
from cilf.query.strategies import RANDOM
from cilf.stream import Stream

if TYPE_CHECKING:
    from cilf.learners import Learner

STREAM_PREFIX = "stream."  # of a change of the stream's arguments
POLICY = tuple(field.name for field in dataclasses.fields(QueryPolicy))
WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None, "null": None}


class RunConfig(BaseModel):
    """One run: a learner, a stream, and what is changed from the defaults of both.

    >>> config = RunConfig.of(learner="iforest", data="digits", scenario="single", seed=3)
    >>> config.scale, config.make_learner().seed
    ('smoke', 3)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    learner: str  # a name, or path/to/file.py:Class
    data: str  # a name, a path or "hf:...", as load_dataset takes it
    scenario: str
    seed: int = 0
    scale: str
    query: Query = 1.0
    n_novel: int | str | None = None
    strategy: str = RANDOM
    propagate: float | None = None
    protocol: str = FOUND
    parameters: dict[str, Any] = {}  # of the learner
    stream: dict[str, Any] = {}  # arguments of the stream
    loading: dict[str, Any] = {}  # keyword options of load_dataset

    @classmethod
    def of(
        cls, *, data: str | os.PathLike[str], scale: str | None = None, **values: Any
    ) -> RunConfig:
        """A config, with every name checked; None as scale takes the default of the data set."""
        QueryPolicy(**{name: values[name] for name in POLICY if name in values})
        source = os.fspath(data) if isinstance(data, os.PathLike) else data
        values["parameters"] = parameters.flatten(values.get("parameters", {}))
        if isinstance(values.get("query"), np.integer | np.floating):
            values["query"] = values["query"].item()  # or a budget would be read as a share
        try:
            config = cls(data=source, scale=scale or scales.default_scale(source), **values)
        except ValidationError as error:
            raise BadConfig(describe_invalid(error)) from error
        validation.whole_number("seed", config.seed, least=0)
        learner_class(config.learner)
        validation.one_of("scenario", config.scenario, SCENARIOS)
        validation.one_of("scale", config.scale, scales.SCALES)
        for name in config.stream:
            validation.one_of("argument of the stream", name, stream_defaults(config.scenario))
        for name in config.loading:
            validation.one_of("option for reading data", name, Options.names())
        learner_class(config.learner)().set_params(**config.parameters)
        return config

    @property
    def policy(self) -> QueryPolicy:
        """The query policy of the run."""
        return QueryPolicy(**{name: getattr(self, name) for name in POLICY})

    @property
    def preset(self) -> Preset:
        """The defaults of the run."""
        return preset(self.data, self.scenario, self.scale)

    @property
    def preset_name(self) -> str:
        return self.preset.name

    def load(self) -> Dataset:
        """Load the data set with the options for reading it."""
        return load_dataset(self.data, **self.loading)

    def make_learner(self) -> Learner:
        """Make the learner from the run's seed, the scale's budgets and the changes."""
        learner = learner_class(self.learner)
        budgets = scales.budgets(self.scale, self.data, learner.name)
        known = learner().get_params()
        own = {name: value for name, value in budgets.items() if name in known}
        return make(self.learner, **({"seed": self.seed} | own | self.parameters))

    def stream_arguments(self) -> dict[str, Any]:
        """Every argument of the stream but its data set and seed."""
        return dict(self.preset.stream) | self.stream

    def make_stream(self, dataset: Dataset) -> Stream:
        return SCENARIOS[self.scenario](dataset, seed=self.seed, **self.stream_arguments())

    def resolve(self) -> dict[str, Any]:
        """Every parameter that the run depends on, changed or not.

        A learner in a file of its own is described by its name and the digest of the file. So the
        file may be moved, but not changed.
        """
        learner = self.make_learner()
        named = self.model_dump(exclude={"parameters", "stream"})
        return named | {
            "learner": learner.name,
            "learner_digest": get_digest(type(learner)),
            "parameters": parameters.to_json(learner),
            "stream": self.stream_arguments(),
        }

    @property
    def title(self) -> str:
        """The run's part of the name of a folder."""
        name = learner_class(self.learner).name
        return f"{_file_name(name)}-{data_file_name(self.data)}-{self.scenario}-seed{self.seed}"

    def changes(self) -> list[str]:
        """The changes from the defaults, as ``parse_changes`` reads them."""
        learner = {parameters.to_dotted(name): value for name, value in self.parameters.items()}
        stream = {f"{STREAM_PREFIX}{name}": value for name, value in self.stream.items()}
        return [f"{name}={_format_value(value)}" for name, value in (learner | stream).items()]


def data_file_name(data: str) -> str:
    """A data set's name or path as part of the name of a file or folder.

    >>> data_file_name("own/photos/"), data_file_name("hf:org/birds")
    ('photos', 'hf-org-birds')
    """
    own = data if data.startswith("hf:") else plain_name(Path(data))
    return _file_name(own)


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "data"


def parse_query(text: str) -> Query:
    """Parse a query: a whole number is a budget, a number with a point a share.

    >>> parse_query("5"), parse_query("1.0"), parse_query("self")
    (5, 1.0, 'self')
    """
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def parse_changes(changes: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse ``name=value`` texts into changes of the learner and of the stream.

    >>> parse_changes(["epochs=5", "training.clip=none", "stream.n_quiet=1"])
    ({'epochs': 5, 'training__clip': None}, {'n_quiet': 1})
    """
    learner: dict[str, Any] = {}
    stream: dict[str, Any] = {}
    for change in changes:
        name, equals, text = (part.strip() for part in change.partition("="))
        if not (name and equals):
            raise BadConfig(f"--set got {change!r}: write name=value, for example epochs=5.")
        target = stream if name.startswith(STREAM_PREFIX) else learner
        target[name.removeprefix(STREAM_PREFIX)] = _parse_value(text)
    return parameters.flatten(learner), stream


def _parse_value(text: str) -> Any:
    """Parse a number, a list, true, false or none; anything else is text."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def _format_value(value: Any) -> str:
    """The text that ``_parse_value`` reads as this value."""
    plain = isinstance(value, str) and _parse_value(value) == value
    return str(value) if plain else json.dumps(value)


def describe_invalid(error: ValidationError) -> str:
    """The first mistake in one line."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"{name} is missing."
    return f"{name} is {first['input']!r}: {first['msg']}."
