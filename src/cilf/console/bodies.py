"""What requests hold, checked before anything is done with it. Groups are counted from 1 here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from cilf.query import STRATEGIES

LARGEST = 2**31 - 1  # that a column of the store holds


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("give characters that can be seen")
    return text


Number = Annotated[int, Field(ge=1, le=LARGEST)]
Row = Annotated[int, Field(ge=0, le=LARGEST)]
Version = Annotated[int | None, Field(ge=0, le=LARGEST)]
Text = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Budget = Annotated[int, Field(ge=0, le=1_000_000)]
Strategy = Annotated[
    str,
    Field(pattern=f"^({'|'.join(STRATEGIES)})$", json_schema_extra={"enum": [*STRATEGIES]}),
]
Format = Literal["csv", "jsonl", "label-studio"]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Who(Body):
    """Who asks, and the version that they have seen.

    A change of something that others have changed since that version is refused (409).
    """

    version: Version = None
    person: Annotated[str, Field(max_length=100), AfterValidator(_printable)] = ""

    @property
    def who(self) -> dict[str, int | str | None]:
        return {"version": self.version, "person": self.person}


class Groups(Who):
    groups: Annotated[list[Number], Field(min_length=1, max_length=10_000)]

    @property
    def numbers(self) -> list[int]:
        return [number - 1 for number in self.groups]


class Naming(Groups):
    name: Name


class Splitting(Who):
    group: Number
    rows: Annotated[list[Row], Field(max_length=1_000_000)] = []
    parts: Annotated[int, Field(ge=2, le=20)] = 2


class Moving(Who):
    rows: Annotated[list[Row], Field(min_length=1, max_length=1_000_000)]
    to: Number | Literal["new", "known"]


class Labelling(Who):
    rows: Annotated[list[Row], Field(min_length=1, max_length=1_000_000)]
    name: Name


class Undoing(Who):
    event: Annotated[int | None, Field(ge=1, le=LARGEST)] = None


class Learning(Who):
    force: bool = False


class Renaming(Who):
    old: Name
    new: Name


class NewWindow(Body):
    path: Annotated[Text, Field(min_length=1)]
    name: Text = ""
    budget: Budget = 50


class Budgeting(Body):
    budget: Budget


class Fitting(Body):
    data: Annotated[Text, Field(min_length=1)]
    learner: Text = "cilf"
    note: Text = ""


class GoingBack(Body):
    version: Number


# ----------------------------------------------------------------- answers


class Problem(BaseModel):
    detail: str


class Happened(BaseModel):
    event: int
    verb: str
    about: dict[str, object]
    person: str
    time: str
    undoes: int | None
    undone: bool = False


class Changed(BaseModel):
    """A change that is on disk."""

    version: int
    event: Happened


class ConflictProblem(Problem):
    version: int
    happened: list[Happened]


class JobStarted(BaseModel):
    job: int | None
