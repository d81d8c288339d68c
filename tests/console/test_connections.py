from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from cilf.console import connections
from cilf.console.connections import PatientProtocol

OPEN = b"open"
REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def serving() -> AsyncIterator[int]:
    config = uvicorn.Config(
        answer, http=PatientProtocol, lifespan="off", log_level="critical", timeout_keep_alive=30
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        running = asyncio.create_task(server.serve(sockets=[sock]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield sock.getsockname()[1]
        server.should_exit = True
        await running


async def exchange(port: int, *pieces: bytes) -> bytes:
    """Send pieces, some time apart, and read until the server closes or is silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.1)
        return await asyncio.wait_for(reader.read(), 1.0)
    except TimeoutError:
        return OPEN
    except ConnectionError:
        return b""
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def test_headers_that_do_not_come_in_time_close_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.35)

    async def check() -> None:
        async with serving() as port:
            silent, half, dripping, whole = await asyncio.gather(
                exchange(port),
                exchange(port, REQUEST[:20]),
                exchange(port, *(REQUEST[i : i + 4] for i in range(0, len(REQUEST), 4))),
                exchange(port, REQUEST[:20], REQUEST[20:]),
            )
            assert (silent, half, dripping) == (b"", b"", b"")
            assert whole == OPEN  # it was answered, and waits for the next request

    asyncio.run(check())


def test_one_address_gets_some_connections_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_OF_ADDRESS", 3)

    async def check() -> None:
        async with serving() as port:
            results = await asyncio.gather(*(exchange(port, REQUEST) for _ in range(5)))
            assert sorted(result == OPEN for result in results) == [False] * 2 + [True] * 3

    asyncio.run(check())
