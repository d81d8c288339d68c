"""Request and response bodies of the REST interface. Clusters are counted from 1 here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from cilf.console.import_export import OFFERED
from cilf.console.member_order import FILTERS, SORTS
from cilf.console.state import KNOWN
from cilf.query import STRATEGIES

LARGEST = 2**31 - 1  # that a column of the store holds


def _require_printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("give printable characters only")
    return text


def _key_of(table: Mapping[str, object]) -> Any:
    """The type of the names in a table."""

    def require_key(name: str) -> str:
        if name not in table:
            raise ValueError(f"choose one of {', '.join(table)}")
        return name

    schema = WithJsonSchema({"type": "string", "enum": list(table)})
    return Annotated[str, AfterValidator(require_key), schema]


Number = Annotated[int, Field(ge=1, le=LARGEST)]
Row = Annotated[int, Field(ge=0, le=LARGEST)]
Version = Annotated[int | None, Field(ge=0, le=LARGEST)]
Text = Annotated[str, Field(max_length=1000), AfterValidator(_require_printable)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_require_printable)]
Person = Annotated[str, Field(max_length=100), AfterValidator(_require_printable)]
Budget = Annotated[int, Field(ge=0, le=1_000_000)]
Strategy = _key_of(STRATEGIES)
Sort = _key_of(SORTS)
Only = _key_of(FILTERS)
AuditFormat = Literal["csv", "jsonl"]
Format = _key_of(OFFERED)


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EditBody(Body):
    """A change by a person.

    It is refused (409) if somebody else has changed the same thing after ``version``.
    """

    version: Version = None
    person: Person = ""


# ----------------------------------------------------------------- verbs


class VerbBody(EditBody):
    """The clusters or instances that a verb changes."""

    @property
    def numbers(self) -> list[int]:
        """The clusters that the verb is about, counted from 0."""
        return []

    @property
    def instances(self) -> list[int]:
        """The rows that the verb is about."""
        return []

    @property
    def about(self) -> dict[str, Any]:
        """The fields for the history, with the number of rows instead of the rows."""
        fields = self.model_dump(exclude={"version", "person", "rows"})
        return fields | ({"n": len(set(self.instances))} if self.instances else {})


class ClustersBody(VerbBody):
    clusters: Annotated[list[Number], Field(min_length=1, max_length=10_000)]

    @property
    def numbers(self) -> list[int]:
        return [number - 1 for number in self.clusters]


class NameBody(ClustersBody):
    name: Name


class AssignBody(ClustersBody):
    assignee: Person = ""


class SplitBody(VerbBody):
    """The rows that leave a cluster; without rows, k-means splits it into ``n_clusters``."""

    cluster: Number
    rows: Annotated[list[Row], Field(max_length=1_000_000)] = []
    n_clusters: Annotated[int, Field(ge=2, le=20)] = 2

    @property
    def numbers(self) -> list[int]:
        return [self.cluster - 1]


class RowsBody(VerbBody):
    rows: Annotated[list[Row], Field(min_length=1, max_length=1_000_000)]

    @property
    def instances(self) -> list[int]:
        return self.rows


class MoveBody(RowsBody):
    to: Number | Literal["new", "known"]

    @property
    def numbers(self) -> list[int]:
        return [self.to - 1] if isinstance(self.to, int) else []

    @property
    def target(self) -> int | None:
        """The cluster counted from 0; None is a new one."""
        return {"new": None, "known": KNOWN}[self.to] if isinstance(self.to, str) else self.to - 1


class LabelBody(RowsBody):
    name: Name


# ----------------------------------------------------------------- other requests


class LikelyBody(Body):
    """Instances, or the members of clusters, to find likely classes for."""

    rows: Annotated[list[Row], Field(max_length=1_000_000)] = []
    clusters: Annotated[list[Number], Field(max_length=10_000)] = []

    @property
    def numbers(self) -> list[int]:
        return [number - 1 for number in self.clusters]


class PresenceBody(Body):
    """What a page shows; ``page`` is a random name that it keeps."""

    page: Annotated[str, Field(min_length=8, max_length=64), AfterValidator(_require_printable)]
    person: Person = ""
    cluster: Number | None = None


class UndoBody(EditBody):
    event: Annotated[int | None, Field(ge=1, le=LARGEST)] = None


class UpdateBody(EditBody):
    force: bool = False


class RenameBody(EditBody):
    old: Name
    new: Name


class ClassBody(Body):
    """A class of the model.

    The request is refused (409) if the model is not at ``model_version`` any more.
    """

    name: Name
    model_version: Version = None
    person: Person = ""


class MergeClassBody(ClassBody):
    into: Name


class WindowBody(Body):
    path: Annotated[Text, Field(min_length=1)]
    name: Text = ""
    budget: Budget = 50


class WindowNameBody(Body):
    """A new name of a window. It is refused (409) if the window is not called ``seen`` any more."""

    name: Annotated[Text, Field(min_length=1, max_length=200)]
    seen: Text | None = None


class ArchiveBody(Body):
    archived: bool


class DeleteBody(Body):
    """It is refused (409) if the window is not called ``seen`` any more."""

    seen: Text | None = None


class BudgetBody(Body):
    budget: Budget


class FitOptions(Body):
    """The options of a fit. Empty texts are the defaults."""

    learner: Text = "cilf"
    backbone: Text = ""
    seed: Annotated[int, Field(ge=0, le=LARGEST)] = 0
    label: Text = ""
    column: Text = ""
    skip_bad: bool = False
    note: Text = ""


class FitBody(FitOptions):
    data: Annotated[Text, Field(min_length=1)]


class FitForm(FitOptions):
    """The options of a fit in a form that also has files."""

    model_config = ConfigDict(extra="ignore")


class RollbackBody(Body):
    version: Number


# ----------------------------------------------------------------- responses


class Problem(BaseModel):
    detail: str


class EventResponse(BaseModel):
    event: int
    verb: str
    about: dict[str, object]
    person: str
    time: str
    undoes: int | None
    undone: bool = False


class ChangeResponse(BaseModel):
    """A change that is on disk."""

    version: int
    event: EventResponse


class ConflictProblem(Problem):
    version: int
    events: list[EventResponse]


class JobResponse(BaseModel):
    job: int | None
