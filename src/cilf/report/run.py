"""One run as a report reads it: what run.json says, the records, the snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cilf.core import WindowRecord
from cilf.core.documents import Damage, check_document
from cilf.errors import BadInput
from cilf.evaluate.records import PlanDocument, RunFolder, Snapshot
from cilf.report.class_style import ClassStyle, assign_styles


@dataclass(frozen=True)
class PlannedWindow:
    """The classes that were to come in a window, by name."""

    novel: tuple[str, ...]
    counts: dict[str, int]


@dataclass(frozen=True)
class Run:
    """A run that was read back; classes go by their names as text."""

    folder: RunFolder
    about: dict[str, Any]
    records: list[WindowRecord]
    initial: tuple[str, ...]
    planned: tuple[PlannedWindow, ...]

    @classmethod
    def read(cls, folder: RunFolder) -> Run:
        about = RunFolder.open(folder.path).read_run()
        try:
            plan = check_document(about.get("plan"), "the plan", PlanDocument)
        except Damage as error:
            raise BadInput(
                f"{folder.path / 'run.json'} has no usable plan of its stream ({error}): "
                "run it again with this version of cilf."
            ) from error
        initial = tuple(str(label) for label in plan["initial"])
        planned = tuple(_read_window(window) for window in plan["windows"])
        records = folder.read_records()
        if about.get("finished") and len(records) < len(planned):
            raise BadInput(
                f"{folder.path} has {len(records)} records of a finished run of {len(planned)} "
                "windows: restore its records.jsonl from a copy, or run it again."
            )
        return cls(folder, about, records, initial, planned)

    @property
    def name(self) -> str:
        """The learner, data, scenario and seed of the run."""
        parts = (self.about.get(key) for key in ("learner", "data", "scenario"))
        named = " · ".join(str(part) for part in parts if part)
        return f"{named} · seed {self.about.get('seed', '?')}"

    @property
    def finished(self) -> bool:
        return len(self.records) >= len(self.planned)

    @property
    def failure(self) -> str | None:
        """Why a run of a benchmark failed, in a line; None if it did not."""
        path = self.folder.error
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        lines = text.split("\n")
        return next((line for line in reversed(lines) if line.strip()), None)

    @property
    def dataset(self) -> dict[str, Any]:
        """The description of the data in run.json; empty if there is none."""
        return dict(self.about.get("dataset") or {})

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Every class, in order of arrival."""
        arrived = [label for window in self.planned for label in window.novel]
        return tuple(dict.fromkeys([*self.initial, *arrived]))

    @cached_property
    def styles(self) -> dict[str, ClassStyle]:
        return assign_styles(self.classes)

    def group(self, arrival: int) -> tuple[str, ...]:
        """The classes that arrived in this window; 0 is the initial training data."""
        if arrival == 0:
            return self.initial
        return self.planned[arrival - 1].novel if arrival <= len(self.planned) else ()

    def snapshot(self, window: int) -> Snapshot | None:
        """The snapshot of a window; None if the run kept none."""
        return self.folder.read_snapshot(window)


def _read_window(window: dict[str, Any]) -> PlannedWindow:
    counts = {str(label): int(count) for label, count in window["counts"]}
    return PlannedWindow(tuple(str(label) for label in window["novel"]), counts)
