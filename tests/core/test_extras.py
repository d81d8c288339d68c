from __future__ import annotations

import sys

import pytest

from cilf.core import extras
from cilf.core.extras import is_installed, optional
from cilf.errors import BadConfig


def test_a_module_that_is_there_is_given() -> None:
    assert optional("json", extra="data", purpose="reading") is sys.modules["json"]


def test_a_missing_one_is_named_with_the_command() -> None:
    with pytest.raises(BadConfig, match=r"^reading needs nothing_here: pip install 'cilf\[data\]'"):
        optional("nothing_here.inside", extra="data", purpose="reading")


def test_what_is_installed_is_known_without_importing_it() -> None:
    assert is_installed("json")
    assert not is_installed("nothing_here")


def test_encoders_are_files_folders_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(extras.ENCODERS, raising=False)
    assert extras.named_encoders() == []
    given = ["/a/dino.onnx", "sentence:org/name", "/b/sentence", "sentence:/c"]
    monkeypatch.setenv(extras.ENCODERS, "\n".join(given))
    assert extras.named_encoders() == given
