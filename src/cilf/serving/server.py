"""The prediction server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cilf.core.extras import optional


def serve(
    model: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8378,
    token: str | None = None,
    announce: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve a model until it is interrupted. Requests that have come are answered before the end.

    Args:
        model: the model folder.
        host: the address to listen on.
        port: the port to listen on. 0 takes a free one.
        token: the token that every request must show. Without one, only this machine is served.
        announce: a function that is called with the address once the server listens.
    """
    for module in ("uvicorn", "fastapi", "python_multipart", "PIL"):
        optional(module, extra="console", purpose="a prediction server")
    import uvicorn

    from cilf.console.connections import PatientProtocol
    from cilf.console.guard import Access
    from cilf.console.server import MOST_CONNECTIONS, format_address, listen, require_token
    from cilf.serving.app import make_app
    from cilf.serving.live_model import LiveModel

    access = Access(host, token)
    require_token(access)
    live = LiveModel(model)
    with listen(host, port) as sock, live.refreshing():
        config = uvicorn.Config(
            make_app(live, access), log_level="warning", lifespan="off", timeout_keep_alive=30,
            http=PatientProtocol, limit_concurrency=MOST_CONNECTIONS, access_log=False,
        )  # fmt: skip
        announce(format_address(sock, host, None))
        uvicorn.Server(config).run(sockets=[sock])
