from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from cilf.errors import BadInput
from cilf.workflow import Findings, export_findings, read_labels

pytest.importorskip("PIL")


def test_tags_say_who_gave_them(pictures: Findings, tmp_path: Path) -> None:
    export_findings(pictures.path, tmp_path / "out", to="cvat")
    root = ElementTree.parse(tmp_path / "out/annotations.xml").getroot()
    assert root.findtext("version") == "1.1"
    labels = [label.findtext("name") for label in root.iterfind("meta/task/labels/label")]
    assert labels == sorted(["=cow", "Hühner/Küken", "known, but wrong", "hen", "cat", "dog & co"])
    images = list(root.iterfind("image"))
    assert all((tmp_path / "out/images" / image.attrib["name"]).is_file() for image in images)
    tags = [(image.find("tag") is not None and image.find("tag").attrib) for image in images]  # type: ignore[union-attr]
    assert tags[0] == {"label": "=cow", "source": "manual"}
    assert tags[4] == {"label": "cat", "source": "auto"}
    assert tags[6] is False
    assert (images[2].attrib["width"], images[2].attrib["height"]) == ("30", "40")


def test_tags_that_were_set_there(pictures: Findings, tmp_path: Path) -> None:
    export_findings(pictures.path, tmp_path / "out", to="cvat")
    tree = ElementTree.parse(tmp_path / "out/annotations.xml")
    image = list(tree.getroot().iterfind("image"))[6]
    ElementTree.SubElement(image, "tag", {"label": "mouse", "source": "manual"})
    image.set("name", f"some folder/{image.attrib['name']}")
    tree.write(tmp_path / "mine.xml", encoding="utf-8", xml_declaration=True)
    labels = read_labels(tmp_path / "mine.xml", pictures.path)[1]
    assert labels == read_labels(pictures.path)[1] | {"sub/pic 5.png": "mouse"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("<annotations><image></annotations>", "is not XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><annotations/>', "has declarations"),
        ("<annotations/>", "names nothing"),
    ],
)
def test_files_that_are_not_ours(
    content: str, why: str, pictures: Findings, tmp_path: Path
) -> None:
    (tmp_path / "a.xml").write_text(content)
    with pytest.raises(BadInput, match=why):
        read_labels(tmp_path / "a.xml", pictures.path)
