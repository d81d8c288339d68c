"""The REST interface: thin routes over :class:`Console`. Groups are counted from 1."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Path, Query, Request, UploadFile
from fastapi.responses import Response

from cilf.console import bodies, import_export, overview, updates, uploads, window_view
from cilf.console.bodies import Changed, Happened, JobStarted
from cilf.console.classes import Classes
from cilf.console.gallery import TEXTS
from cilf.console.service import Console, NotThere
from cilf.console.state import KNOWN
from cilf.console.store import QUEUED, RUNNING, Event, Job, WindowRow

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": bodies.Problem, "description": "It cannot be done; the line says why."},
    401: {"model": bodies.Problem, "description": "The token is missing or wrong."},
    403: {"model": bodies.Problem, "description": "The request comes from another site."},
    404: {"model": bodies.Problem, "description": "There is no such thing."},
    409: {"model": bodies.ConflictProblem, "description": "Somebody else has changed it."},
    413: {"model": bodies.Problem, "description": "That is larger than what is taken."},
    503: {"model": bodies.Problem, "description": "The store cannot be reached, or is full."},
}
MEDIA = {"csv": "text/csv", "jsonl": "application/jsonl", "label-studio": "application/json"}
ENDS = {"csv": "csv", "jsonl": "jsonl", "label-studio": "json"}
LARGEST = bodies.LARGEST
ANY_FILE = {
    "required": True,
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}

Window = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a window.")]
JobNumber = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a job.")]
Row = Annotated[int, Path(ge=0, le=LARGEST, description="The number of an instance, from 0.")]
Group = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a group.")]


def routes(console: Console) -> APIRouter:
    """All routes under /api."""
    api = APIRouter(prefix="/api", responses=PROBLEMS)
    parts = (_windows, _groups, _instances, _happenings, _verbs, _classes, _labels, _model)
    for add in parts:
        add(api, console)
    return api


# ----------------------------------------------------------------- windows


def _windows(api: APIRouter, console: Console) -> None:
    @api.get("/windows", tags=["windows"])
    def list_windows() -> list[dict[str, Any]]:
        """All windows, in the order they came."""
        return [window_json(row) for row in console.store.windows()]

    @api.post("/windows", tags=["windows"], status_code=201)
    def add_window(body: bodies.NewWindow) -> dict[str, Any]:
        """Look for new kinds in a folder of images or a table on the server's machine."""
        return window_json(console.add_window(body.path, body.name, body.budget))

    @api.post("/windows/upload", tags=["windows"], status_code=201)
    def upload_window(
        files: Annotated[list[UploadFile], File(description="Images, a ZIP of images, or a table")],
        name: Annotated[bodies.Text, Form()] = "",
        budget: Annotated[bodies.Budget, Form()] = 50,
    ) -> dict[str, Any]:
        """Look for new kinds in files that are sent."""
        console.require_model()
        folder = console.store.folder / "uploads" / uuid.uuid4().hex
        kept = uploads.keep([(file.filename or "", file.file) for file in files], folder)
        one = len(files) == 1
        called = name or (
            uploads.safe_name(files[0].filename or "") if one else f"{len(files)} files"
        )
        return window_json(console.add_upload(kept, called, budget))

    @api.get("/windows/{window}", tags=["windows"])
    def get_window(window: Window) -> dict[str, Any]:
        """One window: its state, what was found, jobs about it."""
        jobs = [job_json(job) for job in console.store.jobs(window=window)]
        return window_json(console.window(window)) | {"jobs": jobs}

    @api.put("/windows/{window}/budget", tags=["windows"])
    def set_budget(window: Window, body: bodies.Budgeting) -> dict[str, Any]:
        """Change how many answers the window asks for."""
        console.set_budget(window, body.budget)
        return window_json(console.window(window))

    @api.post("/windows/{window}/again", tags=["windows"], status_code=201)
    def detect_again(window: Window) -> dict[str, Any]:
        """Look at the same data once more, as a new window, with the model as it is now."""
        return window_json(console.again(window))


# ----------------------------------------------------------------- looking


def _groups(api: APIRouter, console: Console) -> None:
    @api.get("/windows/{window}/groups", tags=["looking"])
    def list_groups(window: Window) -> dict[str, Any]:
        """The groups of a window, what is known in it, and the version of all this."""
        opened = console.opened(window)
        with opened.lock:
            groups = [_counted(group) for group in window_view.groups(console, window)]
            known = window_view.known(console, window)
            return {"version": opened.state.version, "groups": groups, "known": known}

    @api.get("/windows/{window}/groups/{group}", tags=["looking"])
    def get_group(window: Window, group: Group) -> dict[str, Any]:
        """A group, and the rows that show what it is: medoid, nearest, farthest, random."""
        with console.opened(window).lock:
            found = [g for g in window_view.groups(console, window) if g["group"] == group - 1]
            if not found:
                raise NotThere(f"group {group} is not there.")
            return _counted(found[0]) | {
                "show": asdict(window_view.sheet(console, window, group - 1))
            }

    @api.get("/windows/{window}/map", tags=["looking"])
    def get_map(window: Window) -> dict[str, Any]:
        """The place of each instance, from 0 to 1000, and its group (0: known)."""
        opened, classes = console.opened(window), console.classes()
        places = (opened.gallery.places * 1000).round().astype(int)
        with opened.lock:
            group_of = (opened.state.group_of + 1).tolist()
            version = opened.state.version
        labels = [classes.shown(str(label)) for label in opened.gallery.label.tolist()]
        known = sorted(set(labels))
        place = {label: i for i, label in enumerate(known)}
        return {
            "version": version,
            "x": places[:, 0].tolist(),
            "y": places[:, 1].tolist(),
            "group": group_of,
            "label": [place[label] for label in labels],
            "labels": known,
        }


def _instances(api: APIRouter, console: Console) -> None:
    @api.get("/windows/{window}/instances", tags=["looking"])
    def list_instances(
        window: Window,
        group: Annotated[int | None, Query(ge=0, le=LARGEST, description="0: known ones")] = None,
        label: Annotated[bodies.Text | None, Query(description="A known class")] = None,
        start: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
        most: Annotated[int, Query(ge=1, le=500)] = 60,
    ) -> dict[str, Any]:
        """A page of instances, typical ones first."""
        number = None if group is None else group - 1
        total, rows = window_view.members(console, window, number, label, start, most)
        return {"total": total, "instances": instances_json(console, window, rows)}

    @api.get("/windows/{window}/instances/{row}", tags=["looking"])
    def get_instance(window: Window, row: Row) -> dict[str, Any]:
        """One instance: its group, what it looks like, and its text if it is one."""
        if row >= len(console.opened(window).gallery.ids):
            raise NotThere(f"row {row} is not there.")
        return instances_json(console, window, [row])[0]

    @api.get(
        "/windows/{window}/thumbs/{row}.png",
        tags=["looking"],
        response_class=Response,
        responses={200: {"content": {"image/png": {}}}},
    )
    def get_thumb(window: Window, row: Row) -> Response:
        """The picture of an instance."""
        gallery = console.opened(window).gallery
        if row >= len(gallery.ids) or gallery.form == TEXTS:
            raise NotThere(f"row {row} has no picture.")
        forever = {"Cache-Control": "private, max-age=31536000, immutable"}
        return Response(gallery.thumb(row), media_type="image/png", headers=forever)


def _happenings(api: APIRouter, console: Console) -> None:
    @api.get("/windows/{window}/ask", tags=["looking"])
    def get_questions(
        window: Window, strategy: bodies.Strategy = "representative"
    ) -> dict[str, Any]:
        """The budget, and the instances that are worth asking first."""
        asked = window_view.ask(console, window, strategy)
        return asked | {"instances": instances_json(console, window, asked.pop("rows"))}

    @api.get("/windows/{window}/events", tags=["looking"])
    def list_events(
        window: Window, after: Annotated[int, Query(ge=0, le=LARGEST)] = 0
    ) -> list[Happened]:
        """What people did, after a version."""
        opened = console.opened(window)
        with opened.lock:
            return [
                happened(event, event.seq in opened.undone)
                for event in opened.events
                if event.seq > after
            ]

    @api.get("/stream", tags=["looking"])
    def get_stream() -> list[dict[str, Any]]:
        """Which classes came, vanished, returned and drifted, window by window."""
        return overview.stream(console)


# ----------------------------------------------------------------- verbs


def _verbs(api: APIRouter, console: Console) -> None:
    @api.post("/windows/{window}/name", tags=["verbs"])
    def name(window: Window, body: bodies.Naming) -> Changed:
        """Call groups by a name; one that nobody knows makes a new class."""
        return changed(console.name(window, body.numbers, body.name, **body.who))

    @api.post("/windows/{window}/into", tags=["verbs"])
    def into(window: Window, body: bodies.Naming) -> Changed:
        """Merge groups into a class that is known already."""
        return changed(console.into(window, body.numbers, body.name, **body.who))

    @api.post("/windows/{window}/merge", tags=["verbs"])
    def merge(window: Window, body: bodies.Groups) -> Changed:
        """Put groups into the first of them."""
        return changed(console.simple(window, "merge", body.numbers, **body.who))

    @api.post("/windows/{window}/reject", tags=["verbs"])
    def reject(window: Window, body: bodies.Groups) -> Changed:
        """Say that groups are not new."""
        return changed(console.simple(window, "reject", body.numbers, **body.who))

    @api.post("/windows/{window}/skip", tags=["verbs"])
    def skip(window: Window, body: bodies.Groups) -> Changed:
        """Leave groups for later."""
        return changed(console.simple(window, "skip", body.numbers, **body.who))

    @api.post("/windows/{window}/reopen", tags=["verbs"])
    def reopen(window: Window, body: bodies.Groups) -> Changed:
        """Look at groups again that were named, rejected or skipped."""
        return changed(console.simple(window, "reopen", body.numbers, **body.who))

    @api.post("/windows/{window}/split", tags=["verbs"])
    def split(window: Window, body: bodies.Splitting) -> Changed:
        """Make rows of a group a group of their own; without rows it is parted by itself."""
        group = body.group - 1
        return changed(console.split(window, group, body.rows, body.parts, **body.who))

    @api.post("/windows/{window}/move", tags=["verbs"])
    def move(window: Window, body: bodies.Moving) -> Changed:
        """Put single instances into another group, a new one, or among the known."""
        to = {"new": None, "known": KNOWN}
        target = body.to - 1 if isinstance(body.to, int) else to[body.to]
        return changed(console.move(window, body.rows, target, **body.who))

    @api.post("/windows/{window}/label", tags=["verbs"])
    def label(window: Window, body: bodies.Labelling) -> Changed:
        """Say which class single instances are."""
        labels = dict.fromkeys(body.rows, body.name)
        return changed(console.label(window, labels, **body.who))

    @api.post("/windows/{window}/undo", tags=["verbs"])
    def undo(window: Window, body: bodies.Undoing) -> Changed:
        """Take back one change, the last that stands if none is named."""
        return changed(console.undo(window, body.event, version=body.version, person=body.person))


def _classes(api: APIRouter, console: Console) -> None:
    @api.get("/classes", tags=["classes"])
    def list_classes() -> dict[str, Any]:
        """Every class, what it is called in the model, and how many each window has of it."""
        return {"version": console.classes().version, "classes": overview.class_list(console)}

    @api.post("/classes/rename", tags=["classes"])
    def rename(body: bodies.Renaming) -> Changed:
        """Call a class by another name."""
        return changed(console.rename(body.old, body.new, person=body.person, version=body.version))

    @api.post("/classes/undo", tags=["classes"])
    def undo_rename(body: bodies.Who) -> Changed:
        """Take back the last change of a name."""
        return changed(console.undo_rename(person=body.person))


# ----------------------------------------------------------------- labels


async def _content(request: Request) -> bytes:
    """What is sent, whatever it is said to be."""
    return await request.body()


def _labels(api: APIRouter, console: Console) -> None:
    @api.get(
        "/windows/{window}/labels",
        tags=["labels"],
        response_class=Response,
        responses={200: {"content": {media: {} for media in MEDIA.values()}}},
    )
    def export_labels(window: Window, request: Request, format: bodies.Format = "csv") -> Response:
        """Labels as CSV, as JSON lines, or as tasks of Label Studio."""
        pictures = str(request.url_for("list_windows")) + f"/{window}/thumbs"
        rows = window_view.labelled(console, window, pictures)
        if format == "label-studio":
            version = f"version {console.window(window).facts['version']}"
            content = import_export.to_label_studio(rows, version)
        else:
            content = (
                import_export.to_csv(rows) if format == "csv" else import_export.to_jsonl(rows)
            )
        named = f'attachment; filename="window-{window}.{ENDS[format]}"'
        return Response(content, media_type=MEDIA[format], headers={"Content-Disposition": named})

    @api.post("/windows/{window}/labels", tags=["labels"], openapi_extra={"requestBody": ANY_FILE})
    def import_labels(
        window: Window,
        content: Annotated[bytes, Depends(_content)],
        format: bodies.Format = "csv",
        person: Annotated[str, Query(max_length=100, pattern=r"^[^\x00-\x1f]*$")] = "",
    ) -> dict[str, Any]:
        """Take over labels by identity, in any of the formats that go out."""
        console.opened(window)
        labels = import_export.read_labels(content, format)
        event = console.take(window, labels, person=person) if labels else None
        count = 0 if event is None else event.about["n"]
        return {"labels": count, "version": console.opened(window).state.version}


# ----------------------------------------------------------------- the model and its jobs


def _model(api: APIRouter, console: Console) -> None:
    @api.get("/model", tags=["model"])
    def get_model() -> dict[str, Any]:
        """The model: its version, classes and history."""
        return {"path": str(console.model_path), **console.model()}

    @api.post("/model/fit", tags=["model"], status_code=202)
    def fit(body: bodies.Fitting) -> JobStarted:
        """Fit the first version on labelled data."""
        return JobStarted(job=updates.fit(console, body.data, body.learner, body.note))

    @api.post("/model/rollback", tags=["model"], status_code=202)
    def rollback(body: bodies.GoingBack) -> JobStarted:
        """Go back to an earlier version; none is removed."""
        return JobStarted(job=updates.rollback(console, body.version))

    @api.post("/windows/{window}/learn", tags=["model"], status_code=202)
    def learn(window: Window, body: bodies.Learning) -> JobStarted:
        """Teach the model the names of a window."""
        return JobStarted(job=updates.learn(console, window, force=body.force, person=body.person))

    @api.get("/jobs", tags=["model"])
    def list_jobs(active: bool = False) -> list[dict[str, Any]]:
        """All jobs, or those that are not done."""
        statuses = [QUEUED, RUNNING] if active else []
        return [job_json(job) for job in console.store.jobs(statuses=statuses)]

    @api.get("/jobs/{job}", tags=["model"])
    def get_job(job: JobNumber) -> dict[str, Any]:
        """How far a job is, and what came of it."""
        return job_json(console.job(job))

    @api.post("/jobs/{job}/keep", tags=["model"])
    def keep(job: JobNumber) -> JobStarted:
        """Keep the version that a job has learned."""
        return JobStarted(job=updates.decide(console, job, keep=True))

    @api.post("/jobs/{job}/rollback", tags=["model"])
    def take_back(job: JobNumber) -> JobStarted:
        """Go back to the version before a job."""
        return JobStarted(job=updates.decide(console, job, keep=False))


# ----------------------------------------------------------------- as JSON


def happened(event: Event, undone: bool = False) -> Happened:
    return Happened(
        event=event.seq, verb=event.verb, about=dict(event.about), person=event.person,
        time=event.time, undoes=event.undoes, undone=undone,
    )  # fmt: skip


def changed(event: Event) -> Changed:
    return Changed(version=event.seq, event=happened(event))


def window_json(row: WindowRow) -> dict[str, Any]:
    return asdict(row)


def job_json(job: Job) -> dict[str, Any]:
    return {name: value for name, value in asdict(job).items() if name != "attempts"}


def _counted(group: Mapping[str, Any]) -> dict[str, Any]:
    return {**group, "group": group["group"] + 1}


def instances_json(
    console: Console, window: int, rows: list[int], classes: Classes | None = None
) -> list[dict[str, Any]]:
    """Instances with their groups as people count them."""
    opened, classes = console.opened(window), classes or console.classes()
    found = [window_view.instance(opened, classes, row) for row in rows]
    return [one if one["group"] is None else _counted(one) for one in found]
