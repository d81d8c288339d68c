"""The type of the table of learners, whose modules are imported when they are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cilf.learners.base import Learner


class LearnerTable(MutableMapping[str, "type[Learner]"]):
    """Learners by name; looking at the names imports none of them.

    Args:
        package: the package of the learners.
        places: the place of each learner in the package, ``module:Class``, by its name.
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._package = package
        self._places: dict[str, str | type[Learner]] = dict(places)
        split = (place.split(":") for place in places.values())
        self.homes = {attribute: module for module, attribute in split}  # class -> its module

    def __getitem__(self, name: str) -> type[Learner]:
        place = self._places[name]
        if isinstance(place, str):
            module, attribute = place.split(":")
            place = getattr(import_module(f"{self._package}.{module}"), attribute)
            self._places[name] = place
        return place

    def __setitem__(self, name: str, learner: type[Learner]) -> None:
        self._places[name] = learner

    def __delitem__(self, name: str) -> None:
        del self._places[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
