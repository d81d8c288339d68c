"""The style of a class everywhere in a report: one colour and one shape, by order of arrival.

There are eight colours that people with any colour vision tell apart (after Okabe and Ito) and
five shapes. The style sheet holds a light and a dark value of each colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cilf.report.svg import Svg, element, regular_polygon

COLOURS = 8
_POLYGONS = {1: (4, 0.125, 1.2), 2: (3, 0.0, 1.35), 3: (4, 0.0, 1.3), 4: (6, 0.0, 1.15)}
SHAPES = 1 + len(_POLYGONS)  # shape 0 is the circle


@dataclass(frozen=True)
class ClassStyle:
    """The colour and the shape of a class."""

    colour: int
    shape: int

    def plot(self, x: float, y: float, radius: float, *children: str, class_: str = "") -> Svg:
        """Return the shape as SVG; all shapes have about the same area."""
        names = f"k{self.colour} {class_}".strip()
        if self.shape == 0:
            return element("circle", *children, class_=names, cx=x, cy=y, r=radius)
        corners, turn, factor = _POLYGONS[self.shape]
        path = regular_polygon(x, y, radius * factor, corners, turn)
        return element("path", *children, class_=names, d=path)

    def legend_key(self, novel: bool = False) -> Svg:
        """Return the shape alone, for a legend."""
        shape = self.plot(8, 8, 5, class_="novel" if novel else "known")
        return element("svg", shape, class_="key", viewBox="0 0 16 16", aria_hidden="true")


def assign_styles(classes: Sequence[str]) -> dict[str, ClassStyle]:
    """Give each class a style: the first eight differ in colour, the next eight in shape too.

    >>> assign_styles(["cat", "dog"])["dog"]
    ClassStyle(colour=1, shape=0)
    """
    return {
        name: ClassStyle(index % COLOURS, index // COLOURS % SHAPES)
        for index, name in enumerate(classes)
    }
