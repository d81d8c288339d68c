"""Learners in files outside this package: ``path/to/file.py:Class``.

A file is run only when a user names it, never because a model or a run folder mentions it.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import zlib
from collections.abc import Collection
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from cilf.core import validation
from cilf.errors import BadConfig

if TYPE_CHECKING:
    from cilf.learners.base import Learner

SUFFIX = ".py"
DIGEST = "__digest__"  # of the file, as a variable of the module that is made of it
FORM = f"path/to/file{SUFFIX}:Class"
CONTRACT = "cilf.learners.Learner"


def is_plugin(name: str) -> bool:
    """Whether a name refers to a class in a file.

    >>> is_plugin("methods/mine.py:Mine"), is_plugin("cilf")
    (True, False)
    """
    return ":" in name or name.endswith(SUFFIX)


def read_class(name: str, taken: Collection[str]) -> type[Learner]:
    """Read the class ``path/to/file.py:Class``. A class that is no learner is refused.

    Its name must not be one of ``taken``, since model files hold the name.
    """
    file, _, wanted = name.rpartition(":")
    if not file.endswith(SUFFIX) or not wanted:
        raise BadConfig(f"learner is {name!r}: write {FORM} for a learner in a file of your own.")
    path = Path(file).expanduser()
    try:
        source = path.read_bytes()
    except OSError as error:
        raise BadConfig(
            f"learner is {name!r}: cannot read {path} ({error.strerror}); write {FORM}."
        ) from error
    module = _load_module(path.absolute(), source)
    found = _find_class(module, wanted, path)
    _require_contract(found, f"{wanted} in {path}", taken)
    return found


def get_digest(made_by: type[Learner]) -> str | None:
    """The sha256 of the file a class was read from; None for a class of this package."""
    digest: str | None = getattr(sys.modules.get(made_by.__module__), DIGEST, None)
    return digest


def locate_class(made_by: type[Learner]) -> str | None:
    """``path/to/file.py:Class`` of a class that was read from a file; None for any other."""
    module = sys.modules.get(made_by.__module__)
    if module is None or not hasattr(module, DIGEST):
        return None
    return f"{module.__file__}:{made_by.__qualname__}"


@cache
def _load_module(path: Path, source: bytes) -> ModuleType:
    """The module of a file; the same one as long as the file does not change."""
    digest = hashlib.sha256(source).hexdigest()
    module = ModuleType(f"plugin_{path.stem}_{digest[:8]}_{zlib.crc32(str(path).encode()):08x}")
    module.__file__ = str(path)
    setattr(module, DIGEST, digest)
    sys.modules[module.__name__] = module  # dataclasses and the like look their module up
    try:
        with redirect_stdout(sys.stderr):  # standard output is for results
            exec(compile(source, str(path), "exec"), module.__dict__)  # nosec B102  # named by the user
    except Exception as error:  # whatever somebody's file may raise
        del sys.modules[module.__name__]
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise BadConfig(
            f"{path} does not load ({reason}{_find_line(error, path)}): correct the file."
        ) from error
    return module


def _find_line(error: Exception, path: Path) -> str:
    """The line of the file that raised the error."""
    lines, step = [], error.__traceback__
    while step:
        if step.tb_frame.f_code.co_filename == str(path):
            lines.append(step.tb_lineno)
        step = step.tb_next
    return f", line {lines[-1]}" if lines else ""


def _find_class(module: ModuleType, wanted: str, path: Path) -> type[Learner]:
    from cilf.learners.base import Learner

    defined = vars(module)
    theirs = [
        name
        for name, value in defined.items()
        if inspect.isclass(value)
        and issubclass(value, Learner)
        and value.__module__ == module.__name__
    ]
    if wanted not in theirs and (wanted in defined or not theirs):
        what = f"{wanted} in {path}" if wanted in defined else f"what {path} defines"
        raise BadConfig(f"{what} is no learner: let a class in the file extend {CONTRACT}.")
    found: type[Learner] = defined[validation.one_of(f"class of {path}", wanted, theirs)]
    return found


def _require_contract(made_by: type[Learner], what: str, taken: Collection[str]) -> None:
    if missing := sorted(made_by.__abstractmethods__):
        raise BadConfig(f"{what} does not write {', '.join(missing)}: {CONTRACT} demands it.")
    name = getattr(made_by, "name", None)
    if not isinstance(name, str) or not name:
        raise BadConfig(f'{what} has no name: give it one as a class attribute, name = "mine".')
    if name in taken:
        raise BadConfig(
            f"{what} has the name {name!r}, which one of ours has: give it another, name = ...."
        )
    _require_parameters(made_by, what)


def _require_parameters(made_by: type[Learner], what: str) -> None:
    parameters = inspect.signature(made_by).parameters
    for name, parameter in parameters.items():
        if parameter.kind is not parameter.KEYWORD_ONLY or parameter.default is parameter.empty:
            raise BadConfig(
                f"{what} takes {name!r} without a keyword or a default: write its constructor as "
                "__init__(self, *, seed=0, ...)."
            )
    if "seed" not in parameters:
        raise BadConfig(f"{what} takes no seed: write __init__(self, *, seed=0, ...).")
    try:
        made = made_by()
    except Exception as error:  # whatever somebody's constructor may raise
        reason = f"{type(error).__name__}: {error}"
        raise BadConfig(f"{what} cannot be made ({reason}): let __init__ only store.") from error
    if unkept := [name for name in parameters if not hasattr(made, name)]:
        raise BadConfig(f"{what} does not keep {unkept[0]!r}: store it as self.{unkept[0]}.")
