"""The log of a model: one line for each change, each with the digest of what was there before.

A line holds, besides what it says of the change,

- ``files``: the SHA-256 of each file of the version that it makes. ``model.json`` holds that of the
  tensors.
- ``previous``: the SHA-256 of all lines before it.

``current`` holds the digest of all lines up to the one that counts. So no file of a model can
change unnoticed. Lines of format 2 have no digests; the first change of such a model adds those of
all its versions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from cilf.core.documents import Count, Damage, Digest, Document, Text, parse_document

FORMAT, UNSEALED = 3, 2  # the format that is written, and the one that has no digests
LOG = "log.jsonl"
FIT, UPDATE, ROLLBACK = "fit", "update", "rollback"
RENAME, MERGE, FORGET, REBUILD = "rename", "merge", "forget", "rebuild"
RENAMED, MERGED, FORGOTTEN = "renamed", "merged", "forgotten"  # what an event did to classes
CORRECTED = "corrected"  # classes all of whose labels were corrected to another one

Number = Annotated[int, Field(ge=1, le=999_999_999)]  # of a version
Files = Mapping[str, Mapping[str, str]]  # number of a version -> file -> digest


@dataclass(frozen=True)
class Event:
    """A log entry: a command that made a version the current one.

    Attributes:
        event: "fit", "update", "rename", "merge", "forget", "rebuild" or "rollback".
        version: the version that became the current one.
        before: the version that was current before; None for the first event.
        time: the time in UTC.
        about: the origin of the labels, their number and what they changed, as JSON values.
        files: the digest of each file, by the number of the version; none in format 2.
        previous: the digest of all lines before; "" in format 2.
    """

    event: str
    version: int
    before: int | None
    time: str
    about: Mapping[str, Any] = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    previous: str = ""

    def to_json(self) -> dict[str, Any]:
        """What the event says to people, without digests."""
        own = {"event": self.event, "version": self.version, "before": self.before}
        return own | {"time": self.time, **self.about}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Event:
        own = ("event", "version", "before", "time", "files", "previous")
        about = {name: value for name, value in plain.items() if name not in own}
        return cls(**{name: plain[name] for name in own if name in plain}, about=about)

    @property
    def makes_version(self) -> bool:
        """Whether the event made a new version."""
        return self.event != ROLLBACK

    @property
    def present_names(self) -> dict[str, str]:
        """The name after the event of each class that got another one, or is part of another."""
        corrected = dict(self.about.get(CORRECTED, {}))
        return corrected | {old: corrected.get(new, new) for old, new in self.renames.items()}

    @property
    def renames(self) -> dict[str, str]:
        """The classes that somebody renamed or merged into others, with their present names."""
        return {**self.about.get(RENAMED, {}), **self.about.get(MERGED, {})}

    @property
    def forgotten(self) -> list[str]:
        """The classes that the event removed from the model."""
        return list(self.about.get(FORGOTTEN, ()))


def describe_edits(about: Mapping[str, Any]) -> list[str]:
    """What an event did to classes, beside learning new ones; ``about`` are its values.

    >>> describe_edits({"merged": {"emmet": "ant"}, "forgotten": ["bee"]})
    ['emmet became part of ant', 'bee was forgotten']
    """
    sentences = {
        RENAMED: "{} renamed to {}",
        CORRECTED: "{} corrected to {}",
        MERGED: "{} became part of {}",
    }
    edits = [
        sentence.format(old, new)
        for name, sentence in sentences.items()
        for old, new in about.get(name, {}).items()
    ]
    return [*edits, *(f"{label} was forgotten" for label in about.get(FORGOTTEN, ()))]


def find_first_versions(lineage: Sequence[Event]) -> dict[str, int]:
    """The version that learned each class of a lineage first."""
    since: dict[str, int] = {}
    for event in lineage:
        names = event.present_names
        moved: dict[str, int] = {}
        for label, version in since.items():
            name = names.get(label, label)
            moved[name] = min(version, moved.get(name, version))
        since = moved | dict.fromkeys(event.about.get("new_classes", ()), event.version)
        since = {label: version for label, version in since.items() if label not in event.forgotten}
    return since


class LogLine(Document):
    """The schema of a line."""

    event: str
    version: Number
    before: Number | None
    time: str
    previous: Digest | None = None
    files: dict[str, dict[str, Digest]] = Field(default_factory=dict)
    format: int = 0
    model_id: Text = ""
    columns: list[Text] = Field(default_factory=list)
    classes: list[Text | int] = Field(default_factory=list)
    new_classes: list[Text] = Field(default_factory=list)
    labels: dict[Text, Count] = Field(default_factory=dict)
    renamed: dict[Text, Text] = Field(default_factory=dict)
    merged: dict[Text, Text] = Field(default_factory=dict)
    corrected: dict[Text, Text] = Field(default_factory=dict)
    forgotten: list[Text] = Field(default_factory=list)


class FitLine(LogLine):
    """The schema of a fit, which says what the model is."""

    model_id: Text
    columns: list[Text]


class EditLine(LogLine):
    """The schema of an event that says which classes there are afterwards."""

    classes: list[Text | int]


SCHEMAS: Mapping[str, type[LogLine]] = {
    FIT: FitLine,
    UPDATE: LogLine,
    **dict.fromkeys((ROLLBACK, RENAME, MERGE, FORGET, REBUILD), EditLine),
}


class OtherFormat(Exception):
    """A log of a format that this version does not read."""

    def __init__(self, format: object) -> None:
        super().__init__(format)
        self.format = format


@dataclass(frozen=True)
class Log:
    """The events of a log, and after each the digest of the log so far."""

    events: tuple[Event, ...]
    digests: tuple[str, ...]

    @classmethod
    def parse(cls, content: bytes) -> Log:
        """Read and check a log. :class:`Damage` says what is wrong with it."""
        *lines, rest = content.split(b"\n")
        if rest or not lines:
            raise Damage(f"{LOG} does not end with a whole line")
        events, digests, so_far = list[Event](), list[str](), hashlib.sha256()
        for number, line in enumerate(lines, start=1):
            event = _parse_line(line, number)
            _require_next(event, events, number)
            _require_sealed(event, events, so_far.hexdigest(), number)
            so_far.update(line + b"\n")
            events.append(event)
            digests.append(so_far.hexdigest())
        return cls(tuple(events), tuple(digests))

    @property
    def is_sealed(self) -> bool:
        """Whether the last event holds digests."""
        return bool(self.events) and self.events[-1].previous != ""

    def up_to(self, version: int, digest: str) -> Log | None:
        """The part that counts if ``current`` holds these; None if they do not fit together.

        The last line does not count if the command that wrote it was killed before ``current``.
        """
        for n in (len(self.events), len(self.events) - 1):
            part = Log(self.events[:n], self.digests[:n])
            if n > 0 and part.events[-1].version == version:
                stated = part.digests[-1] if part.is_sealed else ""
                if digest == stated:
                    return part
        return None


def format_log(events: Sequence[Event]) -> tuple[bytes, str]:
    """The content of the log, and its digest."""
    content = b"".join(_format_line(event) for event in events)
    return content, hashlib.sha256(content).hexdigest()


def digest_log(events: Sequence[Event]) -> str:
    """The digest of a log of these events, which is the ``previous`` of the next one."""
    return format_log(events)[1]


def _format_line(event: Event) -> bytes:
    sealed = {"files": event.files, "previous": event.previous} if event.previous else {}
    return json.dumps(event.to_json() | sealed, allow_nan=False).encode() + b"\n"


def _parse_line(line: bytes, number: int) -> Event:
    name = f"{LOG}, line {number},"
    plain = parse_document(line, name, Document)
    if number == 1:  # the first format did not name itself
        stated = plain.get("format", 1)
        if stated not in (FORMAT, UNSEALED):
            raise OtherFormat(stated)
    event = parse_document(line, name, LogLine)["event"]
    if event not in SCHEMAS:
        raise Damage(f"{name} has no valid event")
    parse_document(line, name, SCHEMAS[event])
    return Event.from_json(plain)


def _require_next(event: Event, past: Sequence[Event], number: int) -> None:
    """Require that an event can follow others. Their versions only go up, so no walk is endless."""
    made = {earlier.version for earlier in past if earlier.makes_version}
    starts = event.event == FIT or bool(past)
    follows = event.before == (past[-1].version if past else None)
    is_new = event.version > max(made, default=0)
    if not (starts and follows):
        raise Damage(f"{LOG}, line {number}, does not follow from the lines before")
    if event.makes_version != is_new or not (is_new or event.version in made):
        raise Damage(f"{LOG}, line {number}, names a wrong version")


def _require_sealed(event: Event, past: Sequence[Event], digest: str, number: int) -> None:
    """Require the digest of the lines before, unless the line is of a model of format 2."""
    first = past[0] if past else event
    may_lack = first.about["format"] == UNSEALED and not (past and past[-1].previous)
    if event.previous != digest and not (may_lack and not event.previous):
        raise Damage(f"{LOG}, line {number}, has another digest of the lines before it")
