from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from cilf.console.bodies import MoveBody, NameBody, SplitBody, Strategy
from cilf.console.state import KNOWN
from cilf.query import STRATEGIES


def test_clusters_count_from_1_in_requests_and_from_0_inside() -> None:
    assert NameBody(clusters=[1, 3], name="cow").numbers == [0, 2]
    assert SplitBody(cluster=2).numbers == [1]
    targets: list[tuple[Any, Any, list[int]]] = [
        (4, 3, [3]),
        ("new", None, []),
        ("known", KNOWN, []),
    ]
    for to, target, numbers in targets:
        body = MoveBody(rows=[7], to=to)
        assert (body.target, body.numbers, body.instances) == (target, numbers, [7])


@pytest.mark.parametrize("to", [0, "elsewhere", None])
def test_targets_that_are_refused(to: Any) -> None:
    with pytest.raises(ValidationError):
        MoveBody(rows=[7], to=to)


def test_strategies_are_those_of_the_table() -> None:
    adapter: TypeAdapter[str] = TypeAdapter(Strategy)
    assert [adapter.validate_python(name) for name in STRATEGIES] == list(STRATEGIES)
    assert adapter.json_schema()["enum"] == list(STRATEGIES)
    with pytest.raises(ValidationError, match="choose one of"):
        adapter.validate_python("nonsense")
