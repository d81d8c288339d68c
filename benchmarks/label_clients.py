"""Clients that label as fast as they are answered.

They have so little work of their own that they hardly slow down the server beside them. By itself
the script asks a console that runs already, without a token, and prints the rate:

    python benchmarks/label_clients.py http://127.0.0.1:8377 --window 1 --rows 1000 --clients 16
"""

from __future__ import annotations

import argparse
import json
import random
import re
import selectors
import socket
import sys
import time
from typing import Any
from urllib.parse import urlsplit

N_NAMES = 40
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Client:
    """A connection that sends a label and waits for the answer."""

    def __init__(self, url: str, window: int, n_rows: int, seed: int) -> None:
        parts = urlsplit(url)
        self.sock = socket.create_connection((parts.hostname, parts.port), timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f"POST /api/windows/{window}/label HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        self.n_rows, self.rng = n_rows, random.Random(seed)  # nosec B311  # which rows it labels
        self.received, self.sent_at = b"", 0.0

    def send(self) -> None:
        name = f"class {self.rng.randrange(N_NAMES)}"
        body = json.dumps({"rows": [self.rng.randrange(self.n_rows)], "name": name})
        fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.received, self.sent_at = b"", time.perf_counter()
        self.sock.sendall((self.head + fields + body).encode())

    def receive(self) -> int | None:
        """The status of the answer once all of it is there."""
        piece = self.sock.recv(65536)
        if not piece:
            raise ConnectionError("the server has closed the connection")
        self.received += piece
        head, end, body = self.received.partition(b"\r\n\r\n")
        found = LENGTH.search(head)
        if not end or found is None or len(body) < int(found[1]):
            return None
        return int(head.split(b" ", 2)[1])


def measure_labels(
    url: str, window: int, n_rows: int, n_clients: int, seconds: float
) -> dict[str, Any]:
    """Labels that are acknowledged per second, and how long one label takes."""
    clients = [Client(url, window, n_rows, seed) for seed in range(n_clients)]
    waits: list[float] = []
    n_labels = 0
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.sock, selectors.EVENT_READ, client)
            client.send()
        started, n_open = time.perf_counter(), n_clients
        while n_open:
            for key, _ in selector.select():
                client = key.data
                status = client.receive()
                if status is None:
                    continue
                now = time.perf_counter()
                waits.append(now - client.sent_at)
                n_labels += status == 200  # a label that is there already is refused
                if now - started < seconds:
                    client.send()
                else:
                    n_open -= 1
        took = time.perf_counter() - started
    for client in clients:
        client.sock.close()
    waits.sort()
    return {
        "clients": n_clients,
        "labels_per_second": round(n_labels / took, 1),
        "p50_ms": round(1000 * waits[len(waits) // 2], 1),
        "p99_ms": round(1000 * waits[int(0.99 * len(waits))], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--window", type=int, default=1)
    parser.add_argument("--rows", type=int, required=True, help="instances of the window")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    rate = measure_labels(
        options.url, options.window, options.rows, options.clients, options.seconds
    )
    print(json.dumps(rate))
    return 0


if __name__ == "__main__":
    sys.exit(main())
