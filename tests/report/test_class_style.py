from __future__ import annotations

from cilf.report.class_style import COLOURS, SHAPES, assign_styles


def test_styles_differ_until_every_colour_has_every_shape() -> None:
    many = assign_styles([str(i) for i in range(COLOURS * SHAPES)])
    assert len(set(many.values())) == COLOURS * SHAPES
