"""What the server refuses before it starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from cilf import cli
from cilf.console.server import readable_roots, serve
from cilf.errors import BadConfig


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "box.example", "127.0.0.1.example"])
def test_any_other_address_demands_a_token(tmp_path: Path, host: str) -> None:
    with pytest.raises(BadConfig, match="lets other machines in: demand a token"):
        serve(tmp_path, host=host)


@pytest.mark.parametrize("token", ["", "short", "two words of it"])
def test_tokens_that_are_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(BadConfig, match="at least 8 characters without blanks"):
        serve(tmp_path, host="0.0.0.0", token=token)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadConfig, match="cannot listen on"):
            serve(tmp_path, port=taken.getsockname()[1])


def test_on_the_command_line_it_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["console", "--store", str(tmp_path), "--host", "0.0.0.0"])
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --host 0.0.0.0 lets other machines in")


def test_with_a_token_only_named_folders_may_be_read(tmp_path: Path) -> None:
    assert readable_roots(None, ()) is None
    assert (
        readable_roots(None, [tmp_path]) == readable_roots("a-long-token", [tmp_path]) == [tmp_path]
    )
    assert readable_roots("a-long-token", ()) == []
