"""Data sets of FiftyOne: ``metadata.json``, ``samples.json`` and the images in ``data``.

FiftyOne opens the folder as a ``LegacyFiftyOneDataset``, the form of its folders whose documents
name no version of its data base.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from cilf.workflow.formats import json_values
from cilf.workflow.formats.contents import (
    EVERYTHING,
    IMAGES,
    Entry,
    Export,
    Format,
    LabelRow,
    place_in,
)

ABOUT = "metadata.json"
TRUTH, PREDICTED = "ground_truth", "predictions"  # fields with a Classification


def _write(export: Export) -> dict[str, bytes]:
    about = {
        "name": export.name,
        "media_type": "image",
        "info": {"model": export.model_version, "classes": export.classes},
    }
    samples = [_to_sample(row) for row in export.rows]
    return {
        ABOUT: json_values.encode(about),
        FIFTYONE.file: json_values.encode({"samples": samples}),
    }


def _to_sample(row: LabelRow) -> dict[str, Any]:
    width, height = row.size
    sample: dict[str, Any] = {
        "filepath": row.image,
        "tags": ["novel" if row.cluster is not None else "known"],
        "metadata": {"_cls": "ImageMetadata", "width": width, "height": height},
        "identity": row.identity,
        "cluster": row.cluster,
        "novelty": row.novelty,
        TRUTH: _classify(row.label),
        PREDICTED: _classify(row.predicted),
    }
    return sample | ({"embedding": list(row.embedding)} if row.embedding else {})


def _classify(label: str) -> dict[str, Any] | None:
    return {"_cls": "Classification", "label": label} if label else None


def _parse(content: bytes) -> Iterator[Entry]:
    document = json_values.parse(json_values.decode(content), "the file")
    for number, sample in enumerate(json_values.sequence(document.get("samples")), start=1):
        where, found = f"sample {number}", json_values.mapping(sample)
        label = json_values.mapping(found.get(TRUTH)).get("label")
        if not label:
            continue
        identity = json_values.text_of(found, "identity", where, default="")
        file = PurePosixPath(json_values.text_of(found, "filepath", where, default="")).name
        yield Entry(where, str(label), identity, file)


FIFTYONE = Format(
    "FiftyOne data set", "samples.json", _write, _parse, EVERYTHING, forms=(IMAGES,),
    place=place_in("data"),
    is_own=lambda document: "samples" in json_values.mapping(document),
)  # fmt: skip
