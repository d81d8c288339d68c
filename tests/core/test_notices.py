from __future__ import annotations

import logging

import pytest

from cilf.core.notices import forget, warn_once


def test_a_line_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    forget()
    warn_once("the size is 32")
    warn_once("the size is 32")
    warn_once("the size is 64")
    assert [record.message for record in caplog.records] == ["the size is 32", "the size is 64"]
    assert {record.name for record in caplog.records} == {"cilf"}


def test_a_line_can_be_silenced(caplog: pytest.LogCaptureFixture) -> None:
    forget()
    logger = logging.getLogger("cilf")
    logger.setLevel(logging.ERROR)
    try:
        warn_once("not wanted")
    finally:
        logger.setLevel(logging.NOTSET)
    assert caplog.records == []


def test_lines_can_be_said_again(caplog: pytest.LogCaptureFixture) -> None:
    forget()
    warn_once("twice")
    forget()
    warn_once("twice")
    assert len(caplog.records) == 2
