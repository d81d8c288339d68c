"""The web application: the REST interface, the pages, and what guards them."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.middleware.gzip import GZipMiddleware

from cilf import __version__
from cilf.console import api, pages
from cilf.console.guard import Access, Guard
from cilf.console.service import Conflict, Console, NotThere
from cilf.console.uploads import TooLarge
from cilf.errors import CilfError

LOGGER = logging.getLogger("cilf.console")
MOST_TOLD = 20  # events of a conflict
UNKEPT = "the store cannot be reached or is full: nothing was changed, the server's log says why."
TAGS = [
    {"name": "windows", "description": "Data in which new kinds are looked for."},
    {"name": "looking", "description": "What was found, and what happened since."},
    {"name": "verbs", "description": "What people do with groups; each can be undone."},
    {"name": "labels", "description": "Labels that go elsewhere or come from there."},
    {"name": "classes", "description": "What classes are called."},
    {"name": "model", "description": "What is learned, and the work that takes."},
]


def make_app(console: Console, access: Access) -> FastAPI:
    """The application on a console."""
    app = FastAPI(
        title="cilf console", version=__version__, openapi_tags=TAGS, docs_url=None, redoc_url=None
    )
    app.include_router(api.routes(console))
    pages.add_pages(app, console, access)
    app.add_middleware(GZipMiddleware, minimum_size=2048, compresslevel=3)
    app.add_middleware(Guard, access=access)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, CilfError)
        if request.url.path.startswith("/api/"):
            return _refused(error)
        return pages.problem_page(console, access, _status(error), error)

    async def broken(request: Request, error: Exception) -> Response:
        LOGGER.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return JSONResponse({"detail": UNKEPT}, status_code=503)

    app.add_exception_handler(CilfError, refused)
    for kind in (SQLAlchemyError, OSError):  # no database, a full disk
        app.add_exception_handler(kind, broken)
    return app


def _refused(error: CilfError) -> JSONResponse:
    """What cannot be done, as one line."""
    detail: dict[str, Any] = {"detail": str(error)}
    if isinstance(error, Conflict):
        detail["version"] = error.version
        detail["happened"] = [api.happened(e).model_dump() for e in error.happened[-MOST_TOLD:]]
    return JSONResponse(detail, status_code=_status(error))


def _status(error: CilfError) -> int:
    statuses = {Conflict: 409, NotThere: 404, TooLarge: 413}
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), 400)
