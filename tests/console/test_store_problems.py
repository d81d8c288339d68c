"""Each thing that can be wrong with the store has its own sentence."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import SQLAlchemyError

from cilf.console import store_problems
from cilf.console.database import FILE, make_engine
from cilf.console.service import Console
from cilf.console.store import Store
from cilf.console.store_problems import (
    DAMAGED,
    FULL,
    LOCKED,
    OTHER_SCHEMA,
    READ_ONLY,
    UNKNOWN,
    UNREACHABLE,
    explain_problem,
)

from .conftest import COWS, HENS, post


def name_cows(client: TestClient) -> str:
    detail: str = post(client, "name", 503, clusters=[COWS], name="cat")["detail"]
    return detail


def test_a_full_disk(client: TestClient, console: Console) -> None:
    with console.store.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    answers = [
        client.post("/api/windows/1/label", json={"rows": [row], "name": "cat"})
        for row in range(50)
    ]
    refused = [answer for answer in answers if answer.status_code == 503]
    assert refused, "the limit is reached after some labels"
    assert {answer.json()["detail"] for answer in refused} == {FULL}
    assert console.store.last_seq(1) == sum(answer.status_code == 200 for answer in answers)


def test_a_locked_database(client: TestClient, console: Console) -> None:
    with console.store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(console.store.folder / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert name_cows(client) == LOCKED
    other.execute("ROLLBACK")
    other.close()
    post(client, "name", clusters=[HENS], name="hen")


def test_an_old_schema(client: TestClient, console: Console) -> None:
    with console.store.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE audit DROP COLUMN address")
    assert name_cows(client) == OTHER_SCHEMA


def test_a_damaged_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.close()
    content = bytearray((tmp_path / FILE).read_bytes())
    content[2048:] = b"x" * (len(content) - 2048)
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(SQLAlchemyError) as caught:
        store.windows()
    assert explain_problem(caught.value) == DAMAGED
    store.engine.dispose()


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, FULL),
        (errno.EROFS, READ_ONLY),
        (errno.EACCES, READ_ONLY),
        (errno.EIO, UNKNOWN),
    ],
)
def test_errors_of_the_system(number: int, sentence: str) -> None:
    assert explain_problem(OSError(number, "so it is")) == sentence


def test_a_database_that_does_not_answer() -> None:
    pytest.importorskip("psycopg")
    engine = make_engine(Path(), "postgresql://nobody@127.0.0.1:1/nothing")
    with pytest.raises(SQLAlchemyError) as caught:
        engine.connect()
    assert explain_problem(caught.value) == UNREACHABLE


@pytest.mark.parametrize("code", store_problems.POSTGRESQL)
def test_codes_of_postgresql(code: str) -> None:
    class Refusal(Exception):
        sqlstate = code.ljust(5, "0")

    error = SQLAlchemyError("refused")
    error.orig = Refusal()  # type: ignore[attr-defined]
    assert explain_problem(error) == store_problems.POSTGRESQL[code]
