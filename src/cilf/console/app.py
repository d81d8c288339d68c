"""The web application: REST interface, pages, and the guard around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.middleware.gzip import GZipMiddleware

from cilf import __version__
from cilf.console import api, pages
from cilf.console.console_metrics import collect_metrics
from cilf.console.guard import Access, Guard
from cilf.console.log import LOGGER
from cilf.console.metrics import add_metrics
from cilf.console.page_words import use_page_words
from cilf.console.service import Conflict, Console, NotFound
from cilf.console.store_problems import explain_problem
from cilf.console.uploads import TooLarge
from cilf.errors import CilfError

MAX_EVENTS = 20  # of a conflict
MAX_ECHO = 200  # characters of a request that an answer repeats
TAGS = [
    {"name": "windows", "description": "Data in which novel classes are detected."},
    {"name": "view", "description": "What was detected, and the changes since."},
    {"name": "verbs", "description": "Changes of clusters and instances. Each can be undone."},
    {"name": "labels", "description": "Import and export of labels."},
    {"name": "classes", "description": "The names of classes."},
    {"name": "model", "description": "The model, its updates, and the jobs of the worker."},
]


def make_app(console: Console, access: Access) -> FastAPI:
    """The application on a console."""
    app = FastAPI(
        title="cilf console", version=__version__, openapi_tags=TAGS, docs_url=None, redoc_url=None
    )
    app.include_router(api.make_routes(console))
    pages.add_pages(app, console, access)
    add_metrics(app, lambda: collect_metrics(console))
    app.add_middleware(GZipMiddleware, minimum_size=2048, compresslevel=3)
    app.add_middleware(Guard, access=access)

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, CilfError)
        if request.url.path.startswith("/api/"):
            return _problem_json(error)
        return pages.render_problem(_status(error), error)

    async def explain(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return JSONResponse({"detail": [_shorten(one) for one in error.errors()]}, status_code=422)

    async def fail(request: Request, error: Exception) -> Response:
        LOGGER.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return JSONResponse({"detail": explain_problem(error)}, status_code=503)

    app.add_exception_handler(CilfError, refuse)
    app.add_exception_handler(RequestValidationError, explain)
    for kind in (SQLAlchemyError, OSError):  # no database, a full disk
        app.add_exception_handler(kind, fail)
    return app


def _shorten(problem: Mapping[str, Any]) -> dict[str, Any]:
    """A problem of a request, without what JSON cannot hold and without most of the request."""
    place = [part if isinstance(part, int) else ascii(part)[1:-1] for part in problem["loc"]]
    about = {"loc": place, "msg": str(problem["msg"]), "type": problem["type"]}
    return about | {"input": ascii(problem.get("input"))} if _is_short(problem) else about


def _is_short(problem: Mapping[str, Any]) -> bool:
    """Whether the input may be repeated. A long one is not even written as text."""
    given = problem.get("input")
    return isinstance(given, bool | int | float | str) and len(ascii(given)) <= MAX_ECHO


def _problem_json(error: CilfError) -> JSONResponse:
    """The error as one line."""
    detail: dict[str, Any] = {"detail": use_page_words(str(error))}
    if isinstance(error, Conflict):
        detail["version"] = error.version
        events = [api.event_response(event) for event in error.events[-MAX_EVENTS:]]
        detail["events"] = [event.model_dump() for event in events]
    return JSONResponse(detail, status_code=_status(error))


def _status(error: CilfError) -> int:
    statuses = {Conflict: 409, NotFound: 404, TooLarge: 413}
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), 400)
