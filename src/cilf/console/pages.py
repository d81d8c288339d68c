"""The pages: server-rendered, with one small script of their own. Parts of a page that change
have a route of their own, and the script puts them in place."""

from __future__ import annotations

import time
from pathlib import Path as File
from typing import Annotated, Any

from fastapi import FastAPI, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape
from starlette.exceptions import HTTPException

import cilf
from cilf.console import overview, updates, window_view
from cilf.console.api import instances_json
from cilf.console.bodies import LARGEST, Strategy, Text
from cilf.console.classes import Classes
from cilf.console.guard import LOGIN, Access
from cilf.console.service import Console
from cilf.console.store import DONE, FAILED, PENDING, QUEUED, RUNNING, UNDONE, Job
from cilf.errors import CilfError
from cilf.query import STRATEGIES

HERE = File(__file__).parent
FILES = {  # the colours and letters are those of the reports
    "report.css": (File(cilf.__file__).parent / "report" / "templates" / "style.css", "text/css"),
    "console.css": (HERE / "static" / "console.css", "text/css"),
    "console.js": (HERE / "static" / "console.js", "text/javascript"),
    "map.js": (HERE / "static" / "map.js", "text/javascript"),
}
PAGE = 60  # instances at once
MOST_ASKED = 12  # shown at once
MOST_HISTORY = 30
COLOURS = 8
WRONG = 0.3  # seconds that a wrong token costs

Window = Annotated[int, Path(ge=1, le=LARGEST)]


def add_pages(app: FastAPI, console: Console, access: Access) -> None:
    """Add the pages to the application."""
    show = _Renderer(console, access)
    _site(app, console, access, show)
    _window(app, console, show)


class _Renderer:
    """Templates with what all of them say."""

    def __init__(self, console: Console, access: Access) -> None:
        self.console = console
        self.access = access
        self.templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=select_autoescape(),
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters["colour"] = lambda number: (number - 1) % COLOURS
        self.templates.filters["share"] = _share
        self.templates.filters["counted"] = _counted

    def __call__(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        page = self.templates.get_template(template)
        shared = {"version": cilf.__version__, "local": self.access.local}
        return HTMLResponse(page.render(**shared, **values), status_code=status)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


# ----------------------------------------------------------------- the site


def _site(app: FastAPI, console: Console, access: Access, show: _Renderer) -> None:
    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def windows() -> HTMLResponse:
        return show("windows.html", page="windows", **_windows_view(console))

    @app.get("/part/windows", response_class=HTMLResponse, include_in_schema=False)
    def windows_part() -> HTMLResponse:
        return show("_windows.html", **_windows_view(console))

    @app.get("/classes", response_class=HTMLResponse, include_in_schema=False)
    def classes() -> HTMLResponse:
        return show(
            "classes.html",
            page="classes",
            classes=overview.class_list(console),
            version_of_names=console.classes().version,
            model=console.model(),
            names={row.id: row.name for row in console.store.windows()},
            problem=_rollback_problem(console),
        )

    @app.get("/stream", response_class=HTMLResponse, include_in_schema=False)
    def stream() -> HTMLResponse:
        story = overview.stream(console)
        names = list(dict.fromkeys(name for window in story for name in window["counts"]))
        return show("stream.html", page="stream", story=story, classes=names)

    @app.get("/static/{name}", include_in_schema=False)
    def static(name: str) -> Response:
        if name not in FILES:
            raise HTTPException(404)
        path, media = FILES[name]
        return Response(path.read_bytes(), media_type=media, headers={"Cache-Control": "no-cache"})

    @app.get(LOGIN, response_class=HTMLResponse, include_in_schema=False)
    def login_page() -> HTMLResponse:
        return show("login.html", page="login", problem="")

    @app.post(LOGIN, response_class=HTMLResponse, include_in_schema=False)
    def login(token: Annotated[str, Form(max_length=1000)] = "") -> Response:
        if access.token is not None and not access.is_token(token):
            time.sleep(WRONG)
            return show("login.html", 401, page="login", problem="That is not the token.")
        entered = RedirectResponse("/", status_code=303)
        entered.set_cookie(access.cookie, access.proof, httponly=True, samesite="strict")
        return entered

    @app.exception_handler(HTTPException)
    async def lost(request: Request, error: HTTPException) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse(
                {"detail": error.detail}, status_code=error.status_code, headers=error.headers
            )
        return show("problem.html", error.status_code, page="", problem=str(error.detail))


def problem_page(console: Console, access: Access, status: int, error: CilfError) -> HTMLResponse:
    """What cannot be done, for a person who follows a link."""
    return _Renderer(console, access)("problem.html", status, page="", problem=str(error))


def _windows_view(console: Console) -> dict[str, Any]:
    rows = console.store.windows()
    active = {job.window: job for job in console.store.jobs(statuses=[QUEUED, RUNNING])}
    named = {row.id: console.n_named(row.id) for row in rows if row.status == DONE}
    jobs = console.store.jobs()
    return {
        "windows": list(reversed(rows)),
        "jobs": active,
        "named": named,
        "model": console.model(),
        "model_path": console.model_path,
        "fit": next((job for job in reversed(jobs) if job.kind == "fit"), None),
        "lessons": {lesson.window: lesson for lesson in console.store.lessons()},
        "ready": [row for row in rows if row.status == DONE],
        "failed": FAILED,
    }


# ----------------------------------------------------------------- a window


def _window(app: FastAPI, console: Console, show: _Renderer) -> None:
    @app.get("/windows/{window}", response_class=HTMLResponse, include_in_schema=False)
    def window_page(window: Window) -> HTMLResponse:
        row = console.window(window)
        jobs = console.store.jobs(window=window, statuses=[QUEUED, RUNNING])
        if row.status != DONE:
            return show("waiting.html", page="windows", window=row, jobs=jobs)
        return show(
            "window.html",
            page="windows",
            window=row,
            known=window_view.known(console, window),
            notices=_notices(console, window),
            classes=sorted(console.classes().names.values()),
            **_groups_view(console, window),
            **_ask_view(console, window, "representative"),
            **_history_view(console, window),
            **_learn_view(console, window),
        )

    @app.get("/windows/{window}/part/groups", include_in_schema=False)
    def groups(window: Window) -> HTMLResponse:
        return show("_groups.html", window=console.window(window), **_groups_view(console, window))

    @app.get("/windows/{window}/part/known", include_in_schema=False)
    def known(window: Window) -> HTMLResponse:
        return show("_known.html", known=window_view.known(console, window))

    @app.get("/windows/{window}/part/ask", include_in_schema=False)
    def ask(window: Window, strategy: Strategy = "representative") -> HTMLResponse:
        view = _ask_view(console, window, strategy)
        form = console.opened(window).gallery.form
        return show("_ask.html", window=console.window(window), form=form, **view)

    @app.get("/windows/{window}/part/history", include_in_schema=False)
    def history(window: Window) -> HTMLResponse:
        return show("_history.html", **_history_view(console, window))

    @app.get("/windows/{window}/part/learn", include_in_schema=False)
    def learn(window: Window) -> HTMLResponse:
        return show("_learn.html", window=console.window(window), **_learn_view(console, window))

    @app.get("/windows/{window}/part/members", include_in_schema=False)
    def members(
        window: Window,
        group: Annotated[int, Query(ge=0, le=LARGEST)],
        label: Annotated[Text | None, Query()] = None,
        start: Annotated[int, Query(ge=0, le=LARGEST)] = 0,
    ) -> HTMLResponse:
        total, rows = window_view.members(console, window, group - 1, label, start, PAGE)
        return show(
            "_members.html",
            window=console.window(window),
            form=console.opened(window).gallery.form,
            instances=instances_json(console, window, rows),
            group=group,
            label=label,
            next=start + PAGE if start + PAGE < total else None,
            total=total,
        )


def _notices(console: Console, window: int) -> list[str]:
    """What was said while the window was looked at, such as what could not be read."""
    jobs = [job for job in console.store.jobs(window=window) if job.kind == "detect"]
    return list((jobs[-1].result or {}).get("notices", ())) if jobs else []


def _groups_view(console: Console, window: int) -> dict[str, Any]:
    opened, classes = console.opened(window), console.classes()
    with opened.lock:  # groups and what they show are of one version
        cards = [
            _card(console, window, group, classes) for group in window_view.groups(console, window)
        ]
        return {"cards": cards, "seen": opened.state.version, "form": opened.gallery.form}


def _card(console: Console, window: int, group: dict[str, Any], classes: Classes) -> dict[str, Any]:
    shown = window_view.sheet(console, window, group["group"])
    parts = [
        ("Medoid", [shown.medoid]),
        ("Nearest", shown.nearest),
        ("Farthest", shown.farthest),
        ("Random", shown.random),
    ]
    return {
        **group,
        "group": group["group"] + 1,
        "parts": [
            (title, instances_json(console, window, rows, classes)) for title, rows in parts if rows
        ],
    }


def _ask_view(console: Console, window: int, strategy: str) -> dict[str, Any]:
    asked = window_view.ask(console, window, strategy)
    rows = asked["rows"][:MOST_ASKED]
    return {
        "asked": asked,
        "strategy": strategy,
        "strategies": list(STRATEGIES),
        "questions": instances_json(console, window, rows),
    }


def _history_view(console: Console, window: int) -> dict[str, Any]:
    opened = console.opened(window)
    with opened.lock:
        events = [
            {"event": event, "undone": event.seq in opened.undone, "what": told(event)}
            for event in opened.events[-MOST_HISTORY:]
        ]
    return {"events": events[::-1]}


def told(event: Any) -> str:
    """What happened, as one reads it."""
    about = event.about
    groups = "group " + ", ".join(map(str, about.get("groups", ())))
    sentences = {
        "name": lambda: f"named {groups} “{about['name']}”",
        "into": lambda: f"merged {groups} into “{about['name']}”",
        "merge": lambda: f"merged {groups}",
        "reject": lambda: f"rejected {groups}",
        "skip": lambda: f"skipped {groups}",
        "reopen": lambda: f"reopened {groups}",
        "split": lambda: f"split {groups}",
        "move": lambda: f"moved {about['n']} to {_target(about['to'])}",
        "label": lambda: f"labelled {about['n']} as {', '.join(about['names'])}",
        "undo": lambda: f"took back: {about['what']}",
    }
    return sentences[event.verb]()


def _target(to: int | None) -> str:
    return "a new group" if to is None else "the known" if to == 0 else f"group {to}"


def _rollback_problem(console: Console, window: int | None = None) -> str | None:
    """Why the model did not go back, if that is the last thing that was asked of it."""
    jobs = [job for job in console.store.jobs(window=window) if job.kind in ("learn", "rollback")]
    failed = jobs and jobs[-1].kind == "rollback" and jobs[-1].status == FAILED
    return jobs[-1].problem if failed else None


def _learn_view(console: Console, window: int) -> dict[str, Any]:
    jobs = [job for job in console.store.jobs(window=window) if job.kind == "learn"]
    lesson = next(reversed(console.store.lessons(window=window)), None)
    last: Job | None = jobs[-1] if jobs else None
    classes = console.classes()
    outcome = (last.result or {}) if last is not None and last.status == DONE else {}
    lesson = lesson if lesson is not None and last is not None and lesson.job == last.id else None
    is_part = lesson is not None and updates.is_part(console, lesson.version)
    stands = lesson is not None and lesson.decision != UNDONE and is_part
    return {
        "learn_job": last,
        "lesson": lesson,
        "taught": last is not None and stands and updates.is_taught(console, last),
        "pending": PENDING,
        "is_part": is_part,
        "rollback_problem": _rollback_problem(console, window),
        "n_named": len(console.opened(window).taught),
        "changes": [
            {**change, "name": classes.shown(change["label"])}
            for change in outcome.get("classes", ())
        ],
        "outcome": outcome,
    }
