from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cilf.core.notices import forget
from cilf.data.columns import Feature, Roles, Table, choose_roles
from cilf.data.options import Options
from cilf.data.table_files import describe_features
from cilf.errors import BadConfig, BadInput


@pytest.fixture(autouse=True)
def _say_notices_again() -> None:
    forget()


def table(columns: dict[str, Any], described: Any = None, root: Path | None = None) -> Table:
    content = pa.table(columns)
    features = describe_features(described or {}, content.schema)
    return Table(
        "toy.csv",
        content.num_rows,
        features,
        lambda names: iter(content.select(list(names)).to_batches(max_chunksize=2)),
        root,
        {},
    )


def roles(columns: dict[str, Any], described: Any = None, **options: Any) -> Roles:
    return choose_roles(table(columns, described), Options(**options), labelled=True)


def refused(columns: dict[str, Any], described: Any = None, **options: Any) -> str:
    with pytest.raises((BadInput, BadConfig)) as caught:
        roles(columns, described, **options)
    return str(caught.value)


NUMBERS = {"a": [1.0, 2.0, 3.0], "b": [1, 2, 2]}


@pytest.mark.parametrize("name", ["label", "labels", "Class", "TARGET", "category", "y", " label"])
def test_usual_names_of_labels(name: str) -> None:
    assert roles(NUMBERS | {name: ["u", "v", "u"]}).label == name


def test_first_of_the_usual_names_wins() -> None:
    found = roles(NUMBERS | {"y": [1, 2, 2], "label": ["u", "v", "u"]})
    assert found.label == "label"
    assert found.content == ("a", "b", "y")


def test_label_that_is_asked_for() -> None:
    found = roles(NUMBERS | {"label": [0, 1, 0]}, label="b")
    assert (found.label, found.content) == ("b", ("a", "label"))


def test_unknown_label_names_the_nearest() -> None:
    message = refused(NUMBERS | {"species": ["u", "v", "u"]}, label="specie")
    assert message == (
        "unknown label column of toy.csv 'specie': did you mean 'species'? Known: a, b, species."
    )


def test_no_label_lists_the_columns() -> None:
    message = refused(NUMBERS)
    assert message == (
        "toy.csv has no column that looks like a label (it has 'a', 'b'): name it with label=... "
        "(--label on the command line)."
    )


def test_many_columns_are_listed_in_part() -> None:
    message = refused({f"f{i}": [0.5] for i in range(30)})
    assert "'f9', ... 20 more" in message
    assert "'f10'" not in message


LABELS = {"_type": "ClassLabel", "names": ["u", "v"]}


def test_one_described_label_beats_usual_names() -> None:
    found = roles(NUMBERS | {"y": [1, 2, 3], "kind": [0, 1, 0]}, {"kind": LABELS})
    assert found.label == "kind"


def test_fine_label_is_preferred() -> None:
    columns = {"coarse_label": [0, 1, 0], "fine_label": [1, 1, 0], "img": [b"", b"", b""]}
    described = {"coarse_label": LABELS, "fine_label": LABELS}
    assert roles(columns, described) == Roles(("img",), "image", "fine_label", None, None)


def test_several_described_labels_are_refused() -> None:
    message = refused(NUMBERS | {"p": [0, 1, 0], "q": [0, 1, 0]}, {"p": LABELS, "q": LABELS})
    assert "toy.csv has several label columns ('p', 'q'): name one with label=..." in message


def test_numbers_all_together() -> None:
    found = roles(NUMBERS | {"flag": [True, False, True], "label": ["u", "v", "u"]})
    assert (found.content, found.kind) == (("a", "b", "flag"), "number")


@pytest.mark.parametrize("name", ["id", "Index", "ROW", "", "Unnamed: 0", "__index_level_0__"])
def test_unique_ids_are_no_feature(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cilf"):
        found = roles(NUMBERS | {name: [7, 8, 9], "label": ["u", "v", "u"]})
    assert (found.identity, found.content) == (name, ("a", "b"))
    assert f"{name!r} names the rows, it is not part of the instances" in caplog.text


@pytest.mark.parametrize("values", [[7, 7, 9], [7, None, 9]])
def test_ids_that_do_not_tell_rows_apart_are_features(values: list[int | None]) -> None:
    found = roles(NUMBERS | {"id": values, "label": ["u", "v", "u"]})
    assert (found.identity, found.content) == (None, ("a", "b", "id"))


TEXT = {"label": [0, 1, 0], "body": ["p q", "r", "s"]}


def test_one_text() -> None:
    assert roles(TEXT | {"id": ["k", "l", "m"]}) == Roles(("body",), "text", "label", "id", None)


def test_several_texts_are_refused() -> None:
    message = refused(TEXT | {"title": ["x", "y", "z"]})
    assert message == (
        "toy.csv could be learned from in several ways (text in 'body', 'title'): name one column "
        "with column=... (--column on the command line)."
    )
    assert roles(TEXT | {"title": ["x", "y", "z"]}, column="title").content == ("title",)


def test_numbers_beside_a_text_are_refused() -> None:
    message = refused(TEXT | NUMBERS)
    assert "(text in 'body'; numbers in 'a', 'b')" in message
    assert "or remove the columns beside the numbers" in message
    assert roles(TEXT | NUMBERS, column="body").kind == "text"
    assert roles(TEXT | NUMBERS, column="a").content == ("a",)


def test_vectors() -> None:
    found = roles({"label": [0, 1], "embedding": [[1.0, 2.0], [3.0, 4.0]]})
    assert (found.content, found.kind) == (("embedding",), "vector")


def test_vectors_beside_a_text_are_refused() -> None:
    message = refused(TEXT | {"embedding": [[1.0], [2.0], [3.0]]})
    assert "(text in 'body'; lists in 'embedding')" in message


def test_images_beat_what_is_beside_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cilf"):
        found = roles(TEXT | {"picture": [b"1", b"2", b"3"]})
    assert (found.content, found.kind) == (("picture",), "image")
    assert "toy.csv: not used: 'body'." in caplog.text


def test_several_images_are_refused() -> None:
    message = refused({"label": [0, 1], "left": [b"1", b"2"], "right": [b"1", b"2"]})
    assert "toy.csv has several columns of images ('left', 'right'): name one" in message


def test_image_paths(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    columns = {"label": [0, 1], "file": ["missing.jpg", "a.png"], "width": [3, 4]}
    found = choose_roles(table(columns, root=tmp_path), Options(), labelled=True)
    assert (found.content, found.kind) == (("file",), "path")


def test_image_paths_that_lead_nowhere(tmp_path: Path) -> None:
    columns = {"label": [0, 1], "file": ["p.jpg", "q.jpg"]}
    with pytest.raises(
        BadInput, match=r"'file' names images, but .*p\.jpg is not there: paths are"
    ):
        choose_roles(table(columns, root=tmp_path), Options(), labelled=True)


def test_a_text_that_ends_like_a_path_is_a_text() -> None:
    assert roles({"label": [0, 1], "body": ["see a.png", "nothing"]}).kind == "text"


def test_nothing_to_learn_from() -> None:
    message = refused({"label": [0, 1], "when": pa.array([1, 2], pa.timestamp("s"))})
    assert "toy.csv has nothing to learn from (its columns are 'label', 'when')" in message


def test_unknown_column() -> None:
    assert "unknown column of toy.csv 'bodi': did you mean 'body'?" in refused(TEXT, column="bodi")


def test_column_that_cannot_be_learned_from() -> None:
    columns = TEXT | {"when": pa.array([1, 2, 3], pa.timestamp("s"))}
    assert "column 'when' holds no image, text or numbers" in refused(columns, column="when")
    assert "column and label are both 'label'" in refused(columns, column="label")


@pytest.mark.parametrize("name", ["split", "Part"])
def test_split_column(name: str) -> None:
    found = roles(NUMBERS | {"label": [0, 1, 0], name: ["Train", "test", "validation"]})
    assert found.split == name


def test_split_column_of_another_meaning_is_a_text() -> None:
    found = roles({"label": [0, 1], "part": ["engine", "wheel"]})
    assert (found.split, found.content) == (None, ("part",))


def test_unlabelled_use_passes_over_the_label() -> None:
    labelled = NUMBERS | {"label": ["u", "v", "u"]}
    assert choose_roles(table(labelled), Options(), labelled=False).content == ("a", "b")
    assert choose_roles(table(NUMBERS), Options(label="b"), labelled=False).content == ("a",)
    assert choose_roles(table(NUMBERS), Options(label="species"), labelled=False).label is None


def test_no_rows() -> None:
    with pytest.raises(BadInput, match=r"toy.csv holds no rows: give a table with at least one\."):
        table({"a": pa.array([], pa.int64())})


def test_kinds_by_arrow_type() -> None:
    columns = {
        "text": pa.array(["a"], pa.large_string()),
        "category": pa.array(["a"]).dictionary_encode(),
        "number": pa.array([1], pa.uint8()),
        "flag": pa.array([True]),
        "vector": pa.array([[1, 2]], pa.list_(pa.int8(), 2)),
        "names": pa.array([["a"]]),
        "image": pa.array([{"bytes": b"1", "path": None}]),
        "raw": pa.array([b"1"]),
        "pair": pa.array([{"x": 1, "y": 2}]),
        "when": pa.array([1], pa.date32()),
        "empty": pa.array([None]),
    }
    kinds = {name: feature.kind for name, feature in table(columns).features.items()}
    assert kinds == {
        "text": "text",
        "category": "text",
        "number": "number",
        "flag": "number",
        "vector": "vector",
        "names": "other",
        "image": "image",
        "raw": "image",
        "pair": "other",
        "when": "other",
        "empty": "other",
    }


def test_very_many_columns_of_numbers() -> None:
    """It takes minutes if each name is compared with each other."""
    names = tuple(f"column {number}" for number in range(100_000))
    features = {"y": Feature("text")} | dict.fromkeys(names, Feature("number"))
    wide = Table("wide.csv", 1, features, lambda columns: iter(()), None, {})
    assert choose_roles(wide, Options(), labelled=True).content == names
