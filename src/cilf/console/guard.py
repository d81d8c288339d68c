"""Access control: an ASGI layer around the application.

- Without a token, the Host of a request must be a name of this machine. A page elsewhere cannot
  reach the console under another name.
- With a token, a request must show it in a header or in the cookie that the log-in sets.
- Requests that another site caused are refused, except for links that a person follows.
- A body must not be larger than its route takes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cilf.console.origin import HEADER, Origin, come_from, read_person
from cilf.console.uploads import MAX_BYTES

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_BODY = 1 << 20  # bytes of a request that carries no file
MAX_IMPORT = 64 << 20  # bytes of a file of labels
BODY_SECONDS = 30.0  # between two pieces of a body
FREE_TRIES, LONGEST_WAIT = 5, 300.0  # wrong tokens of an address before it has to wait, seconds
MOST_ADDRESSES = 10_000  # that are remembered
UPLOADS = ("/api/windows/upload", "/api/model/fit/upload")
IMPORT = re.compile("/api/windows/[0-9]+/labels")
LOGIN = "/login"
OPEN_PATHS = (LOGIN, "/static/", "/healthz", "/readyz")  # open to everybody
FOR_PROGRAMS = ("/api/", "/metrics")  # an answer without a token is no page
BATCHES = ("/predict", "/detect")  # of a prediction server
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class WrongTokens:
    """The wrong tokens of each address. It may try again after a while, which grows."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tries: OrderedDict[str, tuple[int, float]] = OrderedDict()  # and the time of the last

    def seconds_left(self, address: str) -> float:
        """The seconds until the address may try again."""
        n, last = self._tries.get(address, (0, 0.0))
        wait = 0.0 if n < FREE_TRIES else min(2.0 ** (n - FREE_TRIES), LONGEST_WAIT)
        return max(0.0, last + wait - self._clock())

    def add(self, address: str) -> None:
        n, _ = self._tries.pop(address, (0, 0.0))
        self._tries[address] = min(n + 1, 64), self._clock()
        if len(self._tries) > MOST_ADDRESSES:
            self._tries.popitem(last=False)

    def forget(self, address: str) -> None:
        self._tries.pop(address, None)


@dataclass(frozen=True)
class Access:
    """The address of the server and the token that it demands."""

    host: str = "127.0.0.1"
    token: str | None = None
    wrong_tokens: WrongTokens = field(default_factory=WrongTokens)

    @property
    def local(self) -> bool:
        return self.host in LOOPBACK

    @property
    def cookie(self) -> str:
        return "cilf_console"

    @property
    def proof(self) -> str:
        """The content of the cookie, which does not hold the token itself."""
        return hmac.new((self.token or "").encode(), b"cilf console", hashlib.sha256).hexdigest()

    def check_token(self, given: str, address: str) -> str:
        """Say what is wrong with a token that somebody gives; "" if nothing is."""
        left = self.wrong_tokens.seconds_left(address)
        if left > 0:
            return f"too many wrong tokens: try again in {math.ceil(left)} s."
        if self.token is None or hmac.compare_digest(given.encode(), self.token.encode()):
            self.wrong_tokens.forget(address)
            return ""
        self.wrong_tokens.add(address)
        return "the token is wrong."


class Guard:
    """The layer that refuses requests."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        app = self._refuse(Request(scope)) or self.app
        limited = _LimitedBody(receive, _max_bytes(scope["path"]))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        with come_from(_find_origin(Request(scope))):
            await app(scope, limited, send_with_headers)

    def _refuse(self, request: Request) -> Response | None:
        headers = request.headers
        if self.access.token is None and _host(headers.get("host", "")) not in LOOPBACK:
            return _problem(403, "this console answers under its own address only.")
        if _is_foreign(request.method, headers):
            return _problem(403, "requests from other sites are refused.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > _max_bytes(request.url.path):
            return _problem(413, "the content is too large.")
        return self._refuse_without_token(request)

    def _refuse_without_token(self, request: Request) -> Response | None:
        access, path = self.access, request.url.path
        if access.token is None or path.startswith(OPEN_PATHS):
            return None
        cookie = request.cookies.get(access.cookie, "")
        if hmac.compare_digest(cookie.encode(), access.proof.encode()):
            return None
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            problem = access.check_token(given.strip(), address_of(request))
            return _problem(401, problem) if problem else None
        if path.startswith(FOR_PROGRAMS) or request.method not in SAFE:
            return _problem(401, "send the token: 'Authorization: Bearer TOKEN'.")
        return RedirectResponse(LOGIN, status_code=303)


def _find_origin(request: Request) -> Origin:
    return Origin(read_person(request.headers.get(HEADER, "")), address_of(request))


def address_of(request: Request) -> str:
    """The address of the client."""
    return request.client.host if request.client else ""


class _LimitedBody:
    """A body that ends with an error as soon as it is too large, or stops coming."""

    def __init__(self, receive: Receive, most: int) -> None:
        self.receive, self.left, self.is_whole = receive, most, False

    async def __call__(self) -> Message:
        patience = None if self.is_whole else BODY_SECONDS  # what comes after it is the end
        try:
            async with asyncio.timeout(patience):
                message = await self.receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
        if message["type"] == "http.request":
            self.is_whole = not message.get("more_body", False)
            self.left -= len(message.get("body", b""))
            if self.left < 0:
                return {"type": "http.disconnect"}
        return message


def _max_bytes(path: str) -> int:
    if path in UPLOADS:
        return MAX_BYTES + MAX_BODY
    return MAX_IMPORT if IMPORT.fullmatch(path) or path in BATCHES else MAX_BODY


def _is_foreign(method: str, headers: Headers) -> bool:
    site = headers.get("sec-fetch-site", "none")
    is_link = method in SAFE and headers.get("sec-fetch-mode") == "navigate"
    if site not in ("same-origin", "none") and not is_link:
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host", "")


def _host(header: str) -> str:
    """The name in a Host header without the port."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _problem(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": detail}, status_code=status)
