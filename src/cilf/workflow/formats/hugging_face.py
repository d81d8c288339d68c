"""A folder that ``datasets.load_dataset`` opens: a parquet file with instances and labels."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from cilf.core.extras import optional
from cilf.errors import BadInput
from cilf.workflow.formats.contents import EVERYTHING, IMAGES, Entry, Export, Format

PURPOSE = "a data set of Hugging Face"
CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*.parquet
---

# {name}

{n} instances, as {version} of a cilf model found them. `label` is the class that a person has
assigned, `predicted` the known class that the model predicts, and `cluster` the number of a group
of novel instances. An empty cell is none.
"""


def _datasets() -> Any:
    return optional("datasets", extra="data", purpose=PURPOSE)


def _write(export: Export) -> dict[str, bytes]:
    datasets, rows = _datasets(), export.rows
    text, number = datasets.Value("string"), datasets.Value("float32")
    columns: dict[str, tuple[Any, list[Any]]] = {
        "identity": (text, [row.identity for row in rows]),
        "label": (text, [row.label or None for row in rows]),
        "predicted": (text, [row.predicted or None for row in rows]),
        "cluster": (datasets.Value("int32"), [row.cluster for row in rows]),
        "novelty": (number, [row.novelty for row in rows]),
    }
    if any(row.embedding for row in rows):
        columns["embedding"] = (datasets.List(number), [list(row.embedding) for row in rows])
    if export.form == IMAGES:
        encoded = [
            {"bytes": export.pictures[row.image](), "path": row.image} if row.image else None
            for row in rows
        ]
        columns["image"] = (datasets.Image(), encoded)
    else:
        columns["text"] = (text, [row.text for row in rows])
    features = datasets.Features({name: feature for name, (feature, _) in columns.items()})
    made = datasets.Dataset.from_dict(
        {name: values for name, (_, values) in columns.items()}, features=features
    )
    content = io.BytesIO()
    made.to_parquet(content)
    card = CARD.format(name=export.name, n=len(rows), version=export.model_version)
    return {HUGGING_FACE.file: content.getvalue(), "README.md": card.encode()}


def _parse(content: bytes) -> Iterator[Entry]:
    arrow: Any = optional("pyarrow", extra="data", purpose=PURPOSE)
    parquet: Any = optional("pyarrow.parquet", extra="data", purpose=PURPOSE)
    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        missing = {"identity", "label"} - set(file.schema_arrow.names)
        if missing:
            raise BadInput(f"the file lacks the column {min(missing)!r}: add it.")
        table = file.read(columns=["identity", "label"])
    except (arrow.ArrowException, OSError) as error:
        raise BadInput("the file is no parquet file: export it again.") from error
    pairs = zip(table["identity"].to_pylist(), table["label"].to_pylist(), strict=True)
    for number, (identity, label) in enumerate(pairs, start=1):
        if label:
            yield Entry(f"row {number}", str(label), str(identity))


HUGGING_FACE = Format(
    "Hugging Face data set", "data/train-00000-of-00001.parquet", _write, _parse, EVERYTHING,
    media_type="application/vnd.apache.parquet", embeds_pictures=True,
)  # fmt: skip
