"""A page with the members of every cluster of some findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cilf.core.extras import optional
from cilf.report.unusual_values import MOST_UNUSUAL, UnusualValue

MOST_COMMON = 5  # columns that are listed for a cluster


@dataclass(frozen=True)
class Member:
    """A member of a cluster, as the page shows it.

    Attributes:
        id: the identity.
        nearest: the known class that it is nearest to.
        novelty_p: the p-value of the instance alone.
        picture: the path of its picture, relative to the page; "" if it is no image.
        text: its text; "" if it is none.
        values: its unusual values, if it is a row of numbers.
    """

    id: str
    nearest: str
    novelty_p: float
    picture: str = ""
    text: str = ""
    values: Sequence[UnusualValue] = ()


@dataclass(frozen=True)
class ClusterMembers:
    """A cluster on the page.

    Attributes:
        number: the number of the cluster, from 1.
        name: the name that a person gave it; "" if there is none.
        nearest: the known class that most members are nearest to.
        members: the members that are shown.
        size: the number of its members; None if all are shown.
    """

    number: int
    name: str
    nearest: str
    members: Sequence[Member]
    size: int | None = None

    @property
    def n_members(self) -> int:
        """The number of its members, shown or not."""
        return len(self.members) if self.size is None else self.size

    @property
    def common_columns(self) -> list[tuple[str, int]]:
        """The columns that are unusual in most members, and in how many."""
        columns = (value.column for member in self.members for value in member.values)
        return Counter(columns).most_common(MOST_COMMON)


@dataclass(frozen=True)
class FindingsPage:
    """The content of the page.

    Attributes:
        title: the name of the findings.
        data: the data that were looked at.
        form: "images", "texts" or "numbers".
        n_instances: the number of instances.
        known: the number of instances of each known class.
        clusters: the clusters.
    """

    title: str
    data: str
    form: str
    n_instances: int
    known: Mapping[str, int]
    clusters: Sequence[ClusterMembers] = field(default_factory=list)

    def render(self) -> str:
        """Render the page as HTML. It has no scripts, and loads nothing but its own pictures."""
        jinja2 = optional("jinja2", extra="report", purpose="a page of findings")
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("cilf.report"), autoescape=True,
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        environment.filters |= {"number": format_value, "distance": format_distance}
        rendered: str = environment.get_template("findings.html.j2").render(page=self)
        return rendered


def format_value(value: float) -> str:
    """
    >>> format_value(1234.5678), format_value(3.0)
    ('1235', '3')
    """
    return f"{value:.4g}"


def format_distance(value: UnusualValue) -> str:
    """
    >>> format_distance(UnusualValue("size", 9.0, 7.25, 0.0, 2.0))
    '7.2 spreads above'
    """
    side = "above" if value.value > value.high else "below"
    if value.distance >= MOST_UNUSUAL:
        return f"far {side}"
    return f"{value.distance:.1f} spreads {side}"
