from __future__ import annotations

from pathlib import Path

import pytest

from cilf.core.notices import forget


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and no notice given yet."""
    monkeypatch.setenv("CILF_CACHE", str(tmp_path_factory.mktemp("cache")))
    forget()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data sets, in use."""
    monkeypatch.setenv("CILF_DATA", str(tmp_path / "sets"))
    return tmp_path / "sets"
