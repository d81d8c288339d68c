"""Parameters of learners and of their parts, nested as scikit-learn nests them.

A part is a value that has parameters of its own: ``detector__k_max`` names the parameter ``k_max``
of the part ``detector``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, TypeVar

from cilf.core import deprecation, validation
from cilf.errors import BadConfig

SEPARATOR = deprecation.PARTS  # between the names of a part and its parameter, in Python
DOT = "."  # the same, on the command line and in files
NAME = "name"  # the key of a part's own name in JSON

Owner = TypeVar("Owner", bound=type)


class Parametrised(Protocol):
    """A learner or a part: an object with parameters.

    Class attributes:
        domains: the check of each parameter that needs one.
        alternatives: the parts that a parameter takes beside the type of its default, by name.
    """

    domains: ClassVar[Mapping[str, validation.Check]]
    alternatives: ClassVar[Mapping[str, Mapping[str, type[Part]]]]


class Part:
    """A part of a learner; a subclass is a keyword-only, frozen dataclass.

    Parts are values: nothing changes one, so that learners may share it.

    Class attributes:
        domains, alternatives: see :class:`Parametrised`.
        implied: parameters that came later, with the value that everything before had. Files leave
            them out while they have it, so that older runs and models stay what they are.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True, repr=False)
    ... class Pace(Part):
    ...     start: float = 0.2
    ...     every: int = 10
    >>> Pace().replace(every=5)
    Pace(every=5)
    """

    domains: ClassVar[Mapping[str, validation.Check]] = {}
    alternatives: ClassVar[Mapping[str, Mapping[str, type[Part]]]] = {}
    implied: ClassVar[Mapping[str, Any]] = {}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with ``deep`` those of its own parts too."""
        return get_params(self, deep)

    def replace(self, **changes: Any) -> Self:
        """A copy with some parameters changed."""
        return self._replace(type(self).__name__, changes)

    def _replace(self, title: str, changes: Mapping[str, Any]) -> Self:
        return type(self)(**(get_params(self, deep=False) | resolve_changes(self, title, changes)))

    def check_together(self, within: str) -> None:
        """Refuse parameters that do not go together; ``within`` precedes their names."""

    def __repr__(self) -> str:
        return describe(self)


def defaults(owner: type) -> dict[str, Any]:
    """The parameters of a constructor, and their defaults."""
    return {name: p.default for name, p in inspect.signature(owner).parameters.items()}


def get_params(owner: object, deep: bool) -> dict[str, Any]:
    """The parameters of a learner or part; with ``deep`` those of its parts too."""
    own = {name: getattr(owner, name) for name in defaults(type(owner))}
    if not deep:
        return own
    nested = {
        f"{name}{SEPARATOR}{inner}": value
        for name, part in own.items()
        if isinstance(part, Part)
        for inner, value in part.get_params().items()
    }
    return own | nested


def resolve_changes(owner: Parametrised, title: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """New values of the owner's own parameters. The error for an unknown name suggests the nearest.

    A part is changed by its parameters (``part__name=value``, or ``part={"name": value}``), or
    replaced by a part or by the name of one.
    """
    values: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for key, value in deprecation.rename_parameters(type(owner), changes).items():
        name, is_nested, inner = key.partition(SEPARATOR)
        validation.one_of(f"parameter of {title}", name, defaults(type(owner)))
        if is_nested:
            nested.setdefault(name, {})[inner] = value
        else:
            is_change = isinstance(getattr(owner, name), Part) and isinstance(value, str | Mapping)
            values[name] = _change_part(owner, title, name, value) if is_change else value
    for name, changed in nested.items():
        part = values.get(name, getattr(owner, name))
        if not isinstance(part, Part):
            raise BadConfig(f"{name} of {title} has no parameters of its own: set {name} itself.")
        values[name] = _change_part(owner, title, name, changed, part)
    return values


def _change_part(
    owner: Parametrised,
    title: str,
    name: str,
    value: str | Mapping[str, Any],
    part: Part | None = None,
) -> Part:
    """The part that a name or a mapping describes, based on ``part`` or on the owner's part."""
    part = part or getattr(owner, name)
    changes = {NAME: value} if isinstance(value, str) else dict(value)
    if NAME in changes:
        known = owner.alternatives.get(name, {})
        if not known:
            one = f"{name}{DOT}{next(iter(defaults(type(part))))}"
            raise BadConfig(f"{name} of {title} has no names: set its parameters, such as {one}.")
        part = known[validation.one_of(f"{name} of {title}", changes.pop(NAME), known)]()
    return part._replace(f"{name!r} of {title}", changes)


def check_params(owner: Parametrised, within: str = "") -> None:
    """Refuse invalid parameters, also of parts."""
    for name, check in owner.domains.items():
        check(within + name, getattr(owner, name))
    for name, default in defaults(type(owner)).items():
        if isinstance(default, Part):
            _check_part(owner, name, default, within)


def _check_part(owner: Parametrised, name: str, default: Part, within: str) -> None:
    part = getattr(owner, name)
    types = (type(default), *owner.alternatives.get(name, {}).values())
    if not isinstance(part, types):
        wanted = " or ".join(dict.fromkeys(f"{known.__name__}(...)" for known in types))
        raise BadConfig(f"{within}{name} is {part!r}: give {wanted}.")
    check_params(part, f"{within}{name}{DOT}")
    part.check_together(f"{within}{name}{DOT}")


def to_json(owner: Parametrised) -> dict[str, Any]:
    """The parameters for a file: parts are mappings, and those of alternatives have their name."""
    implied = owner.implied.items() if isinstance(owner, Part) else ()
    named = get_params(owner, deep=False)
    return {n: _to_plain(owner, n, v) for n, v in named.items() if (n, v) not in implied}


def _to_plain(owner: Parametrised, name: str, value: Any) -> Any:
    if not isinstance(value, Part):
        return value
    named = {known: {NAME: key} for key, known in owner.alternatives.get(name, {}).items()}
    return named.get(type(value), {}) | to_json(value)


def flatten(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Translate changes from files and the command line into scikit-learn's names.

    >>> flatten({"epochs": 5, "detector.k_max": 8, "training": {"clip": None}})
    {'epochs': 5, 'detector__k_max': 8, 'training__clip': None}
    """
    flat: dict[str, Any] = {}
    for name, value in changes.items():
        name = name.replace(DOT, SEPARATOR)
        if isinstance(value, Mapping):
            flat |= {f"{name}{SEPARATOR}{inner}": v for inner, v in flatten(value).items()}
        else:
            flat[name] = value
    return flat


def to_dotted(name: str) -> str:
    """A parameter's name as files and the command line write it.

    >>> to_dotted("detector__k_max")
    'detector.k_max'
    """
    return name.replace(SEPARATOR, DOT)


def describe(owner: object) -> str:
    """The constructor call with the parameters that differ from their defaults."""
    values = get_params(owner, deep=False)
    changed = {
        name: values[name]
        for name, default in defaults(type(owner)).items()
        if repr(values[name]) != repr(default)
    }
    return f"{type(owner).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


def inherit_descriptions(owner: Owner) -> Owner:
    """Add the parameters and attributes that a class shares with its bases to its docstring.

    The bases describe each of them once, and may describe parameters that only some classes have.

    >>> class Base:
    ...     '''A base.
    ...
    ...     Parameters
    ...     ----------
    ...     seed : int, default=0
    ...         Seed of the weights.
    ...     width : int, default=8
    ...         Number of units.
    ...     '''
    >>> @inherit_descriptions
    ... class Child(Base):
    ...     '''A child.
    ...
    ...     Parameters
    ...     ----------
    ...     size : int, default=1
    ...         Number of layers.
    ...     '''
    ...     def __init__(self, *, size: int = 1, seed: int = 0) -> None: ...
    >>> list(_read_section(Child, "Parameters"))
    ['size', 'seed']
    """
    before, heading, after = inspect.cleandoc(owner.__doc__ or "").partition(_heading("Parameters"))
    own, gap, rest = after.partition("\n\n")
    described = _inherit_section(owner, "Parameters")
    shared = [text for name, text in described.items() if name in defaults(owner)]
    attributes = _inherit_section(owner, "Attributes").values()
    section = "\n".join([own, *shared])
    if attributes:
        section += "\n\n" + _heading("Attributes") + "\n".join(attributes)
    owner.__doc__ = before + heading + section + gap + rest
    return owner


def _inherit_section(owner: type, title: str) -> dict[str, str]:
    """The entries of a section that the bases have and the class itself has not."""
    entries: dict[str, str] = {}
    for base in owner.__mro__[1:]:
        entries = _read_section(base, title) | entries
    own = _read_section(owner, title)
    return {name: text for name, text in entries.items() if name not in own}


def _read_section(owner: type, title: str) -> dict[str, str]:
    """The entries of a section of a class's docstring, by name."""
    section = inspect.cleandoc(vars(owner).get("__doc__") or "").partition(_heading(title))[2]
    entries = re.split(r"\n(?=\w+ : )", section.partition("\n\n")[0]) if section else []
    return {entry.partition(" ")[0]: entry for entry in entries}


def _heading(title: str) -> str:
    return f"{title}\n{'-' * len(title)}\n"
