from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from cilf.benchmark.provenance import commit, provenance


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package in a checkout of its own."""
    folder = tmp_path / "src" / "package"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    git(tmp_path, "tag", "v1")
    return folder


def test_the_commit_is_the_checkout_s(package: Path) -> None:
    head = subprocess.run(
        ["git", "-C", str(package), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    assert commit(package) == head.stdout.strip()


def test_changes_since_the_commit_are_confessed(package: Path) -> None:
    (package / "__init__.py").write_text("changed = True\n", encoding="utf-8")
    found = commit(package)
    assert found is not None
    assert found.endswith("-dirty")


def test_a_package_in_somebody_else_s_checkout_has_no_commit(package: Path) -> None:
    installed = package.parent / "site-packages" / "cilf"
    installed.mkdir(parents=True)
    (installed / "__init__.py").touch()
    assert commit(installed) is None


def test_without_git_there_is_no_commit(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert commit(package) is None


def test_the_machine_is_described_but_not_named() -> None:
    machine = provenance()["machine"]
    assert machine["cpu"]
    assert machine["cores"] >= 1
    assert platform.node() not in machine.values()
