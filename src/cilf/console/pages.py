"""The pages, rendered by the server. Sections that change have routes of their own, which the
script loads."""

from __future__ import annotations

from pathlib import Path as File
from typing import Annotated, Any, NamedTuple

from fastapi import FastAPI, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.exceptions import HTTPException

import cilf
from cilf.console import class_edits, guide, overview, updates, window_view
from cilf.console.bodies import LARGEST, Only, Sort, Strategy, Text
from cilf.console.classes import Classes
from cilf.console.guard import LOGIN, Access, address_of
from cilf.console.import_export import OFFERED
from cilf.console.member_order import FILTERS, SORTS
from cilf.console.service import Console
from cilf.console.store import DONE, FAILED, PENDING, QUEUED, RUNNING, UNDONE, Job
from cilf.console.uploads import ACCEPTED, TABLES
from cilf.console.verbs import VERBS, describe_event
from cilf.errors import CilfError
from cilf.query import STRATEGIES
from cilf.workflow.comparison import bound_accuracy
from cilf.workflow.model_log import describe_edits

HERE = File(__file__).parent
STATIC = HERE / "static"
MEDIA = {".css": "text/css", ".js": "text/javascript"}
FILES = {path.name: path for path in STATIC.iterdir() if path.suffix in MEDIA} | {
    "report.css": File(cilf.__file__).parent / "report" / "templates" / "style.css"
}
PAGE_SIZE = 60  # instances
MAX_QUERIES = 12  # shown at once
MAX_HISTORY = 30
MAX_SIMILAR = 24  # shown at once
N_COLOURS = 8
STRATEGY = "representative"


class Action(NamedTuple):
    """Something that the page does by a key, besides the verbs."""

    key: str
    title: str
    description: str


ACTIONS = {
    "query": Action("q", "Answer a query", "Answer the first query."),
    "enlarge": Action("z", "Enlarge", "Show an instance in full size."),
    "similar": Action("f", "Find similar", "Find similar instances."),
    "all": Action("a", "Choose all", "Choose all instances of the open list."),
    "undo": Action("u", "Undo", "Undo the last change."),
    "update": Action("l", "Update model", "Update the model with all names."),
    "help": Action("?", "Keys", "Show all keys."),
}
MOVES = {
    "1 … 0": "Assign to one of the ten most likely classes.",
    "↓ ↑": "Go to the next or the previous cluster.",
    "→ ←": "Go to the next or the previous instance. With Shift, choose them.",
    "Space": "Choose the cluster, or release it.",
    "Enter": "Show all members of the cluster.",
    "Esc": "Release everything that is chosen.",
}

Window = Annotated[int, Path(ge=1, le=LARGEST)]


def add_pages(app: FastAPI, console: Console, access: Access) -> None:
    """Add the pages to the application."""
    render = _Renderer()
    _add_overview(app, console, render)
    _add_files(app)
    _add_login(app, console, access, render)
    _add_window(app, console, render)
    _add_sections(app, console, render)
    _add_problems(app, render)


class _Renderer:
    """Templates with the values that all of them use."""

    def __init__(self) -> None:
        self.templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=select_autoescape(),
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.globals["version"] = cilf.__version__
        self.templates.globals["label_formats"] = OFFERED
        self.templates.filters["colour"] = lambda number: (number - 1) % N_COLOURS
        self.templates.filters["percent"] = _format_percent
        self.templates.filters["bounds"] = _format_bounds
        self.templates.filters["counted"] = _format_count

    def __call__(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        page = self.templates.get_template(template)
        return HTMLResponse(page.render(**values), status_code=status)


def _format_count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _format_percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _format_bounds(accuracy: float | None, n: int) -> str:
    """The bounds of an accuracy that was measured on so many instances; "" if on none."""
    bounds = None if accuracy is None else bound_accuracy(accuracy, n)
    return f"{100 * bounds[0]:.0f}-{100 * bounds[1]:.0f} %" if bounds else ""


# ----------------------------------------------------------------- all windows


def _add_overview(app: FastAPI, console: Console, render: _Renderer) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def windows() -> HTMLResponse:
        return render("windows.html", page="windows", **_windows_values(console))

    @app.get("/section/windows", response_class=HTMLResponse, include_in_schema=False)
    def windows_section() -> HTMLResponse:
        return render("_windows.html", **_windows_values(console))

    @app.get("/section/next", response_class=HTMLResponse, include_in_schema=False)
    def next_section() -> HTMLResponse:
        return render("_next.html", next_step=guide.find_first_step(console))

    @app.get("/classes", response_class=HTMLResponse, include_in_schema=False)
    def classes() -> HTMLResponse:
        return render(
            "classes.html",
            page="classes",
            classes=overview.list_classes(console),
            version_of_names=console.classes().version,
            model=console.model(),
            is_editable=class_edits.is_editable(console.model()),
            sentences=[describe_edits(event) for event in console.model()["events"]],
            last_edit=class_edits.find_last_edit(console.model()),
            names={row.id: row.name for row in console.store.windows()},
            problem=class_edits.find_problem(console),
        )

    @app.get("/stream", response_class=HTMLResponse, include_in_schema=False)
    def stream() -> HTMLResponse:
        windows = overview.summarize_stream(console)
        names = list(dict.fromkeys(name for window in windows for name in window["counts"]))
        return render("stream.html", page="stream", windows=windows, classes=names)


def _windows_values(console: Console) -> dict[str, Any]:
    rows, jobs = console.store.windows(), console.store.jobs()
    fit = next((job for job in reversed(jobs) if job.kind == updates.FIT), None)
    confusion = ((fit and fit.result) or {}).get("confusion", {})
    archived = console.store.archived_windows()
    return {
        "windows": [row for row in reversed(rows) if row.id not in archived],
        "archived": [row for row in reversed(rows) if row.id in archived],
        "jobs": {job.window: job for job in jobs if job.status in (QUEUED, RUNNING)},
        "named": {row.id: console.count_named(row.id) for row in rows if row.status == DONE},
        "model": console.model(),
        "model_path": console.model_path,
        "fit": fit,
        "predicted": list(dict.fromkeys([*confusion, *(p for r in confusion.values() for p in r)])),
        "choices": updates.list_choices(console),
        "updates": {update.window: update for update in console.store.updates()},
        "accepted": ",".join(ACCEPTED),
        "tables": ",".join(TABLES),
        "next_step": guide.find_first_step(console),
        "failed": FAILED,
    }


# ----------------------------------------------------------------- files, log-in, problems


def _add_files(app: FastAPI) -> None:
    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        if name not in FILES:
            raise HTTPException(404)
        path = FILES[name]
        headers = {"Cache-Control": "no-cache"}
        return Response(path.read_bytes(), media_type=MEDIA[path.suffix], headers=headers)


def _add_login(app: FastAPI, console: Console, access: Access, render: _Renderer) -> None:
    @app.get(LOGIN, response_class=HTMLResponse, include_in_schema=False)
    def login_page() -> HTMLResponse:
        return render("login.html", page="login", problem="")

    @app.post(LOGIN, response_class=HTMLResponse, include_in_schema=False)
    def login(  # nosec B107  # a form without a token has the empty one, which is refused
        request: Request, token: Annotated[str, Form(max_length=1000)] = ""
    ) -> Response:
        problem = access.check_token(token, address_of(request))
        console.store.log("wrong token" if problem else "log in")
        if problem:
            return render("login.html", 401, page="login", problem=problem.capitalize())
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(
            access.cookie, access.proof, httponly=True, samesite="strict",
            secure=request.url.scheme == "https",
        )  # fmt: skip
        return response


def _add_problems(app: FastAPI, render: _Renderer) -> None:
    @app.exception_handler(HTTPException)
    async def handle(request: Request, error: HTTPException) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse(
                {"detail": error.detail}, status_code=error.status_code, headers=error.headers
            )
        return render("problem.html", error.status_code, page="", problem=str(error.detail))


def render_problem(status: int, error: CilfError) -> HTMLResponse:
    """The page of an error, for a person who follows a link."""
    return _Renderer()("problem.html", status, page="", problem=str(error))


# ----------------------------------------------------------------- a window


def _add_window(app: FastAPI, console: Console, render: _Renderer) -> None:
    @app.get("/windows/{window}", response_class=HTMLResponse, include_in_schema=False)
    def window_page(window: Window) -> HTMLResponse:
        row = console.window(window)
        if row.status != DONE:
            jobs = console.store.jobs(window=window, statuses=[QUEUED, RUNNING])
            return render("waiting.html", page="windows", window=row, jobs=jobs)
        return render("window.html", page="windows", **_window_values(console, window))


def _add_sections(app: FastAPI, console: Console, render: _Renderer) -> None:
    def add(name: str, make_values: Any) -> None:
        def section(window: Window) -> HTMLResponse:
            return render(f"_{name}.html", **make_values(console, window))

        app.get(f"/windows/{{window}}/section/{name}", include_in_schema=False)(section)

    add("clusters", _clusters_values)
    add("known", lambda console, window: {"known": window_view.count_known(console, window)})
    add("history", _history_values)
    add("update", _update_values)
    add("next", _next_values)
    add("review", _review_values)

    @app.get("/windows/{window}/section/queries", include_in_schema=False)
    def queries(window: Window, strategy: Strategy = STRATEGY) -> HTMLResponse:
        form = console.open(window).gallery.form
        return render("_queries.html", form=form, **_queries_values(console, window, strategy))

    @app.get("/windows/{window}/section/similar", include_in_schema=False)
    def similar(window: Window, row: Annotated[int, Query(ge=0, le=LARGEST)]) -> HTMLResponse:
        gallery = console.open(window).gallery
        found = window_view.list_similar(console, window, row, MAX_SIMILAR)
        return render(
            "_similar.html",
            window=console.window(window),
            form=gallery.form,
            identity=gallery.ids[row],
            here=found["window"],
            known=found["known"],
            total=sum(len(one["rows"]) for one in found["window"]),
        )

    @app.get("/windows/{window}/section/members", include_in_schema=False)
    def members(
        window: Window,
        cluster: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
        label: Annotated[Text | None, Query()] = None,
        sort: Sort = "typical",
        only: Only = "everything",
        start: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
    ) -> HTMLResponse:
        wanted = window_view.Members(cluster=cluster, label=label, sort=sort, only=only)
        rows = window_view.list_members(console, window, wanted)
        end = window_view.end_of_page(console, window, rows, start + PAGE_SIZE)
        return render(
            "_members.html",
            window=console.window(window),
            form=console.open(window).gallery.form,
            instances=window_view.describe_stacks(console, window, rows[start:end]),
            start=start,
            next=end if end < len(rows) else None,
            total=len(rows),
        )


def _window_values(console: Console, window: int) -> dict[str, Any]:
    values = {
        "verbs": {name: verb for name, verb in VERBS.items() if verb.key},
        "strategies": list(STRATEGIES),
        "rows_texts": {
            name: VERBS[verb.for_rows].description if verb.for_rows else verb.description
            for name, verb in VERBS.items()
        },
        "actions": ACTIONS,
        "moves": MOVES,
        "sorts": SORTS,
        "filters": FILTERS,
        "known": window_view.count_known(console, window),
        "notices": _find_notices(console, window),
        "classes": sorted(console.classes().names.values()),
    }
    values |= _clusters_values(console, window) | _queries_values(console, window, STRATEGY)
    values |= _history_values(console, window) | _update_values(console, window)
    return values | _next_values(console, window) | _review_values(console, window)


def _review_values(console: Console, window: int) -> dict[str, Any]:
    opinions = window_view.summarize_opinions(console, window)
    waiting = opinions["waiting"][:PAGE_SIZE]
    return {
        "window": console.window(window),
        "form": console.open(window).gallery.form,
        "opinions": opinions,
        "waiting": window_view.describe_instances(console, window, waiting),
    }


def _next_values(console: Console, window: int) -> dict[str, Any]:
    return {"next_step": guide.find_next_step(console, window)}


def _find_notices(console: Console, window: int) -> list[str]:
    """The notices of the detection, for example about files that cannot be read."""
    jobs = [job for job in console.store.jobs(window=window) if job.kind == "detect"]
    if jobs and jobs[-1].status == FAILED:
        return [f"The window could not be detected again: {jobs[-1].problem}"]
    return list((jobs[-1].result or {}).get("notices", ())) if jobs else []


def _clusters_values(console: Console, window: int) -> dict[str, Any]:
    opened, classes = console.open(window), console.classes()
    with opened.lock:  # clusters and exemplars are of one version
        clusters = window_view.list_clusters(console, window)
        return {
            "window": console.window(window),
            "cards": [_make_card(console, window, one, classes) for one in clusters],
            "seen": opened.state.version,
            "form": opened.gallery.form,
        }


def _make_card(
    console: Console, window: int, cluster: dict[str, Any], classes: Classes
) -> dict[str, Any]:
    found = window_view.find_exemplars(console, window, cluster["cluster"])
    lists = {
        "Medoid": [found.medoid],
        "Nearest": found.nearest,
        "Farthest": found.farthest,
        "Random": found.random,
    }
    exemplars = {
        title: window_view.describe_examples(console, window, rows, classes)
        for title, rows in lists.items()
        if rows
    }
    return cluster | {"exemplars": exemplars}


def _queries_values(console: Console, window: int, strategy: str) -> dict[str, Any]:
    queries = window_view.suggest_queries(console, window, strategy)
    rows = queries.pop("rows")[:MAX_QUERIES]
    return {
        "window": console.window(window),
        "strategy": strategy,
        "budget": queries,
        "queries": window_view.describe_examples(console, window, rows),
    }


def _history_values(console: Console, window: int) -> dict[str, Any]:
    opened = console.open(window)
    with opened.lock:
        events, undone = opened.events[-MAX_HISTORY:], opened.undone
    return {
        "events": [
            {
                "seq": event.seq,
                "person": event.person or "somebody",
                "sentence": describe_event(event.verb, event.about),
                "undone": event.seq in undone,
            }
            for event in reversed(events)
        ]
    }


def _find_rollback_problem(console: Console, window: int | None = None) -> str | None:
    """The problem of the last rollback, if no update came after it."""
    kinds = (updates.UPDATE, updates.ROLLBACK)
    jobs = [job for job in console.store.jobs(window=window) if job.kind in kinds]
    failed = jobs and jobs[-1].kind == updates.ROLLBACK and jobs[-1].status == FAILED
    return jobs[-1].problem if failed else None


def _is_outdated(console: Console, job: Job) -> bool:
    """Whether an update came to nothing, and people have changed the labels since."""
    failed = job.status == FAILED or (job.result or {}).get("refused", False)
    return bool(failed) and not updates.is_current(console, job)


def _update_values(console: Console, window: int) -> dict[str, Any]:
    jobs = [job for job in console.store.jobs(window=window) if job.kind == updates.UPDATE]
    job = jobs[-1] if jobs else None
    if job is not None and _is_outdated(console, job):
        job = None
    update = None if job is None else console.store.update(job.id)
    in_model = update is not None and updates.is_in_model(console, update.version)
    stands = update is not None and update.decision != UNDONE and in_model
    outcome = (job.result or {}) if job is not None and job.status == DONE else {}
    classes = console.classes()
    return {
        "window": console.window(window),
        "update_job": job,
        "update": update,
        "is_current": job is not None and stands and updates.is_current(console, job),
        "in_model": in_model,
        "pending": PENDING,
        "rollback_problem": _find_rollback_problem(console, window),
        "n_labels": len(console.open(window).labels),
        "changes": [
            {**change, "name": classes.display_label(change["label"])}
            for change in outcome.get("classes", ())
        ],
        "outcome": outcome,
    }
