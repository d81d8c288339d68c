"""Forms with many files."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from cilf.console.uploads import MAX_FILES

if TYPE_CHECKING:
    from starlette._utils import AwaitableOrContextManager
    from starlette.datastructures import FormData

MAX_FIELDS, LARGEST_FIELD = 1000, 1 << 20  # of a form, beside files; bytes


class _FormRequest(Request):
    """A request whose form may have as many files as an upload may have."""

    def form(
        self,
        *,
        max_files: float = MAX_FILES,
        max_fields: float = MAX_FIELDS,
        max_part_size: int = LARGEST_FIELD,
    ) -> AwaitableOrContextManager[FormData]:
        return super().form(max_files=max_files, max_fields=max_fields, max_part_size=max_part_size)


class FormRoute(APIRoute):
    """A route that takes forms with many files."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await answer(_FormRequest(request.scope, request.receive))

        return handle
