from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from cilf.console import server


def test_a_problem_is_one_line(run: Any) -> None:
    outcome = run("console", "--store", "work", "--host", "0.0.0.0")
    assert outcome.code == 2
    (line,) = outcome.err.splitlines()
    assert line.startswith("error: --host 0.0.0.0 lets other machines in")


def test_options_reach_the_server_and_the_token_stays_there(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Path, dict[str, Any]]] = []

    def serve(folder: Path, *, announce: Any, **options: Any) -> None:
        calls.append((folder, options))
        announce("http://127.0.0.1:1/")

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setenv("CILF_TOKEN", "long-enough")
    outcome = run("console", "--store", "work", "--port", "0", "--data", "a", "--data", "b")
    assert outcome.code == 0, outcome.err
    assert "cilf console: http://127.0.0.1:1/" in outcome.out
    ((folder, options),) = calls
    assert (folder, options["port"], options["token"]) == (Path("work"), 0, "long-enough")
    assert options["roots"] == [Path("a"), Path("b")]
    assert "CILF_TOKEN" not in os.environ


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The tokens that servers are started with."""
    tokens: list[str | None] = []

    def serve(folder: Path, *, token: str | None, **options: Any) -> None:
        tokens.append(token)

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.delenv("CILF_TOKEN", raising=False)
    return tokens


def test_a_token_in_a_file(run: Any, served: list[str | None], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("long-enough\n")
    outcome = run("console", "--store", "work", "--token-file", str(tmp_path / "token"))
    assert (outcome.code, outcome.err, served) == (0, "", ["long-enough"])
    both = run("console", "--store", "work", "--token-file", "token", "--token", "long-enough")
    assert (both.code, both.err.count("\n")) == (2, 1)
    assert "give one of them" in both.err
    gone = run("console", "--store", "work", "--token-file", "nowhere")
    assert (gone.code, gone.err.count("\n")) == (2, 1)
    assert "nowhere cannot be read" in gone.err


def test_a_token_that_others_see_is_warned_of(
    run: Any, served: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = run("console", "--store", "work", "--token", "long-enough")
    assert (outcome.code, served) == (0, ["long-enough"])
    assert "better give CILF_TOKEN or --token-file" in " ".join(outcome.err.split())
    monkeypatch.setenv("CILF_TOKEN", "another-one")
    assert run("console", "--store", "work").err == ""
    assert served[-1] == "another-one"


def test_a_backup_and_a_store_made_of_it(run: Any, tmp_path: Path) -> None:
    from cilf.console.store import Store

    Store(tmp_path).close()
    made = run("backup", str(tmp_path), "monday.tar")
    assert (made.code, made.out) == (0, "monday.tar: 0 windows, 0 events, 1 files\n")
    assert "The model is not in the store" in made.err
    assert run("restore", "monday.tar", "work").out == "work: 0 windows, 0 events, 1 files\n"
    again = run("restore", "monday.tar", "work")
    assert again.code == 2
    assert again.err.startswith("error: work is not empty")
