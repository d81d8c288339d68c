"""The names of classes. People can change them between two updates of the model.

A class has a key, a display name and a label. The key is its first name. It never changes, and
clusters refer to it. The display name is its current name. The label is its name in the model,
which is the display name at the time of the last update.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from cilf.console.store import Event
from cilf.core.names import check_name, normalize_name
from cilf.errors import BadInput

NEW, RENAME, UPDATE = "new class", "rename", "update"


class Classes:
    """All classes: those of the model, and those that people have made.

    >>> classes = Classes(["cat"])
    >>> classes.key("cat"), classes.key("dog")
    ('cat', None)
    """

    def __init__(
        self,
        model: Iterable[str] = (),
        events: Iterable[Event] = (),
        renames: Iterable[Mapping[str, str]] = (),  # of the model's labels, in order
        merges: Iterable[Mapping[str, str]] = (),  # label -> the label that it became part of
    ) -> None:
        self.names: dict[str, str] = {}  # key -> display name
        self._key_of: dict[str, str] = {}  # label -> key
        self._merged: dict[str, str] = {}  # key -> the key of the class that it is part of
        self.version = 0
        for event in events:
            self._apply(event)
        for names in renames:  # another store may have made them
            for old, new in names.items():
                self._key_of.setdefault(new, self.key_of_label(old))
        for labels in merges:
            for gone, kept in labels.items():
                self._merge(self.key_of_label(gone), self.key_of_label(kept))
        for key in self._merged:
            self.names.pop(key, None)
        self.model = list(model)
        for label in self.model:
            self.names.setdefault(self.key_of_label(label), label)

    def _apply(self, event: Event) -> None:
        self.version = event.seq
        for key, (_, after) in event.patch.get("names", {}).items():
            if after is None:
                self.names.pop(key, None)
            else:
                self.names[key] = after
        self._key_of |= event.patch.get("keys", {})

    def _merge(self, gone: str, kept: str) -> None:
        if self.present_key(kept) != gone:  # names may have gone round
            self._merged[gone] = kept

    # ------------------------------------------------------------- names

    def display(self, key: str) -> str:
        present = self.present_key(key)
        return self.names.get(present, present)

    def present_key(self, key: str) -> str:
        """The key of the class that a class is part of since a merge; else its own."""
        while key in self._merged:
            key = self._merged[key]
        return key

    def key(self, name: str) -> str | None:
        """The key of the class of this display name."""
        return next((key for key, shown in self.names.items() if shown == name), None)

    def key_of_label(self, label: str) -> str:
        """The key of the class of this label."""
        return self.present_key(self._key_of.get(label, label))

    def display_label(self, label: str) -> str:
        """The display name of the class of this label."""
        return self.display(self.key_of_label(label))

    @property
    def renames(self) -> dict[str, str]:
        """Label -> display name, where they differ."""
        names = {label: self.display_label(label) for label in self.model}
        return {label: name for label, name in names.items() if name != label}

    def label(self, key: str) -> str:
        """The label of a class; its display name if the model does not know it."""
        known = (label for label in self.model if self.key_of_label(label) == key)
        return next(known, self.display(key))

    def is_in_model(self, key: str) -> bool:
        return any(self.key_of_label(label) == key for label in self.model)

    def drop_unused(self, used: Collection[str]) -> Classes:
        """The classes that the model knows or that are used."""
        return self._replace_names(
            {k: v for k, v in self.names.items() if k in used or self.is_in_model(k)}
        )

    def _replace_names(self, names: Mapping[str, str]) -> Classes:
        rest = Classes(self.model)
        rest.names, rest._key_of, rest.version = dict(names), self._key_of, self.version
        rest._merged = self._merged
        return rest

    # ------------------------------------------------------------- changing

    def check_name(self, typed: str) -> str:
        """The name in its stored form. A name too similar to another one is refused."""
        name = check_name(typed, self.names.values())
        other = self.names.get(self.key_of_label(name))  # the class of this key or label
        if other is not None and other != name:
            raise BadInput(f"name: {name!r} is a former name of {other!r}: choose another.")
        return name

    def make_rename(self, old: str, new: str) -> Mapping[str, Any]:
        """The patch that renames a class."""
        key = self.key(normalize_name(old))
        if key is None:
            raise BadInput(f"class {old!r} does not exist: it may have been renamed.")
        others = {k: v for k, v in self.names.items() if k != key}
        name = normalize_name(new)
        if self.key_of_label(name) != key:  # a name may be similar to the one that it replaces
            name = self._replace_names(others).check_name(new)
        if name in others.values():
            raise BadInput(f"name: {name!r} is another class: move instances there instead.")
        if name == self.names[key]:
            raise BadInput(f"name: the name of the class is {name!r} already.")
        return {"names": {key: [self.names[key], name]}}
