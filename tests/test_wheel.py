"""The wheel works away from the repository: it is built, installed into an empty venv, and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

from .console.servers import serving

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "cilf"
MARK = "<!-- of the installed wheel -->"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that ``pip wheel .`` makes, without fetching the build backend."""
    folder = tmp_path_factory.mktemp("wheel")
    build = f"from hatchling.build import build_wheel; build_wheel({str(folder)!r})"
    _check([sys.executable, "-c", build], cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A venv with the wheel, and with what it depends on from the running interpreter.

    A ``.pth`` file names the folders of the other packages. Python reads no ``.pth`` file there, so
    an editable installation of the repository does not count.
    """
    folder = tmp_path_factory.mktemp("away") / "venv"
    _check([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    (site,) = folder.glob("lib/python*/site-packages")
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (site / "shared.pth").write_text("\n".join(shared), encoding="utf-8")
    install = ["install", "-q", "--no-deps", "--no-index", "--no-compile", "--ignore-installed"]
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    _check([*pip, *install, str(wheel)])
    for page in ("console/templates/base.html", "report/templates/report.html.j2"):
        with (site / "cilf" / page).open("a", encoding="utf-8") as file:
            file.write(MARK)
    return folder


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder away from the repository, where nothing leads back to it."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        held = {name for name in file.namelist() if not name.split("/")[0].endswith(".dist-info")}
        metadata = [name for name in file.namelist() if name not in held]
    here = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert held == {str(path.relative_to(PACKAGE.parent)) for path in here}
    assert any(name.endswith("licenses/LICENSE") for name in metadata)


def test_what_is_imported_is_the_wheel(venv: Path, away: Path) -> None:
    code = "import cilf, json; print(json.dumps([cilf.__file__, cilf.__version__]))"
    path, version = json.loads(_check([str(venv / "bin" / "python"), "-c", code]))
    assert Path(path).is_relative_to(venv)
    assert _check([str(venv / "bin" / "cilf"), "--version"]) == f"cilf {version}\n"


def test_the_demo_of_the_wheel_writes_its_report(venv: Path, away: Path) -> None:
    _check([str(venv / "bin" / "cilf"), "demo"])
    page = (away / "runs" / "demo" / "report.html").read_text(encoding="utf-8")
    assert MARK in page
    assert "data:image/png;base64," in page


def test_the_console_of_the_wheel_serves_its_page(venv: Path, away: Path) -> None:
    with serving(away / "store", python=venv / "bin" / "python") as server:
        assert MARK in _read(server.url)
        assert "import" in _read(f"{server.url}/static/console.js")
        assert json.loads(_read(f"{server.url}/healthz"))


def _check(command: list[str], cwd: Path | None = None) -> str:
    """What a command prints; it has to work."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _read(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())
