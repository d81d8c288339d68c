"""Detect what is known and what is novel in new data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cilf.core import Detection, validation
from cilf.data import Instances
from cilf.errors import BadInput
from cilf.report.unusual_values import KnownValues, summarize_known
from cilf.workflow.findings import Findings
from cilf.workflow.findings_writer import escape_ids, hold_findings, write_findings
from cilf.workflow.input_data import read_with
from cilf.workflow.prediction import name_sources, settle_novelty
from cilf.workflow.row_engines import HERE, AnyInstances, EngineChoice, bring_here, select_instances
from cilf.workflow.versions import LoadedModel, load_model

if TYPE_CHECKING:
    from cilf.learners import Learner


def detect(
    model: str | Path,
    data: str | Path,
    out: str | Path,
    *,
    n_novel: int | None = None,
    column: str | None = None,
    skip_bad: bool = False,
    seen: Sequence[str | Path] = (),
    overwrite: bool = False,
    page: bool = True,
    engine: EngineChoice = HERE,
) -> Findings:
    """Detect what is known and what is novel in some data, and write the findings to a folder.

    An instance whose label a person has given is of that class, whatever the model predicts.

    Args:
        model: a model folder.
        data: a folder of images or a table.
        out: the findings folder.
        n_novel: the number of novel classes; estimated if None.
        column: the column that holds the text or the image; found by its content if None.
        skip_bad: leave out instances that cannot be read instead of refusing the data.
        seen: earlier findings, whose instances are left out.
        overwrite: replace the findings that ``out`` holds.
        page: write a page with every member of every cluster, ``index.html``.
        engine: where the instances are read, embedded and assigned.
    """
    place = Path(out)
    _require_room(place, overwrite)  # before anything slow; and again, when nobody else writes
    if n_novel is not None:
        validation.whole_number("n_novel", n_novel, least=0)
    loaded = load_model(model)
    earlier = [Findings.open(path) for path in seen]
    with hold_findings(place), engine.open() as rows:
        _require_room(place, overwrite)
        instances = read_with(rows.read, data, loaded, column=column, skip_bad=skip_bad)
        instances = _drop_seen(instances, earlier, data)
        return _write(place, loaded, instances, str(data), n_novel, page)


def detect_read(
    loaded: LoadedModel, instances: Instances, out: str | Path, *, source: str
) -> Findings:
    """Detect in instances that were read before, and write the findings in place of any there.

    Args:
        loaded: a version of a model.
        instances: the instances, in the form that the model takes.
        out: the findings folder.
        source: where the instances come from, for people.
    """
    place = Path(out)
    with hold_findings(place):
        _require_room(place, overwrite=True)
        return _write(place, loaded, instances, source, None, page=True)


def _write(
    place: Path,
    loaded: LoadedModel,
    instances: AnyInstances,
    source: str,
    n_novel: int | None,
    page: bool,
) -> Findings:
    detection, answers = detect_instances(loaded, instances, n_novel)
    about = {"model_id": loaded.id, "version": loaded.version, "data": source}
    with bring_here(instances, beside=place.absolute().parent) as here:
        known = _summarize_known(loaded.learner, here, detection)
        return write_findings(
            place, about, here, detection, name_sources(answers), known=known, page=page
        )


def detect_instances(
    loaded: LoadedModel, instances: AnyInstances, n_novel: int | None = None
) -> tuple[Detection, list[str | None]]:
    """The detection in instances that were read before, and the labels that people gave them."""
    answers = loaded.ledger.match(instances.ids, instances.X)
    return apply_answers(loaded.learner.detect(instances.X, n_novel), answers), answers


def apply_answers(detection: Detection, answers: Sequence[str | None]) -> Detection:
    """The detection in which each instance that a person labelled is of that class.

    A cluster that has no other members is left out, and the number of novel classes is smaller by
    one.
    """
    is_answered = np.array([answer is not None for answer in answers], dtype=bool)
    if not is_answered.any():
        return detection
    label = detection.label.astype(str).astype(object)
    label[is_answered] = [answer for answer in answers if answer is not None]
    left = np.unique(detection.cluster[(detection.cluster >= 0) & ~is_answered])
    cluster = np.full_like(detection.cluster, -1)
    is_novel = np.isin(detection.cluster, left) & ~is_answered
    cluster[is_novel] = np.searchsorted(left, detection.cluster[is_novel])
    return replace(
        detection,
        label=label.astype(str),
        cluster=cluster,
        n_novel=len(left),
        novelty_p=settle_novelty(detection.novelty_p, answers),
        count_probability=_shift_counts(detection.count_probability, detection.n_novel - len(left)),
    )


def _shift_counts(probability: Mapping[int, float], n_fewer: int) -> dict[int, float]:
    """The probability of each number of novel classes, if so many of them are known."""
    shifted: dict[int, float] = {}
    for n_novel, share in probability.items():
        n_left = max(0, n_novel - n_fewer)
        shifted[n_left] = shifted.get(n_left, 0.0) + share
    return shifted


def _summarize_known(
    learner: Learner, instances: Instances, detection: Detection
) -> KnownValues | None:
    """The usual values of the known classes: in the memory, or in the data if there is none."""
    if instances.X.ndim != 2:
        return None
    kept = learner.remembered()
    if kept is not None and kept.X.shape[1:] == learner.instance_shape:  # as they came
        return summarize_known(kept.X, kept.y)
    known = detection.cluster < 0
    return summarize_known(instances.X[known], detection.label[known])


def _drop_seen(instances: AnyInstances, seen: Sequence[Findings], data: str | Path) -> AnyInstances:
    if not seen:
        return instances
    before = np.concatenate([findings.assignments.ids for findings in seen])
    fresh = ~np.isin(escape_ids(instances.ids), before)
    if not fresh.any():
        raise BadInput(
            f"all {len(instances)} instances of {data} are in earlier findings: "
            "come back when there is more, or leave --seen out."
        )
    return select_instances(instances, fresh)


def _require_room(out: Path, overwrite: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not Findings(out).exists():
        raise BadInput(f"{out} holds other things: name a new folder for the findings.")
    if not overwrite:
        raise BadInput(
            f"{out} holds findings already, which somebody may have edited: name another folder, "
            "or replace them (--overwrite)."
        )
