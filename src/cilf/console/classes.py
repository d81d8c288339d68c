"""What classes are called: a name that people can change, whatever the model calls the class.

A class has a key, which is its first name and never changes; groups refer to that. What it is
called now is its display name. What the model calls it is the name it had when the model learned
last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from cilf.console.store import Event
from cilf.core.names import check_name, normalize_name
from cilf.errors import BadInput

NEW, RENAME, TAUGHT = "new class", "rename", "taught"


class Classes:
    """All classes: those of the model, and those that people made up.

    >>> classes = Classes(["cat"])
    >>> classes.key("cat"), classes.key("dog")
    ('cat', None)
    """

    def __init__(
        self,
        model: Iterable[str] = (),
        events: Iterable[Event] = (),
        renamed: Iterable[Mapping[str, str]] = (),  # what the model calls otherwise, in order
    ) -> None:
        self.names: dict[str, str] = {}  # key -> display name
        self._key_of: dict[str, str] = {}  # the model's label -> key
        self.version = 0
        for happened in events:
            self._apply(happened)
        for names in renamed:  # by another store, if it is not among the events
            for old, new in names.items():
                self._key_of.setdefault(new, self.key_of_label(old))
        self.model = list(model)
        for label in self.model:
            self.names.setdefault(self.key_of_label(label), label)

    def _apply(self, happened: Event) -> None:
        self.version = happened.seq
        for key, (_, after) in happened.patch.get("names", {}).items():
            if after is None:
                self.names.pop(key, None)
            else:
                self.names[key] = after
        self._key_of |= happened.patch.get("taught", {})

    # ------------------------------------------------------------- looking up

    def display(self, key: str) -> str:
        return self.names.get(key, key)

    def key(self, name: str) -> str | None:
        """The class that is called this now."""
        return next((key for key, called in self.names.items() if called == name), None)

    def key_of_label(self, label: str) -> str:
        """The class that the model calls this."""
        return self._key_of.get(label, label)

    def shown(self, label: str) -> str:
        """What a class of the model is called now."""
        return self.display(self.key_of_label(label))

    @property
    def renames(self) -> dict[str, str]:
        """What the model calls a class -> what it is called now, where that is not the same."""
        called = {label: self.shown(label) for label in self.model}
        return {label: name for label, name in called.items() if name != label}

    def label(self, key: str) -> str:
        """What the model calls a class; its name if the model does not know it."""
        known = (label for label in self.model if self.key_of_label(label) == key)
        return next(known, self.display(key))

    def is_learned(self, key: str) -> bool:
        return any(self.key_of_label(label) == key for label in self.model)

    def only(self, used: Collection[str]) -> Classes:
        """The classes without those that neither the model knows nor anything is called by."""
        return self._with({k: v for k, v in self.names.items() if k in used or self.is_learned(k)})

    def _with(self, names: Mapping[str, str]) -> Classes:
        rest = Classes(self.model)
        rest.names, rest._key_of, rest.version = dict(names), self._key_of, self.version
        return rest

    # ------------------------------------------------------------- changing

    def checked(self, typed: str) -> str:
        """A name as it is kept; refused if it cannot be one, or is too like another one."""
        name = check_name(typed, self.names.values())
        other = self.names.get(self.key_of_label(name))  # of this first name, or so in the model
        if other is not None and other != name:
            raise BadInput(f"name: {name!r} is what {other!r} was called before: choose another.")
        return name

    def renamed(self, old: str, new: str) -> Mapping[str, Any]:
        """The patch that gives a class another name."""
        key = self.key(normalize_name(old))
        if key is None:
            raise BadInput(f"class {old!r} is not there: it may have got another name.")
        others = {k: v for k, v in self.names.items() if k != key}
        name = normalize_name(new)
        if self.key_of_label(name) != key:  # a name may be like the one that it replaces
            name = self._with(others).checked(new)
        if name in others.values():
            raise BadInput(f"name: {name!r} is another class: move instances there instead.")
        if name == self.names[key]:
            raise BadInput(f"name: the class is called {name!r} already.")
        return {"names": {key: [self.names[key], name]}}
