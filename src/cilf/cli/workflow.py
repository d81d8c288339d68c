"""The commands of a practitioner: fit, detect, update, predict, model, rollback."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cilf.cli import terminal
from cilf.cli.options import (
    ContentColumn,
    ImageSize,
    Json,
    LabelColumn,
    SkipBad,
    TestShare,
    given,
    require_outside,
)
from cilf.errors import BadConfig

if TYPE_CHECKING:
    from cilf.workflow import Event, Findings, Predictions, UpdateResult
    from cilf.workflow.comparison import Score

MODEL_OUT, FINDINGS_OUT = "runs/model", "runs/findings"
KILO = 1000
SMALLEST = 0.0005  # that three digits show

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model folder that 'cilf fit' made.")
]
NewData = Annotated[
    str, typer.Argument(metavar="DATA", help="A folder of images, or a table; labels are ignored.")
]
Note = Annotated[str | None, typer.Option(metavar="TEXT", help="Kept in the model's history.")]

app = typer.Typer()


@app.command()
def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Labelled: a folder of class folders, a table, or a name."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model folder.")] = Path(MODEL_OUT),
    learner: Annotated[str, typer.Option(help="See 'cilf learners'.")] = "cilf",
    seed: Annotated[int, typer.Option(help="Decides all that is left to chance.")] = 0,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="Change a parameter of the learner."),
    ] = None,
    label: LabelColumn = None,
    column: ContentColumn = None,
    size: ImageSize = None,
    skip_bad: SkipBad = False,
    test_share: TestShare = None,
    again: Annotated[
        bool, typer.Option("--again", help="Make it the next version of the model that is there.")
    ] = False,
    note: Note = None,
    as_json: Json = False,
) -> None:
    """Learn the classes of labelled data: the first version of a model."""
    from cilf import workflow

    require_outside(data, out)
    with terminal.progress():
        fitted = workflow.fit(
            data,
            out,
            learner=learner,
            parameters={"seed": seed} | _parameters(changes or []),
            loading=given(
                label=label, column=column, size=size, test_share=test_share, skip_bad=skip_bad
            ),
            again=again,
            note=note,
        )
    if as_json:
        about = {"model": str(out), "accuracy": fitted.mean_accuracy}
        terminal.print_json(about | fitted.event.to_json())
        return
    learned: Mapping[str, int] = fitted.event.about["labels"]
    terminal.print_table(
        ("class", "learned from", "held out", "recognised"),
        [
            (name, str(learned.get(name, 0)), str(score.n), terminal.number(score.after))
            for name, score in fitted.accuracy.items()
        ],
    )
    terminal.print_line(
        f"{out}: version {fitted.event.version}, {len(learned)} classes from {fitted.n_labels} "
        f"instances; of held-out ones {terminal.number(fitted.mean_accuracy)} are recognised"
    )


@app.command()
def detect(
    model: Model,
    data: NewData,
    out: Annotated[Path, typer.Option(help="The findings folder.")] = Path(FINDINGS_OUT),
    n_novel: Annotated[
        int | None, typer.Option(help="How many new kinds there are (default: estimated).")
    ] = None,
    seen: Annotated[
        list[Path] | None,
        typer.Option(metavar="FINDINGS", help="Leave out what earlier findings hold; repeatable."),
    ] = None,
    column: ContentColumn = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the findings that are there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find what is new in unlabelled data, sort it into kinds, and write it down to be named."""
    from cilf import workflow

    require_outside(Path(data), out)
    with terminal.progress():
        findings = workflow.detect(
            model, data, out,
            n_novel=n_novel, column=column, skip_bad=skip_bad, seen=seen or (), overwrite=overwrite,
        )  # fmt: skip
    if as_json:
        terminal.print_json(_findings(findings))
    else:
        _show_findings(findings, model)


@app.command()
def update(
    model: Model,
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS",
            help="A findings folder with names in its tables, or a table: identity, label.",
        ),
    ],
    findings: Annotated[
        Path | None,
        typer.Option(help="The findings folder that the table is about, if it lies elsewhere."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Accuracy that old classes may lose on average, and one alone three times "
            "(default: 0.05)."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Keep the new version whatever old classes lose.")
    ] = False,
    note: Note = None,
    as_json: Json = False,
) -> None:
    """Learn the names that were given: the model's next version."""
    from cilf import workflow

    limit = given(tolerance=tolerance)
    try:
        with terminal.progress():
            about, named = workflow.read_labels(labels, findings)
            updated = workflow.update(
                model, about, named, source=labels, force=force, note=note, **limit
            )
    except workflow.WouldForget as refused:
        _show_update(refused.outcome, model, as_json)
        raise
    _show_update(updated, model, as_json)


@app.command()
def predict(
    model: Model,
    data: NewData,
    out: Annotated[Path | None, typer.Option(help="A CSV file (default: standard output).")] = None,
    column: ContentColumn = None,
    skip_bad: SkipBad = False,
    as_json: Json = False,
) -> None:
    """Say which known class each instance is, be it new or not: identity, label."""
    from cilf import workflow

    if out is not None:
        require_outside(Path(data), out)
    with terminal.progress():
        predicted = workflow.predict(model, data, column=column, skip_bad=skip_bad)
    if out is not None:
        predicted.write(out)
    if as_json:
        terminal.print_json(_predictions(predicted, model, out))
    elif out is None:
        sys.stdout.write(predicted.to_csv().decode())
    else:
        counts = [(name, str(count)) for name, count in predicted.counts.items()]
        terminal.print_table(("class", "instances"), counts)
        terminal.print_line(f"labels: {out}")


@app.command()
def model(model: Model, as_json: Json = False) -> None:
    """Show the classes of a model, and the history of its versions."""
    from cilf import workflow

    about = workflow.describe(model)
    if as_json:
        terminal.print_json(about.to_json())
        return
    shape = " x ".join(map(str, about.shape)) or "texts"
    terminal.print_line(
        f"{model}: {about.learner}, version {about.current} of {max(about.sizes)}, "
        f"{len(about.classes)} classes, instances: {shape}"
    )
    terminal.print_table(
        ("class", "since version", "labels", "kept"),
        [(c.label, str(c.since), str(c.n_labels), str(c.n_kept)) for c in about.classes],
    )
    rows = [_history_row(event, about.sizes) for event in about.events]
    rows[-1] = (f"{rows[-1][0]} *", *rows[-1][1:])
    terminal.print_table(("version", "when (UTC)", "what happened"), rows)


@app.command()
def rollback(
    model: Model,
    to: Annotated[
        int | None,
        typer.Option(metavar="VERSION", help="Default: the one the current version was made from."),
    ] = None,
    note: Note = None,
    as_json: Json = False,
) -> None:
    """Go back to an earlier version of a model; none is removed."""
    from cilf import workflow

    event = workflow.ModelFolder.open(model).rollback(to, note)
    if as_json:
        terminal.print_json({"model": str(model), **event.to_json()})
        return
    terminal.print_line(
        f"{model}: version {event.version} (was {event.before}), "
        f"{len(event.about['classes'])} classes"
    )


# ----------------------------------------------------------------- arguments


def _parameters(changes: list[str]) -> dict[str, Any]:
    from cilf.benchmark.config import parse_changes

    parameters, stream = parse_changes(changes)
    if stream:
        raise BadConfig(f"--set stream.{next(iter(stream))} is for a stream: there is none here.")
    return parameters


# ----------------------------------------------------------------- what is shown


def _findings(findings: Findings) -> dict[str, Any]:
    found = findings.found
    clusters = [
        {
            "cluster": number + 1,
            "instances": size,
            "looks_like": found.looks_like(number),
            "sheet": None if (sheet := findings.sheet(number)) is None else str(sheet),
        }
        for number, size in enumerate(found.sizes)
    ]
    return {
        "out": str(findings.path),
        "id": findings.id,
        "model_id": findings.about["model_id"],
        "version": findings.about["version"],
        "n_instances": len(found.ids),
        "n_novel": found.n_novel,
        "n_kinds": len(found.sizes),
        "known": found.known,
        "clusters": clusters,
    }


def _show_findings(findings: Findings, model: Path) -> None:
    found = findings.found
    rows = [(name, str(count), "") for name, count in found.known.items()]
    for number, size in enumerate(found.sizes):
        sheet = findings.sheet(number)
        rows.append((f"new kind {number + 1}", str(size), "" if sheet is None else str(sheet)))
    terminal.print_table(("class", "instances", "look at"), rows)
    kinds = f"{len(found.sizes)} kind{'' if len(found.sizes) == 1 else 's'}"
    new = f"{found.n_novel} are new, of {kinds}" if found.n_novel else "none is new"
    terminal.print_line(f"{findings.path}: of {len(found.ids)} instances {new}")
    if found.n_novel:
        terminal.print_line(
            f"Write names into {findings.path / 'clusters.csv'} (whole kinds) or "
            f"{findings.path / 'findings.csv'} (single instances), column 'name'; then: "
            f"cilf update {model} {findings.path}"
        )


def _show_update(updated: UpdateResult, model: Path, as_json: bool) -> None:
    if as_json:
        refused = {"refused": updated.event is None}
        terminal.print_json({"model": str(model)} | refused | updated.to_json())
        return
    terminal.print_table(
        ("class", "held out", "before", "after", "memory", "before", "after"),
        [
            (change.label, *_cells(change.held_out), *_cells(change.memory))
            for change in updated.changes
        ],
    )
    if updated.changes and not any(change.held_out.n for change in updated.changes):
        terminal.print_line(
            "This learner holds nothing out: it is measured on what it has learned from, which "
            "flatters it."
        )
    if updated.event is None:
        return
    new = ", ".join(updated.new_classes) or "none"
    terminal.print_line(
        f"{model}: version {updated.event.version}, from {updated.n_labels} labels; new classes: "
        f"{new}; old classes {_loss(updated.loss)}"
    )


def _cells(score: Score) -> tuple[str, str, str]:
    return str(score.n), terminal.number(score.before), terminal.number(score.after)


def _loss(loss: float) -> str:
    if math.isnan(loss):
        return "were not measured"
    if abs(loss) < SMALLEST:
        return "lose nothing"
    return f"lose {loss:.3f} on average" if loss > 0 else f"gain {-loss:.3f} on average"


def _predictions(predicted: Predictions, model: Path, out: Path | None) -> dict[str, Any]:
    pairs = zip(predicted.ids.tolist(), predicted.labels.tolist(), strict=True)
    return {
        "model": str(model),
        "out": None if out is None else str(out),
        "counts": predicted.counts,
        "predictions": [{"identity": str(i), "label": label} for i, label in pairs],
    }


def _history_row(event: Event, sizes: Mapping[int, int]) -> tuple[str, str, str]:
    about = event.about
    if event.event == "fit":
        what = f"fit: {about.get('n_labels')} labels from {about.get('data')}"
    elif event.event == "update":
        forced = ", forced" if about.get("forced") else ""
        new = ", ".join(about.get("new_classes", ())) or "none"
        what = f"update: {about.get('n_labels')} labels from {about.get('source')}{forced}"
        what = f"{what}; new classes: {new}"
        renamed = [f"{old} is {name} now" for old, name in about.get("renamed", {}).items()]
        what = "; ".join([what, *renamed])
    else:
        what = f"rollback from version {event.before}"
    if event.makes_version:
        what = f"{what}; {sizes[event.version] / KILO**2:.1f} MB"
    note = f"; note: {about['note']}" if about.get("note") else ""
    return str(event.version), event.time.replace("T", " ")[:16], what + note
