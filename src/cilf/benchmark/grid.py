"""Grids: TOML files that describe many runs at once, and their cells.

See docs/benchmark.md for the format.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from cilf.benchmark.config import RunConfig, describe_invalid
from cilf.core import validation
from cilf.core.parameters import flatten
from cilf.data import DATASETS
from cilf.data.hub import PREFIX
from cilf.data.paths import looks_like_path
from cilf.errors import BadConfig, BadInput, CilfError
from cilf.query.budget import Query

NONE = "none"  # stands for None, which TOML cannot write
DIGITS = 10  # of a cell's hash in the name of its folder

T = TypeVar("T")


def _to_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _flatten(value: Any) -> Any:
    return flatten(value) if isinstance(value, Mapping) else value


Several = Annotated[list[T], BeforeValidator(_to_list), Field(min_length=1)]
"""One value or a list of them."""


class _Table(BaseModel):
    """A table of the file; an unknown key is answered with the nearest known one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def read(cls, table: Mapping[str, Any], what: str) -> Any:
        for key in table:
            validation.one_of(f"key of {what}", key, cls.keys())
        try:
            return cls(**{key: _replace_none(value) for key, value in table.items()})
        except ValidationError as error:
            raise BadConfig(f"{what}: {describe_invalid(error)}") from error

    @classmethod
    def keys(cls) -> list[str]:
        return [field.alias or name for name, field in cls.model_fields.items()]


class Settings(_Table):
    """Settings of the runs; each value of a list makes cells of its own."""

    scale: Several[str | None] = [None]
    query: Several[Query] = [1.0]
    n_novel: Several[int | str | None] = [None]
    strategy: Several[str] = ["random"]
    propagate: Several[float | None] = [None]
    protocol: Several[str] = ["found"]


class Selection(_Table):
    """The cells that an override applies to; a key that is left out selects all."""

    learner: Several[str] | None = None
    data: Several[str] | None = None
    scenario: Several[str] | None = None
    seed: Several[int] | None = None


class Variation(_Table):
    """Values of parameters to run in every combination."""

    parameters: Annotated[dict[str, Several[Any]], BeforeValidator(_flatten)] = {}
    stream: dict[str, Several[Any]] = {}

    def combinations(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """The parameters and the stream's arguments of each combination."""
        names = [*self.parameters, *self.stream]
        for values in itertools.product(*self.parameters.values(), *self.stream.values()):
            chosen = list(zip(names, values, strict=True))
            n_parameters = len(self.parameters)
            yield dict(chosen[:n_parameters]), dict(chosen[n_parameters:])


class Override(Settings):
    """Additional cells that differ from those of the grid."""

    name: str
    only: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    stream: dict[str, Any] = {}
    vary: dict[str, Any] = {}


class Grid(Settings):
    """Every combination of learners, data sets, scenarios and seeds, and overrides of them.

    >>> grid = Grid.of({"learner": ["iforest", "one-svm"], "data": "digits", "seed": [0, 1]})
    >>> [cell.config.title for cell in grid.cells()][:2]
    ['iforest-digits-multiple-seed0', 'iforest-digits-multiple-seed1']
    >>> Grid.of({"learners": "cilf"})
    Traceback (most recent call last):
    ...
    cilf.errors.BadConfig: unknown key of the grid 'learners': did you mean 'learner'? Known: ...
    """

    learner: Several[str]
    data: Several[str]
    scenario: Several[str] = ["multiple"]
    seed: Several[int] = [0]
    plain: bool = True  # whether to run the cells without an override
    parameters: dict[str, dict[str, Any]] = {}  # by learner
    stream: dict[str, Any] = {}
    loading: dict[str, dict[str, Any]] = {}  # by data set
    override: list[dict[str, Any]] = []

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Grid:
        """The grid that a table describes; a grid with a cell that cannot be run is refused."""
        grid: Grid = cls.read(table, "the grid")
        for name in grid.data:
            require_data(name)
        for name in grid.parameters:
            validation.one_of("learner in [parameters]", name, grid.learner)
        for name in grid.loading:
            validation.one_of("data set in [loading]", name, grid.data)
        if not grid.cells():
            raise BadConfig("the grid has no cell: leave out 'plain', or add an [[override]].")
        return grid

    def cells(self) -> list[GridCell]:
        """The cells in order; equal cells are listed once, at the place of the first."""
        found: dict[str, GridCell] = {}
        for variant in self._variants():
            for cell in self._expand_variant(variant):
                found.setdefault(cell.key, cell)
        return list(found.values())

    def _variants(self) -> list[_Variant]:
        plain = [_Variant(None, Selection(), self, {}, {})] if self.plain else []
        return plain + [v for table in self.override for v in self._expand_override(table)]

    def _expand_override(self, table: Mapping[str, Any]) -> Iterator[_Variant]:
        what = f"override {table.get('name')!r}" if "name" in table else "an [[override]]"
        override: Override = Override.read(table, what)
        if not set(table) - {"name", "only"}:
            raise BadConfig(f"{what} changes nothing: set or vary something, or leave it out.")
        only: Selection = Selection.read(override.only, f"{what}, only")
        self._require_among(only, what)
        vary: Variation = Variation.read(override.vary, f"{what}, vary")
        # A setting that an override leaves out stays as it is in the grid.
        own = {name: getattr(override, name) for name in Settings.model_fields if name in table}
        settings = self.model_copy(update=own)
        for parameters, stream in vary.combinations():
            yield _Variant(
                override.name, only, settings,
                flatten(override.parameters) | parameters, override.stream | stream,
            )  # fmt: skip

    def _require_among(self, only: Selection, what: str) -> None:
        for axis in Selection.model_fields:
            for value in getattr(only, axis) or ():
                validation.one_of(f"{axis} in {what}", str(value), map(str, getattr(self, axis)))

    def _expand_variant(self, variant: _Variant) -> Iterator[GridCell]:
        axes = [
            getattr(variant.only, axis) or getattr(self, axis) for axis in Selection.model_fields
        ]
        ways = [getattr(variant.settings, name) for name in Settings.model_fields]
        for learner, data, scenario, seed in _combine_by_data(axes):
            for values in itertools.product(*ways):
                settings = dict(zip(Settings.model_fields, values, strict=True))
                yield self._cell(
                    variant, settings, learner=learner, data=data, scenario=scenario, seed=seed
                )

    def _cell(self, variant: _Variant, settings: dict[str, Any], **names: Any) -> GridCell:
        own = self.parameters.get(names["learner"], {})
        parameters = flatten(own) | flatten(variant.parameters)
        stream = self.stream | variant.stream
        loading = self.loading.get(names["data"], {})
        try:
            config = RunConfig.of(
                **names, **settings, parameters=parameters, stream=stream, loading=loading
            )
            return GridCell(config, cell_key(config), variant.name)
        except CilfError as error:
            where = f"override {variant.name!r}: " if variant.name else ""
            only = " (only.learner names those it is for)" if variant.parameters else ""
            raise BadConfig(f"{where}{error}{only}") from error


@dataclass(frozen=True)
class _Variant:
    """The grid as one override changes it."""

    name: str | None
    only: Selection
    settings: Settings
    parameters: dict[str, Any]
    stream: dict[str, Any]


@dataclass(frozen=True)
class GridCell:
    """One run of a grid."""

    config: RunConfig
    key: str  # hash of every resolved parameter
    override: str | None = None

    @classmethod
    def of(cls, config: RunConfig) -> GridCell:
        """The cell of a config without an override."""
        return cls(config, cell_key(config))

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"{self.config.title}-{self.key}"


def cell_key(config: RunConfig) -> str:
    """A hash of everything that a run depends on, defaults included.

    >>> names = {"learner": "iforest", "data": "digits", "scenario": "single"}
    >>> plain = RunConfig.of(**names)
    >>> cell_key(plain) == cell_key(RunConfig.of(**names, parameters={"n_estimators": 100}))
    True
    >>> cell_key(plain) == cell_key(RunConfig.of(**names, query=1))
    False
    """
    resolved = config.resolve()
    try:
        text = json.dumps(resolved, sort_keys=True, allow_nan=False)
    except (ValueError, TypeError) as error:  # infinite, a date, ...
        raise BadConfig(f"a value cannot be kept in run.json ({error}): give another.") from error
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def read_grid(path: str | Path) -> Grid:
    """The grid in a TOML file."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}): name a TOML file.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path} is no TOML ({error}): see docs/benchmark.md.") from error
    try:
        return Grid.of(table)
    except CilfError as error:
        raise BadConfig(f"{path}: {error}") from error


def _combine_by_data(axes: list[list[Any]]) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Combinations of (learner, data, scenario, seed), with those of a data set together."""
    learners, data, scenarios, seeds = axes
    for name, scenario, learner, seed in itertools.product(data, scenarios, learners, seeds):
        yield learner, name, scenario, seed


def require_data(name: str) -> None:
    """Refuse an unknown name of a data set."""
    if name not in DATASETS and not name.startswith(PREFIX) and not looks_like_path(name):
        validation.one_of("data set", name, DATASETS)


def _replace_none(value: Any) -> Any:
    """Replace the text "none" by None, at any depth."""
    if isinstance(value, list):
        return [_replace_none(item) for item in value]
    if isinstance(value, dict):
        return {name: _replace_none(item) for name, item in value.items()}
    return None if value == NONE else value
