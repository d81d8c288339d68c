"""Optional packages: imported when they are used, named when they are missing."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

from cilf.errors import BadConfig

ENCODERS = "CILF_ENCODERS"  # environment variable: the networks that a user names, one a line


def optional(module: str, *, extra: str, purpose: str) -> Any:
    """Import a module of an extra; if it is missing, the error says what to install.

    >>> optional("no_such_package", extra="data", purpose="reading tables")
    Traceback (most recent call last):
    ...
    cilf.errors.BadConfig: reading tables needs no_such_package: pip install 'cilf[data]'.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise BadConfig(f"{purpose} needs {package}: pip install 'cilf[{extra}]'.") from error


def named_encoders() -> list[str]:
    """The networks of their own that a user names: files, folders, and names like sentence:NAME."""
    return os.environ.get(ENCODERS, "").splitlines()


def is_installed(module: str) -> bool:
    """Whether a module could be imported, without importing it."""
    return importlib.util.find_spec(module) is not None
