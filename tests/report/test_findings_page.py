from __future__ import annotations

from html.parser import HTMLParser

import pytest

from cilf.report.findings_page import ClusterMembers, FindingsPage, Member
from cilf.report.unusual_values import UnusualValue

EVIL = "<script>alert(1)</script>\"'&"


class Tags(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def page(form: str, *members: Member, name: str = "") -> Tags:
    clusters = [ClusterMembers(1, name, "ant", members)] if members else []
    return Tags(FindingsPage("monday", "new", form, 9, {"ant": 7}, clusters).render())


@pytest.mark.parametrize(
    ("form", "member"),
    [
        ("texts", Member(EVIL, EVIL, 0.1, text=EVIL)),
        ("images", Member(EVIL, EVIL, 0.1, picture="pictures/000001.png")),
        ("numbers", Member(EVIL, EVIL, 0.1, values=[UnusualValue(EVIL, 9.0, 5.0, 0.0, 1.0)])),
    ],
)
def test_everything_is_escaped_and_nothing_is_loaded(form: str, member: Member) -> None:
    found = page(form, member, name=EVIL)
    assert "script" not in found.tags
    assert EVIL in found.text
    assert not [link for link in found.links if "://" in link]


def test_pictures_are_loaded_as_they_come_into_view() -> None:
    members = [Member(f"{i}.png", "ant", 0.1, picture=f"pictures/{i}.png") for i in range(50)]
    found = page("images", *members)
    assert found.tags.count("img") == 50
    rendered = FindingsPage("m", "new", "images", 50, {}, [ClusterMembers(1, "", "ant", members)])
    assert rendered.render().count('loading="lazy"') == 50


def test_columns_that_are_unusual_in_most_members_are_named() -> None:
    far = UnusualValue("size", 9.0, 5.0, 0.0, 1.0)
    low = UnusualValue("weight", -9.0, 99.0, 0.0, 1.0)
    found = page("numbers", Member("a", "ant", 0.1, values=[far]), Member("b", "bee", 0.1,
                 values=[low, far]))  # fmt: skip
    words = " ".join(found.text.split())
    assert "Unusual in size (2 of 2), weight (1 of 2)." in words
    assert "9 usual 0 to 1, 5.0 spreads above" in words
    assert "-9 usual 0 to 1, far below" in words
    assert "like bee" in words


def test_nothing_novel_is_said_to_be_so() -> None:
    assert "none is novel" in " ".join(page("images").text.split())
