"""What the README shows has to be there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_pictures_and_pages_it_links_to_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert "docs/images/report.png" in links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_its_results_are_those_of_the_record() -> None:
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    record = (ROOT / "benchmarks" / "results" / "digits.md").read_text(encoding="utf-8")
    for line in record.splitlines()[4:]:
        stream, learner, na = (cell.strip() for cell in line.split("|")[1:4])
        row = next(r for r in shown.splitlines() if r.startswith(f"| {stream} | {learner} |"))
        assert na.split(" ± ")[0] in row
