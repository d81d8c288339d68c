"""The pages, rendered by the server. Sections that change have routes of their own, which the
script loads."""

from __future__ import annotations

from pathlib import Path as File
from typing import Annotated, Any

from fastapi import FastAPI, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.exceptions import HTTPException

import cilf
from cilf.console import class_edits, overview, updates, window_view
from cilf.console.bodies import LARGEST, Strategy, Text
from cilf.console.classes import Classes
from cilf.console.guard import LOGIN, Access, address_of
from cilf.console.service import Console
from cilf.console.store import DONE, FAILED, PENDING, QUEUED, RUNNING, UNDONE
from cilf.console.uploads import ACCEPTED
from cilf.console.verbs import VERBS, describe_event
from cilf.errors import CilfError
from cilf.query import STRATEGIES

HERE = File(__file__).parent
FILES = {  # the pages share the style sheet of the reports
    "report.css": (File(cilf.__file__).parent / "report" / "templates" / "style.css", "text/css"),
    "console.css": (HERE / "static" / "console.css", "text/css"),
    "console.js": (HERE / "static" / "console.js", "text/javascript"),
    "edits.js": (HERE / "static" / "edits.js", "text/javascript"),
    "map.js": (HERE / "static" / "map.js", "text/javascript"),
}
PAGE_SIZE = 60  # instances
MAX_QUERIES = 12  # shown at once
MAX_HISTORY = 30
N_COLOURS = 8
STRATEGY = "representative"

Window = Annotated[int, Path(ge=1, le=LARGEST)]


def add_pages(app: FastAPI, console: Console, access: Access) -> None:
    """Add the pages to the application."""
    render = _Renderer()
    _add_overview(app, console, render)
    _add_files(app)
    _add_login(app, access, render)
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
        self.templates.filters["colour"] = lambda number: (number - 1) % N_COLOURS
        self.templates.filters["percent"] = _format_percent
        self.templates.filters["counted"] = _format_count

    def __call__(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        page = self.templates.get_template(template)
        return HTMLResponse(page.render(**values), status_code=status)


def _format_count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _format_percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


# ----------------------------------------------------------------- all windows


def _add_overview(app: FastAPI, console: Console, render: _Renderer) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def windows() -> HTMLResponse:
        return render("windows.html", page="windows", **_windows_values(console))

    @app.get("/section/windows", response_class=HTMLResponse, include_in_schema=False)
    def windows_section() -> HTMLResponse:
        return render("_windows.html", **_windows_values(console))

    @app.get("/classes", response_class=HTMLResponse, include_in_schema=False)
    def classes() -> HTMLResponse:
        return render(
            "classes.html",
            page="classes",
            classes=overview.list_classes(console),
            version_of_names=console.classes().version,
            model=console.model(),
            is_editable=class_edits.is_editable(console.model()),
            sentences=[class_edits.describe_edits(event) for event in console.model()["events"]],
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
    archived = console.store.archived_windows()
    return {
        "windows": [row for row in reversed(rows) if row.id not in archived],
        "archived": [row for row in reversed(rows) if row.id in archived],
        "jobs": {job.window: job for job in jobs if job.status in (QUEUED, RUNNING)},
        "named": {row.id: console.count_named(row.id) for row in rows if row.status == DONE},
        "model": console.model(),
        "model_path": console.model_path,
        "fit": next((job for job in reversed(jobs) if job.kind == updates.FIT), None),
        "updates": {update.window: update for update in console.store.updates()},
        "accepted": ",".join(ACCEPTED),
        "failed": FAILED,
    }


# ----------------------------------------------------------------- files, log-in, problems


def _add_files(app: FastAPI) -> None:
    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        if name not in FILES:
            raise HTTPException(404)
        path, media = FILES[name]
        return Response(path.read_bytes(), media_type=media, headers={"Cache-Control": "no-cache"})


def _add_login(app: FastAPI, access: Access, render: _Renderer) -> None:
    @app.get(LOGIN, response_class=HTMLResponse, include_in_schema=False)
    def login_page() -> HTMLResponse:
        return render("login.html", page="login", problem="")

    @app.post(LOGIN, response_class=HTMLResponse, include_in_schema=False)
    def login(  # nosec B107  # a form without a token has the empty one, which is refused
        request: Request, token: Annotated[str, Form(max_length=1000)] = ""
    ) -> Response:
        problem = access.check_token(token, address_of(request))
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

    @app.get("/windows/{window}/section/queries", include_in_schema=False)
    def queries(window: Window, strategy: Strategy = STRATEGY) -> HTMLResponse:
        form = console.open(window).gallery.form
        return render("_queries.html", form=form, **_queries_values(console, window, strategy))

    @app.get("/windows/{window}/section/members", include_in_schema=False)
    def members(
        window: Window,
        cluster: Annotated[int, Query(ge=0, le=LARGEST)],
        label: Annotated[Text | None, Query()] = None,
        start: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
    ) -> HTMLResponse:
        total, rows = window_view.list_members(
            console, window, cluster, label, start=start, most=PAGE_SIZE
        )
        return render(
            "_members.html",
            window=console.window(window),
            form=console.open(window).gallery.form,
            instances=window_view.describe_instances(console, window, rows),
            next=start + PAGE_SIZE if start + PAGE_SIZE < total else None,
            total=total,
        )


def _window_values(console: Console, window: int) -> dict[str, Any]:
    values = {
        "verbs": {name: verb for name, verb in VERBS.items() if verb.key},
        "strategies": list(STRATEGIES),
        "known": window_view.count_known(console, window),
        "notices": _find_notices(console, window),
        "classes": sorted(console.classes().names.values()),
    }
    values |= _clusters_values(console, window) | _queries_values(console, window, STRATEGY)
    return values | _history_values(console, window) | _update_values(console, window)


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
        title: window_view.describe_instances(console, window, rows, classes)
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
        "queries": window_view.describe_instances(console, window, rows),
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


def _update_values(console: Console, window: int) -> dict[str, Any]:
    jobs = [job for job in console.store.jobs(window=window) if job.kind == updates.UPDATE]
    job = jobs[-1] if jobs else None
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
