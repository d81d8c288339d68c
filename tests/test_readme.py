"""What the README shows has to be there."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def test_pictures_and_pages_it_links_to_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert "docs/images/report.png" in links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the results into the pages."""
    path = ROOT / "benchmarks" / "readme_results.py"
    spec = importlib.util.spec_from_file_location("readme_results", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_numbers_are_those_of_the_records(script: ModuleType) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    part = script.make_readme_part()
    assert part in page
    assert script.make_readme(page) == page
    (ours,) = [line for line in part.splitlines() if line.startswith("| `cilf` |")]
    assert script.make_readme(page.replace(ours, ours.replace("0.", "1.", 1))) == page


def test_the_claims_are_those_of_the_records(script: ModuleType) -> None:
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert script.make_claims_part() in page


def test_the_profiles_are_those_of_the_record(script: ModuleType) -> None:
    page = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert script.make_benchmark(page) == page


def test_a_page_without_the_marks_is_refused(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="has no part 'results'"):
        script.make_readme("# A page")
