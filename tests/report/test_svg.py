from __future__ import annotations

from cilf.report.svg import closed_path, element, image, regular_polygon


def test_elements_escape_text_and_attributes() -> None:
    assert element("t", "<&", a='"') == '<t a="&quot;">&lt;&amp;</t>'
    assert element("g", element("t")) == "<g><t></t></g>"


def test_an_image_has_a_title_for_those_who_cannot_see_it() -> None:
    whole = image(element("g"), width=20, height=10.5, title="a & b")
    assert whole.startswith('<svg viewBox="0 0 20 10.5" role="img" aria-label="a &amp; b"')


def test_polygons_are_closed_paths() -> None:
    assert closed_path([(0, 0), (1, 0), (0, 2)]) == "M0 0L1 0L0 2Z"
    assert regular_polygon(0, 0, 10, corners=4) == "M0 -10L10 0L0 10L-10 0Z"
