"""Rename, merge and forget classes of a model. Each edit is a version, which a rollback undoes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cilf import learners
from cilf.core.names import check_name, normalize_name
from cilf.errors import BadInput
from cilf.workflow.model_log import FORGET, FORGOTTEN, MERGE, MERGED, RENAME, RENAMED, Event
from cilf.workflow.versions import ModelFolder

if TYPE_CHECKING:
    from cilf.learners import Learner


def rename(model: str | Path, old: str, new: str, *, note: str | None = None) -> Event:
    """Rename a class. Labels that were given with the old name count for the new one.

    Args:
        model: a model folder.
        old: the present name of the class.
        new: its new name.
        note: a text that the log keeps.
    """
    folder = ModelFolder.open(model)
    with folder.lock():
        learner = folder.learner()
        (old,) = _find_classes(learner.classes_.tolist(), folder, [old])
        others = [label for label in learner.classes_.tolist() if label != old]
        name = check_name(new, others)
        if name == old:
            raise BadInput(f"new: the class is called {name!r} already, give another name.")
        if name in others:
            raise BadInput(
                f"new: {name!r} is another class: choose another name, or merge both "
                f"(cilf merge {folder.path} {name} {old})."
            )
        learner.rename({old: name})
        return folder.add(learner, RENAME, _about(learner, RENAMED, {old: name}, note))


def merge(model: str | Path, kept: str, *others: str, note: str | None = None) -> Event:
    """Merge classes into one, which keeps its name.

    Args:
        model: a model folder.
        kept: the class that the others are merged into.
        others: the classes that are merged into it.
        note: a text that the log keeps.
    """
    folder = ModelFolder.open(model)
    with folder.lock():
        learner = learners.require_editable(folder.learner(), "merge classes")
        kept, *gone = _find_classes(learner.classes_.tolist(), folder, [kept, *others])
        learner.merge(kept, *gone)
        return folder.add(learner, MERGE, _about(learner, MERGED, dict.fromkeys(gone, kept), note))


def forget(model: str | Path, *labels: str, note: str | None = None) -> Event:
    """Remove classes, and what the model keeps of their instances.

    The labels of these classes no longer count. Earlier versions of the model still hold the
    classes, and the weights of a network keep traces of them; a rebuilt version has none.

    Args:
        model: a model folder.
        labels: the classes to forget.
        note: a text that the log keeps.
    """
    folder = ModelFolder.open(model)
    with folder.lock():
        learner = learners.require_editable(folder.learner(), "forget a class")
        gone = _find_classes(learner.classes_.tolist(), folder, list(labels))
        learner.forget(*gone)
        return folder.add(learner, FORGET, _about(learner, FORGOTTEN, gone, note))


def _find_classes(classes: list[str], folder: ModelFolder, names: list[str]) -> list[str]:
    """The classes of these names, as the model spells them."""
    found = [normalize_name(name) for name in names]
    former = folder.former_names()
    for name in found:
        if name not in classes:
            hint = f"; {name!r} is called {former[name]!r} now" if name in former else ""
            raise BadInput(
                f"{name!r} is no class of {folder.path}: its classes are "
                f"{', '.join(map(repr, classes))}{hint}."
            )
    return found


def _about(learner: Learner, what: str, edit: Any, note: str | None) -> Mapping[str, Any]:
    return {what: edit, "classes": learner.classes_.tolist(), "note": note}
