"""Elements of SVG that escape what they hold, and the shapes that stand for classes."""

from __future__ import annotations

import html
import math


class Svg(str):
    """Finished markup; templates print it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def element(name: str, *children: str, **attributes: str | float) -> Svg:
    """An element; ``class_`` is ``class``, other underscores become hyphens.

    >>> element("text", "a < b", class_="label", text_anchor="middle", x=1.0)
    '<text class="label" text-anchor="middle" x="1">a &lt; b</text>'
    """
    pairs = "".join(
        f' {_attribute(key)}="{html.escape(_value(value))}"' for key, value in attributes.items()
    )
    inside = "".join(c if isinstance(c, Svg) else html.escape(c, quote=False) for c in children)
    return Svg(f"<{name}{pairs}>{inside}</{name}>")


def group(*children: str, **attributes: str | float) -> Svg:
    return element("g", *children, **attributes)


def label(text: str, x: float, y: float, **attributes: str | float) -> Svg:
    """Text centred at x."""
    return element("text", text, x=x, y=y, **({"text_anchor": "middle"} | attributes))


def line(x1: float, y1: float, x2: float, y2: float, **attributes: str | float) -> Svg:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def image(*children: str, width: float, height: float, title: str) -> Svg:
    """A whole image that scales with the page until its text is as small as can be read."""
    return element(
        "svg", *children, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=title,
        style=f"--w:{width:g}",
    )  # fmt: skip


def closed_path(points: list[tuple[float, float]]) -> str:
    """The path through the points and back.

    >>> closed_path([(0, 0), (1.25, 0), (0, 2)])
    'M0 0L1.2 0L0 2Z'
    """
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points) + "Z"


def regular_polygon(x: float, y: float, radius: float, corners: int, turn: float = 0.0) -> str:
    """The path of a regular polygon, one corner up unless turned (in turns)."""
    angles = [2 * math.pi * (i / corners + turn - 0.25) for i in range(corners)]
    return closed_path([(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles])


def _attribute(key: str) -> str:
    return key if key == "viewBox" else key.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return f"{round(value, 1):g}"
