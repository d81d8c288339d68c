"""The REST interface: thin routes over :class:`Console`. Clusters are counted from 1."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Path, Query, Request, UploadFile
from fastapi.responses import Response

from cilf.console import (
    audit,
    bodies,
    cancellation,
    class_edits,
    folders,
    import_export,
    label_import,
    originals,
    overview,
    sample,
    similarity,
    updates,
    uploads,
    window_edits,
    window_view,
)  # fmt: skip
from cilf.console.bodies import ChangeResponse, EventResponse, JobResponse
from cilf.console.form_limits import FormRoute
from cilf.console.gallery import Gallery
from cilf.console.group_commit import GroupCommit
from cilf.console.service import Action, Console, NotFound
from cilf.console.store import QUEUED, RUNNING, Event, Job, WindowRow
from cilf.console.verbs import VERBS

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": bodies.Problem, "description": "The request cannot be met; the line says why."},
    401: {"model": bodies.Problem, "description": "The token is missing or wrong."},
    403: {"model": bodies.Problem, "description": "The request comes from another site."},
    404: {"model": bodies.Problem, "description": "The object does not exist."},
    409: {"model": bodies.ConflictProblem, "description": "Somebody else has changed the object."},
    413: {"model": bodies.Problem, "description": "The content is too large."},
    503: {"model": bodies.Problem, "description": "The store failed; the line says why."},
}
MEDIA = {name: format.media_type for name, format in import_export.OFFERED.items()}
SUFFIXES = {name: format.suffix for name, format in import_export.OFFERED.items()}
LARGEST = bodies.LARGEST
ANY_FILE = {
    "required": True,
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}

Window = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a window.")]
JobNumber = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a job.")]
Row = Annotated[int, Path(ge=0, le=LARGEST, description="The number of an instance, from 0.")]
Raw = Annotated[bool, Query(description="Keep cells of a CSV file that spreadsheets compute.")]
Cluster = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a cluster.")]


def make_routes(console: Console) -> APIRouter:
    """All routes under /api."""
    api = APIRouter(prefix="/api", responses=PROBLEMS, route_class=FormRoute)
    sections = (  # the first ones are found first, so verbs come before what is asked for rarely
        _add_verbs, _add_windows, _add_folders, _add_clusters, _add_instances, _add_pictures,
        _add_history, _add_classes, _add_labels, _add_model, _add_jobs,
    )  # fmt: skip
    for add in sections:
        add(api, console)
    return api


# ----------------------------------------------------------------- windows


def _add_windows(api: APIRouter, console: Console) -> None:
    @api.get("/windows", tags=["windows"])
    def list_windows() -> list[dict[str, Any]]:
        """All windows, in the order they came."""
        archived = console.store.archived_windows()
        return [
            window_json(row) | {"archived": row.id in archived} for row in console.store.windows()
        ]

    @api.post("/windows", tags=["windows"], status_code=201)
    def add_window(body: bodies.WindowBody) -> dict[str, Any]:
        """Detect novel classes in a folder of images or a table on the server's machine."""
        return window_json(console.add_window(body.path, body.name, body.budget))

    @api.post("/windows/upload", tags=["windows"], status_code=201)
    def upload_window(
        files: Annotated[list[UploadFile], File(description="Images, a ZIP of images, or a table")],
        name: Annotated[bodies.Text, Form()] = "",
        budget: Annotated[bodies.Budget, Form()] = 50,
    ) -> dict[str, Any]:
        """Detect novel classes in uploaded files."""
        console.require_model()
        folder = console.store.folder / uploads.UPLOADS / uuid.uuid4().hex
        path = uploads.save([(file.filename or "", file.file) for file in files], folder)
        if not name:
            is_one = len(files) == 1
            name = uploads.safe_name(files[0].filename or "") if is_one else f"{len(files)} files"
        return window_json(console.add_upload(path, name, budget))

    @api.get("/windows/{window}", tags=["windows"])
    def get_window(window: Window) -> dict[str, Any]:
        """A window with its facts and its jobs."""
        jobs = [job_json(job) for job in console.store.jobs(window=window)]
        return window_json(console.window(window)) | {"jobs": jobs}

    @api.put("/windows/{window}/budget", tags=["windows"])
    def set_budget(window: Window, body: bodies.BudgetBody) -> dict[str, Any]:
        """Set the label budget of a window."""
        console.set_budget(window, body.budget)
        return window_json(console.window(window))

    @api.post("/windows/{window}/again", tags=["windows"], status_code=202)
    def detect_again(window: Window, body: bodies.EditBody | None = None) -> dict[str, Any]:
        """Detect again in the same data with the current model. Answers are carried over."""
        person = "" if body is None else body.person
        return window_json(console.detect_again(window, person))

    @api.put("/windows/{window}/name", tags=["windows"])
    def rename_window(window: Window, body: bodies.WindowNameBody) -> dict[str, Any]:
        """Rename a window."""
        return window_json(window_edits.rename_window(console, window, body.name, body.seen))

    @api.put("/windows/{window}/archived", tags=["windows"])
    def archive_window(window: Window, body: bodies.ArchiveBody) -> dict[str, Any]:
        """Hide a window from the list, or show it again."""
        row = window_edits.archive_window(console, window, body.archived)
        return window_json(row) | {"archived": body.archived}

    @api.post("/windows/{window}/delete", tags=["windows"])
    def delete_window(window: Window, body: bodies.DeleteBody) -> dict[str, Any]:
        """Delete a window, its history and its uploaded files for good."""
        window_edits.delete_window(console, window, body.seen)
        return {"deleted": window}


def _add_folders(api: APIRouter, console: Console) -> None:
    @api.get("/folders", tags=["windows"])
    def list_folder(path: Annotated[bodies.Text, Query()] = "") -> dict[str, Any]:
        """The folders and tables in a folder of the server's machine that may be read."""
        return folders.list_folder(console, path)


# ----------------------------------------------------------------- view


def _add_clusters(api: APIRouter, console: Console) -> None:
    @api.get("/windows/{window}/clusters", tags=["view"])
    def list_clusters(window: Window) -> dict[str, Any]:
        """The clusters of a window, the counts of its known classes, and its version."""
        opened = console.open(window)
        with opened.lock:
            return {
                "version": opened.state.version,
                "clusters": window_view.list_clusters(console, window),
                "known": window_view.count_known(console, window),
            }

    @api.get("/windows/{window}/clusters/{cluster}", tags=["view"])
    def get_cluster(window: Window, cluster: Cluster) -> dict[str, Any]:
        """A cluster and the rows of its exemplars: medoid, nearest, farthest, random."""
        with console.open(window).lock:
            exemplars = asdict(window_view.find_exemplars(console, window, cluster))
            clusters = window_view.list_clusters(console, window)
        (found,) = (one for one in clusters if one["cluster"] == cluster)
        return found | {"exemplars": exemplars}

    @api.get("/windows/{window}/map", tags=["view"])
    def get_map(window: Window) -> dict[str, Any]:
        """The place (0 to 1000), cluster (0: known) and novelty (percentile) of each instance."""
        opened, classes = console.open(window), console.classes()
        places = (opened.gallery.places * 1000).round().astype(int)
        novelty = similarity.rank_share(opened.gallery.novelty)
        with opened.lock:
            cluster_of = (opened.state.cluster_of + 1).tolist()
            version = opened.state.version
        labels = [classes.display_label(str(label)) for label in opened.gallery.label.tolist()]
        names = sorted(set(labels))
        index = {name: i for i, name in enumerate(names)}
        return {
            "version": version,
            "x": places[:, 0].tolist(),
            "y": places[:, 1].tolist(),
            "cluster": cluster_of,
            "novelty": (novelty * 100).round().astype(int).tolist(),
            "label": [index[label] for label in labels],
            "labels": names,
        }


Sort = Annotated[bodies.Sort, Query(description="The order")]
Only = Annotated[bodies.Only, Query(description="Leave out all others")]
AnyCluster = Annotated[int | None, Query(ge=0, le=LARGEST, description="0: known instances")]
KnownClass = Annotated[bodies.Text | None, Query(description="A known class")]
PICTURE: dict[int | str, dict[str, Any]] = {200: {"content": {"image/png": {}}}}


def _add_instances(api: APIRouter, console: Console) -> None:
    @api.get("/windows/{window}/instances", tags=["view"])
    def list_instances(
        window: Window,
        cluster: AnyCluster = None,
        label: KnownClass = None,
        sort: Sort = "typical",
        only: Only = "everything",
        start: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
        most: Annotated[int, Query(ge=1, le=500)] = 60,
    ) -> dict[str, Any]:
        """A page of instances, typical ones first unless another order is named."""
        wanted = window_view.Members(cluster=cluster, label=label, sort=sort, only=only)
        rows = window_view.list_members(console, window, wanted)
        page = window_view.describe_instances(console, window, rows[start : start + most])
        return {"total": len(rows), "instances": page}

    @api.get("/windows/{window}/rows", tags=["view"])
    def list_rows(
        window: Window,
        cluster: AnyCluster = None,
        label: KnownClass = None,
        sort: Sort = "typical",
        only: Only = "everything",
    ) -> list[int]:
        """The rows of all instances of a list, in its order."""
        wanted = window_view.Members(cluster=cluster, label=label, sort=sort, only=only)
        return window_view.list_members(console, window, wanted)

    @api.get("/windows/{window}/instances/{row}", tags=["view"])
    def get_instance(window: Window, row: Row) -> dict[str, Any]:
        """An instance: its cluster, its nearest known class, its text and its history."""
        return window_view.inspect_instance(console, window, row)

    @api.get("/windows/{window}/instances/{row}/similar", tags=["view"])
    def list_similar(
        window: Window, row: Row, most: Annotated[int, Query(ge=1, le=200)] = 24
    ) -> dict[str, Any]:
        """The most similar instances in the window, and among those that the model keeps."""
        return window_view.list_similar(console, window, row, most)

    @api.post("/windows/{window}/likely", tags=["view"])
    def list_likely(window: Window, body: bodies.LikelyBody) -> list[dict[str, Any]]:
        """The most likely classes of some instances, or of clusters."""
        opened = console.open(window)
        with opened.lock:
            members = [opened.state.members(number) for number in body.numbers]
        rows = [row for row in body.rows if row < len(opened.gallery.ids)]
        rows += [int(row) for group in members for row in group]
        ranked = similarity.rank_classes(console, window, rows)
        return [{"name": name, "share": round(share, 4)} for name, share in ranked]


def _add_pictures(api: APIRouter, console: Console) -> None:
    @api.get(
        "/windows/{window}/thumbs/{row}.png",
        tags=["view"],
        response_class=Response,
        responses=PICTURE,
    )
    def get_thumb(window: Window, row: Row, request: Request) -> Response:
        """The thumbnail of an instance."""
        return _thumb(console.open(window).gallery, row, request)

    @api.get(
        "/windows/{window}/pictures/{row}",
        tags=["view"],
        response_class=Response,
        responses={200: {"content": {media: {} for media in originals.MEDIA.values()}}},
    )
    def get_picture(
        window: Window,
        row: Row,
        request: Request,
        side: Annotated[
            int | None, Query(ge=16, le=2048, description="The most pixels of a side")
        ] = None,
    ) -> Response:
        """The original picture of an instance, or a smaller one made of it."""
        tag = f'"{console.open(window).gallery.folder.name}-{row}-{side}"'
        headers = {"Cache-Control": "private, no-cache", "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        found = originals.read_picture(console, window, row, side)
        headers["X-Picture"] = found.what
        return Response(found.content, media_type=found.media, headers=headers)

    @api.get(
        "/windows/{window}/known/{row}.png",
        tags=["view"],
        response_class=Response,
        responses=PICTURE,
    )
    def get_known_thumb(window: Window, row: Row, request: Request) -> Response:
        """The thumbnail of an instance that the model of the window keeps."""
        known = console.known_gallery(window)
        if known is None:
            raise NotFound(f"the model of window {window} keeps no instances.")
        return _thumb(known, row, request)


def _thumb(gallery: Gallery, row: int, request: Request) -> Response:
    if row >= len(gallery.ids) or not gallery.has_pictures:
        raise NotFound(f"row {row} has no picture.")
    tag = f'"{gallery.folder.name}-{row}"'  # rows may differ if the window is detected again
    headers = {"Cache-Control": "private, no-cache", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(gallery.thumb(row), media_type="image/png", headers=headers)


def _add_history(api: APIRouter, console: Console) -> None:
    @api.get("/windows/{window}/queries", tags=["view"])
    def list_queries(
        window: Window, strategy: bodies.Strategy = "representative"
    ) -> dict[str, Any]:
        """The budget, and the instances to query first."""
        queries = window_view.suggest_queries(console, window, strategy)
        instances = window_view.describe_instances(console, window, queries.pop("rows"))
        return queries | {"instances": instances}

    @api.get("/windows/{window}/opinions", tags=["view"])
    def list_opinions(window: Window) -> dict[str, Any]:
        """The second opinions: what waits for one, and the agreement with the labels."""
        return window_view.summarize_opinions(console, window)

    @api.get("/windows/{window}/events", tags=["view"])
    def list_events(
        window: Window, after: Annotated[int, Query(ge=0, le=LARGEST)] = 0
    ) -> list[EventResponse]:
        """The changes after a version."""
        opened = console.open(window)
        with opened.lock:
            events, undone = opened.events[after:], opened.undone
        return [event_response(event, event.seq in undone) for event in events]

    @api.post("/windows/{window}/presence", tags=["view"])
    def look(window: Window, body: bodies.PresenceBody) -> list[dict[str, Any]]:
        """Say that a page shows this window, and get the other people who look at it."""
        console.window(window)
        others = console.presence.look(body.page, body.person, window, body.cluster)
        return [{"person": one.person or "somebody", "cluster": one.cluster} for one in others]

    @api.get(
        "/audit",
        tags=["view"],
        response_class=Response,
        responses={200: {"content": {MEDIA[name]: {} for name in ("csv", "jsonl")}}},
    )
    def export_audit(format: bodies.AuditFormat = "csv", raw: Raw = False) -> Response:
        """Export the audit log: who did what, when, and from which address."""
        content = audit.write_audit(console.store.audit(), format, raw)
        headers = {"Content-Disposition": f'attachment; filename="audit{SUFFIXES[format]}"'}
        return Response(content, media_type=MEDIA[format], headers=headers)

    @api.get("/stream", tags=["view"])
    def get_stream() -> list[dict[str, Any]]:
        """The classes that came, vanished, returned and drifted, window by window."""
        return overview.summarize_stream(console)


# ----------------------------------------------------------------- verbs


def _add_verbs(api: APIRouter, console: Console) -> None:
    group = GroupCommit(console)
    for name, verb in VERBS.items():
        route = _make_verb_route(group, name)
        route.__annotations__["body"] = verb.body
        api.post(
            f"/windows/{{window}}/{name}", tags=["verbs"], name=name, description=verb.description,
            response_model=ChangeResponse,
        )(route)  # fmt: skip

    @api.post("/windows/{window}/undo", tags=["verbs"])
    def undo(window: Window, body: bodies.UndoBody) -> ChangeResponse:
        """Undo one change, by default the last that stands."""
        event = console.undo(window, body.event, version=body.version, person=body.person)
        return change_response(event)


def _make_verb_route(group: GroupCommit, name: str) -> Callable[..., Awaitable[Response]]:
    async def route(window: Window, body: bodies.VerbBody) -> Response:
        event = await group.act(Action(window, name, body))
        content = change_response(event).model_dump_json()
        return Response(content, media_type="application/json")

    return route


def _add_classes(api: APIRouter, console: Console) -> None:
    @api.get("/classes", tags=["classes"])
    def list_classes() -> dict[str, Any]:
        """Every class, its label in the model, and its counts in the windows."""
        return {"version": console.classes().version, "classes": overview.list_classes(console)}

    @api.post("/classes/rename", tags=["classes"])
    def rename(body: bodies.RenameBody) -> ChangeResponse:
        """Rename a class."""
        event = console.rename(body.old, body.new, person=body.person, version=body.version)
        return change_response(event)

    @api.post("/classes/undo", tags=["classes"])
    def undo_rename(body: bodies.EditBody) -> ChangeResponse:
        """Undo the last rename."""
        return change_response(console.undo_rename(body.person))

    @api.post("/classes/merge", tags=["classes"], status_code=202)
    def merge(body: bodies.MergeClassBody) -> JobResponse:
        """Merge a class of the model into another one. A rollback undoes it."""
        job = class_edits.start_merge(
            console, body.name, body.into, seen=body.model_version, person=body.person
        )
        return JobResponse(job=job)

    @api.post("/classes/forget", tags=["classes"], status_code=202)
    def forget(body: bodies.ClassBody) -> JobResponse:
        """Remove a class from the model. A rollback undoes it."""
        job = class_edits.start_forget(
            console, body.name, seen=body.model_version, person=body.person
        )
        return JobResponse(job=job)


# ----------------------------------------------------------------- labels


async def _read_content(request: Request) -> bytes:
    """The body of a request, whatever its content type."""
    return await request.body()


def _add_labels(api: APIRouter, console: Console) -> None:
    @api.get(
        "/windows/{window}/labels",
        tags=["labels"],
        response_class=Response,
        responses={200: {"content": {media: {} for media in MEDIA.values()}}},
    )
    def export_labels(
        window: Window, request: Request, format: bodies.Format = "csv", raw: Raw = False
    ) -> Response:
        """Export labels in one of the formats whose pictures may be addresses."""
        pictures = str(request.url_for("list_windows")) + f"/{window}/thumbs"
        rows = window_view.list_labels(console, window, pictures)
        version = f"version {console.window(window).facts['version']}"
        content = import_export.write_labels(rows, format, version, raw)
        attachment = f'attachment; filename="window-{window}{SUFFIXES[format]}"'
        headers = {"Content-Disposition": attachment}
        return Response(content, media_type=MEDIA[format], headers=headers)

    @api.post(
        "/windows/{window}/labels",
        tags=["labels"],
        status_code=202,
        openapi_extra={"requestBody": ANY_FILE},
    )
    def import_labels(
        window: Window,
        content: Annotated[bytes, Depends(_read_content)],
        format: bodies.Format = "csv",
        person: Annotated[str, Query(max_length=100, pattern=r"^[^\x00-\x1f]*$")] = "",
    ) -> JobResponse:
        """Import labels by identity, in any of the formats of the export.

        The result of the job has the number of labels.
        """
        job = label_import.start_import(console, window, content, format, person)
        return JobResponse(job=job)


# ----------------------------------------------------------------- model and jobs


def _add_model(api: APIRouter, console: Console) -> None:
    @api.get("/model", tags=["model"])
    def get_model() -> dict[str, Any]:
        """The model: its version, classes and history."""
        return {"path": str(console.model_path), **console.model()}

    @api.get("/model/choices", tags=["model"])
    def list_choices() -> dict[str, list[str]]:
        """The learners and backbones that a model can be fitted with."""
        return updates.list_choices(console)

    @api.post("/model/fit", tags=["model"], status_code=202)
    def fit(body: bodies.FitBody) -> JobResponse:
        """Fit the first version on labelled data."""
        return JobResponse(job=updates.start_fit(console, body.data, body))

    @api.post("/model/fit/upload", tags=["model"], status_code=202)
    def upload_and_fit(
        files: Annotated[
            list[UploadFile], File(description="A ZIP of class folders with images, or a table")
        ],
        options: Annotated[bodies.FitForm, Form()],
    ) -> JobResponse:
        """Fit the first version on uploaded labelled data."""
        folder = console.store.folder / uploads.UPLOADS / uuid.uuid4().hex
        sent = [(file.filename or "", file.file) for file in files]
        path = uploads.save(sent, folder, keeps_folders=True)
        return JobResponse(job=updates.start_fit(console, str(path), options, is_upload=True))

    @api.post("/sample", tags=["model"], status_code=202)
    def start_sample() -> dict[str, Any]:
        """Start the sample project: fit a model on embedded digits, and detect in new ones."""
        return window_json(sample.start_sample(console))

    @api.post("/model/rollback", tags=["model"], status_code=202)
    def rollback(body: bodies.RollbackBody) -> JobResponse:
        """Roll back to an earlier version. No version is removed."""
        return JobResponse(job=updates.start_rollback(console, body.version))

    @api.post("/windows/{window}/update", tags=["model"], status_code=202)
    def update(window: Window, body: bodies.UpdateBody) -> JobResponse:
        """Update the model with the labels of a window."""
        job = updates.start_update(console, window, force=body.force, person=body.person)
        return JobResponse(job=job)


def _add_jobs(api: APIRouter, console: Console) -> None:
    @api.get("/jobs", tags=["model"])
    def list_jobs(active: bool = False) -> list[dict[str, Any]]:
        """All jobs, or those that are queued or running."""
        statuses = [QUEUED, RUNNING] if active else []
        return [job_json(job) for job in console.store.jobs(statuses=statuses)]

    @api.get("/jobs/{job}", tags=["model"])
    def get_job(job: JobNumber) -> dict[str, Any]:
        """A job: its progress and its result."""
        return job_json(console.job(job))

    @api.post("/jobs/{job}/cancel", tags=["model"])
    def cancel_job(job: JobNumber) -> JobResponse:
        """Cancel a job. One that runs ends when it reports its progress the next time."""
        return JobResponse(job=cancellation.cancel_job(console, job))

    @api.post("/jobs/{job}/keep", tags=["model"])
    def keep_update(job: JobNumber) -> JobResponse:
        """Keep the version of an update."""
        return JobResponse(job=updates.decide(console, job, keep=True))

    @api.post("/jobs/{job}/rollback", tags=["model"])
    def roll_back_update(job: JobNumber) -> JobResponse:
        """Roll back to the version before an update."""
        return JobResponse(job=updates.decide(console, job, keep=False))


# ----------------------------------------------------------------- as JSON


def event_response(event: Event, undone: bool = False) -> EventResponse:
    return EventResponse(
        event=event.seq, verb=event.verb, about=dict(event.about), person=event.person,
        time=event.time, undoes=event.undoes, undone=undone,
    )  # fmt: skip


def change_response(event: Event) -> ChangeResponse:
    return ChangeResponse(version=event.seq, event=event_response(event))


def window_json(row: WindowRow) -> dict[str, Any]:
    return asdict(row)


def job_json(job: Job) -> dict[str, Any]:
    return {name: value for name, value in asdict(job).items() if name != "attempts"}
