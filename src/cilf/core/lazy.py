"""Names of a package that are imported at their first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package some of whose names take long to import.

    Args:
        package: the name of the package.
        homes: the module of each name, relative to the package; "" if the name is a module itself.

    >>> lazy_attributes("json", {"JSONEncoder": "encoder"})("JSONEncoder").__name__
    'JSONEncoder'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not homes[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find
