"""Without an extra, whatever needs it says in one line which one to install."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cilf import workflow

ROOT = Path(__file__).parent.parent
CORE = "cilf"
NOT_FOR_USERS = {"all", "dev", "docs", "release"}  # extras that no command asks for

# What a person may run first, without the extra. "watch" asks for fsspec, which torch brings.
COMMANDS = {
    "cluster": "bench grid.toml --engine ray",
    "console": "console --store store",
    "data": "fit photos --out photo-model",
    "mlflow": "run --track mlflow --out tracked",
    "onnx": "export model --to onnx --out model.onnx",
    "pretrained": "run --set backbone=efficientnet-lite2 --out lite",
    "report": "data show digits",
    "tensorboard": "run --track tensorboard --out logged",
}
ELSEWHERE = {"analysis", "postgres", "text", "watch"}  # extras with a test of their own below
RUN_EACH = """
import sys
from cilf import cli
for line in sys.argv[1:]:
    try:
        cli.main(line.split())
    except SystemExit as left:
        print(f"exit {left.code}", file=sys.stderr)
"""


def user_extras() -> set[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        return set(tomllib.load(file)["project"]["optional-dependencies"]) - NOT_FOR_USERS


def find_needed(name: str, extras: frozenset[str]) -> dict[str, frozenset[str]]:
    """The distributions that are there after ``pip install 'name[extras]'``, with their extras."""
    needed: dict[str, frozenset[str]] = {}
    waiting = [(canonicalize_name(name), extras)]
    while waiting:
        each, wanted = waiting.pop()
        if each in needed and wanted <= needed[each]:
            continue
        needed[each] = wanted | needed.get(each, frozenset())
        for line in metadata.requires(each) or ():
            require = Requirement(line)
            marker = require.marker
            applies = marker is None or any(marker.evaluate({"extra": e}) for e in wanted or {""})
            if applies and _is_installed(require.name):
                waiting.append((canonicalize_name(require.name), frozenset(require.extras)))
    return needed


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


class Bare:
    """A Python that has cilf and what some of its extras bring, but nothing else."""

    def __init__(self, folder: Path, *extras: str) -> None:
        self.folder, self.packages = folder, folder / "-".join(["packages", *extras])
        self.packages.mkdir()
        for name in find_needed(CORE, frozenset(extras)):
            installed = metadata.distribution(name)
            for top in {file.parts[0] for file in installed.files or ()} - {"..", "/"}:
                self._link(Path(str(installed.locate_file(top))))
        self._link(ROOT / "src" / "cilf")

    def _link(self, path: Path) -> None:
        link = self.packages / path.name
        if path.exists() and not link.exists():
            link.symlink_to(path)

    def run(self, code: str, *arguments: str) -> str:
        """What a program writes to standard error."""
        environment = os.environ | {"PYTHONPATH": str(self.packages), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-S", "-c", code, *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )
        return done.stderr


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """``pip install cilf``, in a folder with the data that the commands name."""
    folder = tmp_path_factory.mktemp("bare")
    rng = np.random.default_rng(0)
    y = np.repeat(["left", "right"], 40)
    X = rng.normal(np.where(y == "left", 0, 9)[:, None], 1.0, (80, 4)).astype(np.float32)
    np.savez(folder / "points.npz", X=X, y=y)
    texts = [f"some words about {label} number {i}" for i, label in enumerate(y)]
    rows = [f"{text},{label}" for text, label in zip(texts, y, strict=True)]
    (folder / "texts.csv").write_text("\n".join(["text,topic", *rows]), encoding="utf-8")
    for label in ("left", "right"):
        (folder / "photos" / label).mkdir(parents=True)
        for i in range(10):
            (folder / "photos" / label / f"{i}.png").write_bytes(b"a picture")
    (folder / "grid.toml").write_text('data = ["digits"]\nlearners = ["never"]\n')
    workflow.fit(str(folder / "points.npz"), folder / "model", parameters={"epochs": 1})
    return Bare(folder)


@pytest.fixture(scope="module")
def told(bare: Bare) -> dict[str, str]:
    """What each command says, by the extra that it lacks."""
    said = bare.run(RUN_EACH, *COMMANDS.values())
    assert "Traceback" not in said, said
    parts = said.split("exit 2\n")
    assert len(parts) == len(COMMANDS) + 1, said
    return dict(zip(COMMANDS, parts, strict=False))


@pytest.mark.parametrize("extra", COMMANDS)
def test_a_command_says_which_extra_to_install(extra: str, told: dict[str, str]) -> None:
    last = told[extra].splitlines()[-1]
    assert last.startswith("error: ")
    assert last.endswith(f"pip install 'cilf[{extra}]'.")


def test_records_as_a_table_say_so_too(bare: Bare) -> None:
    said = bare.run("from cilf.evaluate import read_records; read_records('.')").splitlines()[-1]
    assert said.endswith("needs pandas: pip install 'cilf[analysis]'.")


def test_texts_in_a_table(bare: Bare) -> None:
    said = Bare(bare.folder, "data").run(RUN_EACH, "fit texts.csv --label topic --out texts")
    assert said.splitlines()[-2].endswith("pip install 'cilf[text]'.")


def test_a_database_without_its_driver(bare: Bare) -> None:
    console = Bare(bare.folder, "console")
    url = "postgresql://nobody@127.0.0.1:9/none"
    said = console.run(RUN_EACH, f"console --store store --database {url}").splitlines()
    assert said[-1] == "exit 2"
    assert said[-2].endswith("and pip install 'cilf[postgres]'.")


def test_storage_without_its_package_is_not_waited_for(bare: Bare) -> None:
    said = bare.run(RUN_EACH, "watch model s3://bucket/new", "watch model no://bucket").splitlines()
    assert said[1] == said[3] == "exit 2"
    assert said[0] == (
        "error: the source 's3://bucket/new' cannot be opened: Install s3fs to access S3."
    )
    assert said[2] == "error: the source 'no://bucket' cannot be opened: Protocol not known: no."


def test_every_extra_is_tried() -> None:
    assert COMMANDS.keys() | ELSEWHERE == user_extras()


def test_all_is_every_extra() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        (everything,) = tomllib.load(file)["project"]["optional-dependencies"]["all"]
    assert Requirement(everything).extras == user_extras()
