"""Commands in the documentation run as they are written, in a folder with the data they name."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sklearn.datasets import load_digits

from cilf import cli
from cilf.benchmark import read_grid

PAGES = (
    "benchmark.md", "interoperability.md", "own_data.md", "queries.md", "serving.md",
    "howto/cluster.md", "howto/encoder.md",
)  # fmt: skip
AFTER_DISCOVERY = ("howto/three_new_classes.md", "howto/too_many.md", "howto/undo.md")
FIRST_MODEL, FIRST_DISCOVERY = "start/first_model.md", "start/first_discovery.md"


def blocks(page: str, kinds: str) -> list[tuple[str, str]]:
    """The blocks of these kinds in a page: the kind, and the text."""
    text = (Path(__file__).parent / page).read_text(encoding="utf-8")
    return re.findall(rf"^```({kinds})\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    return [line for _, block in blocks(page, "sh") for line in block.splitlines() if line]


def files(page: str) -> dict[str, str]:
    """The TOML files of a page, each with its name in the first line."""
    found = [block for _, block in blocks(page, "toml")]
    return {block.partition("\n")[0].removeprefix("# "): block for block in found}


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in files(page).items():
        Path(name).write_text(text, encoding="utf-8")
    for command in commands(page):
        done(command, capsys)


def test_every_grid_of_a_page_can_be_read() -> None:
    for name, text in files("benchmark.md").items():
        Path(name).write_text(text, encoding="utf-8")
    assert len(read_grid("compare.toml").cells()) == 12
    cells = read_grid("weights.toml").cells()
    assert [cell.config.parameters["loss__lambda2"] for cell in cells] == [0.1, 1.0, 0.1, 1.0]


def done(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that works prints."""
    program, *arguments = shlex.split(command)
    assert program == "cilf"
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    printed = capsys.readouterr()
    assert left.value.code == 0, command + printed.err
    return printed.out


def test_the_tutorial_works_from_top_to_bottom(
    capsys: pytest.CaptureFixture[str], more_photos: Callable[[], None]
) -> None:
    said = []
    for kind, block in blocks("tutorial.md", "sh|csv"):
        lines = [line for line in block.splitlines() if line]
        if kind == "csv":
            fill_in(lines)
            continue
        for command in lines:
            if "--seen" in command:
                more_photos()
            said.append(done(command, capsys))
    told = "\n".join(said)
    assert "monday: of 60 instances" in told
    assert "new classes: striped" in told
    assert "tuesday: of 24 instances" in told
    assert "model: version 1 (before: 2), 2 classes" in told
    rows = list(csv.DictReader(Path("labels.csv").read_text().splitlines()))
    striped = [row["label"] == "striped" for row in rows]
    truth = [int(row["identity"][4:7]) % 3 == 2 for row in rows]
    assert sum(a == b for a, b in zip(striped, truth, strict=True)) >= 57


def fill_in(lines: list[str]) -> None:
    """Give the lines of a table in monday/ the names that these lines have."""
    wanted = list(csv.DictReader(lines))
    key = next(iter(wanted[0]))
    table = Path("monday") / {"cluster": "clusters.csv", "identity": "findings.csv"}[key]
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert rows[0].keys() == wanted[0].keys()
    names = {row[key]: row["name"] for row in wanted}
    assert names.keys() <= {row[key] for row in rows}
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows([row | {"name": names.get(row[key], "")} for row in rows])


@pytest.fixture(scope="module")
def first_discovery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything on the pages of the start was done, but for the update."""
    folder = tmp_path_factory.mktemp("start")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(examples(FIRST_MODEL), {})
        for command in (*commands(FIRST_MODEL), commands(FIRST_DISCOVERY)[0]):
            with pytest.raises(SystemExit) as left:
                cli.main(shlex.split(command)[1:])
            assert left.value.code == 0, command
        fill_in(next(text for _, text in blocks(FIRST_DISCOVERY, "csv")).splitlines())
    return folder


@pytest.fixture
def discovered(first_discovery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, in which a test runs."""
    folder = tmp_path / "start"
    shutil.copytree(first_discovery, folder)
    monkeypatch.chdir(folder)
    return folder


def examples(page: str) -> str:
    """The Python of a page, without prompts and results."""
    lines = "\n".join(text for _, text in blocks(page, "python")).splitlines()
    return "\n".join(line[4:] for line in lines if line.startswith((">>>", "...")))


def test_the_first_discovery_is_learned(
    discovered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, *rest = commands(FIRST_DISCOVERY)
    said = "\n".join(done(command, capsys) for command in rest)
    assert "new classes: six, seven, five" in said
    named = csv.DictReader((discovered / "labels.csv").read_text().splitlines())
    digits = load_digits().target
    names = ("zero", "one", "two", "three", "four", "five", "six", "seven")
    right = [names[digits[int(row["identity"][:4])]] == row["label"] for row in named]
    assert sum(right) >= 0.97 * len(right)


@pytest.mark.parametrize("page", AFTER_DISCOVERY)
def test_the_commands_after_a_discovery_work(
    page: str, discovered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in commands(page):
        done(command, capsys)
