"""What a release is made of agrees: versions, supported Pythons, pins, workflows."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import cilf

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
    return found


def supported_pythons() -> list[str]:
    start = "Programming Language :: Python :: 3."
    return [each.rpartition(" ")[2] for each in project()["classifiers"] if each.startswith(start)]


def pins() -> dict[str, Version]:
    lines = [line for line in read("constraints.txt").splitlines() if not line.startswith("#")]
    pairs = (line.split("==") for line in lines)
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def test_one_version_everywhere() -> None:
    version = project()["version"]
    citation = yaml.safe_load(read("CITATION.cff"))
    heading = re.search(r"^## \[(.+)\] - (.+)$", read("CHANGELOG.md"), re.MULTILINE)
    assert heading is not None
    assert cilf.__version__ == metadata.version("cilf") == version
    assert (citation["version"], citation["date-released"]) == heading.groups()
    assert heading[1] == version
    assert f"image: cilf:{version}" in read("compose.yaml")
    assert f"cilf-{version}-py3-none-any.whl" in read("README.md")


def test_the_workflow_tests_every_supported_python() -> None:
    jobs = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]
    assert jobs["whole"]["strategy"]["matrix"]["python"] == supported_pythons()
    assert project()["requires-python"] == f">={supported_pythons()[0]}"
    assert jobs["floors"]["steps"][1]["with"]["python-version"] == supported_pythons()[0]
    for each in supported_pythons():
        assert each in read("docs/versions.md")


def test_the_floors_are_those_of_the_page() -> None:
    for line in project()["dependencies"]:
        require = Requirement(line)
        (floor,) = [each.version for each in require.specifier]
        row = re.search(rf"^\| {require.name} \| ([\d.]+) ", read("docs/versions.md"), re.MULTILINE)
        assert row is not None, require.name
        assert row[1] == floor


def test_the_pins_lie_within_the_ranges() -> None:
    groups = [project()["dependencies"], *project()["optional-dependencies"].values()]
    known = pins()
    for line in (line for group in groups for line in group):
        require = Requirement(line)
        if require.name != "cilf":
            assert known[canonicalize_name(require.name)] in require.specifier, line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_says_that_it_has_not_run_and_has_few_rights(path: Path) -> None:
    assert "Not run yet" in path.read_text(encoding="utf-8").splitlines()[0]
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for command in (step["run"] for step in job.get("steps", ()) if "run" in step):
            for target in re.findall(r"^make (\w+)", command, re.MULTILINE):
                assert re.search(rf"^{target}:", read("Makefile"), re.MULTILINE)


def test_only_the_publishing_job_may_publish_and_has_no_password() -> None:
    publish = yaml.safe_load(read(".github/workflows/publish.yml"))["jobs"]
    with_token = [n for n, job in publish.items() if "id-token" in job.get("permissions", {})]
    assert with_token == ["pypi"]
    assert "secrets." not in read(".github/workflows/publish.yml")
    assert publish["pypi"]["needs"] == "build"
    assert publish["build"]["needs"] == "test"


def test_pre_commit_is_make_lint() -> None:
    (repo,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    (hook,) = repo["hooks"]
    assert hook["entry"] == "make lint"
    assert hook["always_run"]
    assert not hook["pass_filenames"]


def test_issue_forms_have_fields_with_names_of_their_own() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    read_forms = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in forms]
    for form in (form for form in read_forms if "body" in form):
        names = [field["id"] for field in form["body"]]
        assert len(names) == len(set(names))
        assert all(field["attributes"]["label"] for field in form["body"])
