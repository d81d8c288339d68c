"""Old names, which work with a warning for two minor releases and then are gone.

``DEPRECATED`` is the only place that knows them: names of modules, parameters of learners and their
parts, and options of the command line. ``docs/versions.md`` states the policy.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, NoReturn, TypeVar

from cilf.errors import BadConfig

SUPPORTED_RELEASES = 2  # minor releases in which an old name still works
PARTS = "__"  # between the name of a part and that of its parameter

Owner = TypeVar("Owner", bound=type)
Release = tuple[int, int]  # major, minor


class OldName(FutureWarning):
    """The warning about a name that has been replaced."""


@dataclass(frozen=True)
class Deprecation:
    """A name that another one has replaced.

    Attributes:
        kind: what the name is of.
        owner: the module, the class with the parameter, or the command with the option.
        old: the name that was replaced.
        new: the name to use.
        since: the first release with the new name.

    >>> Deprecation("option", "cilf paper", "--draw", "--plot", since="0.2.0").gone_in
    '0.4.0'
    """

    kind: Literal["attribute", "parameter", "option"]
    owner: str
    old: str
    new: str
    since: str

    @property
    def gone_in(self) -> str:
        """The first release without the old name."""
        major, minor = parse_release(self.since)
        return f"{major}.{minor + SUPPORTED_RELEASES}.0"

    def __str__(self) -> str:
        return (
            f"{self.old} of {self.owner} is called {self.new} since cilf {self.since}: use the new "
            f"name, cilf {self.gone_in} will not know the old one."
        )


DEPRECATED = (
    Deprecation("attribute", "cilf.query", "self_taught", "name_clusters", since="0.2.0"),
    Deprecation("attribute", "cilf.evaluate", "Journal", "Checkpoint", since="0.2.0"),
    Deprecation("attribute", "cilf.evaluate", "Drawing", "Snapshot", since="0.2.0"),
    Deprecation("parameter", "ClassifierLearner", "accepted", "accepted_share", since="0.2.0"),
    Deprecation("parameter", "SENCMaS", "accepted", "accepted_share", since="0.2.0"),
    Deprecation("option", "cilf paper", "--draw", "--plot", since="0.2.0"),
)


def parse_release(version: str) -> Release:
    """The major and the minor number of a version.

    >>> parse_release("0.2.1")
    (0, 2)
    """
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def old_attributes(module: str, find: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module some of whose names have been replaced.

    Args:
        module: the name of the module.
        find: the ``__getattr__`` of its other names, if it has one.
    """
    known = _find("attribute", [module])

    def find_current(name: str) -> Any:
        if name in known:
            _warn(known[name])
            return getattr(import_module(module), known[name].new)
        return find(name) if find else _refuse_attribute(module, name)

    return find_current


def _refuse_attribute(module: str, name: str) -> NoReturn:
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def accept_old_parameters(owner: Owner) -> Owner:
    """Let a constructor take the old names of its parameters; for a class decorator."""
    init = owner.__init__  # type: ignore[misc]  # of the class that is decorated

    @functools.wraps(init)
    def construct(self: Any, *args: Any, **parameters: Any) -> None:
        init(self, *args, **rename_parameters(owner, parameters))

    owner.__init__ = construct  # type: ignore[misc]
    return owner


def rename_parameters(owner: type, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a class under their present names; ``part__name`` keeps its ``name``."""
    known = _find("parameter", [base.__name__ for base in owner.__mro__])
    current: dict[str, Any] = {}
    for key, value in parameters.items():
        name, separator, inner = key.partition(PARTS)
        if name in known:
            _warn(known[name])
            name = known[name].new
        new = name + separator + inner
        if new in current or (new != key and new in parameters):
            raise BadConfig(f"{new} is given by its old name, too: give {new} alone.")
        current[new] = value
    return current


def rename_options(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line with the present names of its options."""
    known = _find("option", [f"cilf {arguments[0]}"] if arguments else [])
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [_rename_option(known, each) for each in arguments[:end]] + list(arguments[end:])


def _rename_option(known: Mapping[str, Deprecation], argument: str) -> str:
    option, is_joined, value = argument.partition("=")
    if option not in known:
        return argument
    _warn(known[option])
    return known[option].new + is_joined + value


def _find(kind: str, owners: Sequence[str]) -> dict[str, Deprecation]:
    """The deprecations of some owners by the old name."""
    return {each.old: each for each in DEPRECATED if each.kind == kind and each.owner in owners}


def _warn(deprecation: Deprecation) -> None:
    """Warn about an old name, at the first line outside this package that leads to it."""
    package = __name__.partition(".")[0]
    level = 1
    frame = sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(str(deprecation), OldName, stacklevel=level)
