"""The practitioner's commands: fit, detect, update, predict, and what belongs to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cilf.cli import terminal
from cilf.cli.options import (
    ContentColumn,
    Encoders,
    ImageSize,
    Json,
    LabelColumn,
    SkipBad,
    TestShare,
    require_outside,
    select_given,
)
from cilf.errors import BadConfig

if TYPE_CHECKING:
    from cilf.workflow import (
        Event,
        Findings,
        FitResult,
        Predictions,
        UpdateResult,
        Verification,
    )
    from cilf.workflow.comparison import Loss, Score

MODEL_OUT, FINDINGS_OUT = "runs/model", "runs/findings"
KILO = 1000
SMALLEST_SHOWN = 0.0005  # a smaller loss rounds to 0.000

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder made by 'cilf fit'.")]
NewData = Annotated[
    str, typer.Argument(metavar="DATA", help="A folder of images or a table. Labels are ignored.")
]
FindingsFolder = Annotated[
    Path, typer.Argument(metavar="FINDINGS", help="A findings folder made by 'cilf detect'.")
]
Note = Annotated[str | None, typer.Option(metavar="TEXT", help="A note for the history.")]
Devices = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="The number of GPUs, or of cores, to train the network on. The model keeps it for "
        "later updates.",
    ),
]

app = typer.Typer()


@app.command()
def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Labelled data: a folder of class folders, a table or a data set."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model folder.")] = Path(MODEL_OUT),
    learner: Annotated[str, typer.Option(help="The learner. 'cilf learners' lists them.")] = "cilf",
    seed: Annotated[int, typer.Option(help="The seed of the random generators.")] = 0,
    backbone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The network, the same as --set backbone=NAME."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="Set a parameter of the learner. Repeatable."),
    ] = None,
    devices: Devices = None,
    label: LabelColumn = None,
    column: ContentColumn = None,
    size: ImageSize = None,
    skip_bad: SkipBad = False,
    test_share: TestShare = None,
    again: Annotated[
        bool, typer.Option("--again", help="Add the next version if the folder holds a model.")
    ] = False,
    note: Note = None,
    as_json: Json = False,
) -> None:
    """Fit a model on labelled data."""
    from cilf import workflow

    require_outside(data, out)
    with terminal.show_progress():
        fitted = workflow.fit(
            data,
            out,
            learner=learner,
            parameters={"seed": seed}
            | select_given(backbone=backbone, training__devices=devices)
            | _parse_parameters(changes or []),
            loading=select_given(
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
        ("class", "training", "held out", "accuracy", "test", "accuracy"),
        [
            (name, str(learned.get(name, 0)), *_describe_scores(fitted, name))
            for name in dict.fromkeys((*learned, *fitted.accuracy))
        ],
    )
    measured = (("held-out", fitted.held_out), ("test", fitted.accuracy))
    accuracies = (_describe_accuracy(scores, kind) for kind, scores in measured)
    terminal.print_line(
        f"{out}: version {fitted.event.version}, {len(learned)} classes from {fitted.n_labels} "
        f"instances; accuracy {', '.join(filter(None, accuracies))}"
    )


@app.command()
def detect(
    model: Model,
    data: NewData,
    out: Annotated[Path, typer.Option(help="The findings folder.")] = Path(FINDINGS_OUT),
    n_novel: Annotated[
        int | None, typer.Option(help="The number of novel classes (default: estimated).")
    ] = None,
    seen: Annotated[
        list[Path] | None,
        typer.Option(metavar="FINDINGS", help="Earlier findings to leave out. Repeatable."),
    ] = None,
    column: ContentColumn = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the findings in the folder.")
    ] = False,
    encoder: Encoders = None,
    as_json: Json = False,
) -> None:
    """Find novel instances in unlabelled data, cluster them, and write the findings to a folder."""
    from cilf import workflow

    require_outside(Path(data), out)
    with terminal.show_progress():
        findings = workflow.detect(
            model, data, out,
            n_novel=n_novel, column=column, skip_bad=skip_bad, seen=seen or (), overwrite=overwrite,
        )  # fmt: skip
    if as_json:
        terminal.print_json(_findings_to_json(findings))
    else:
        _show_findings(findings, model)


@app.command()
def split(
    findings: FindingsFolder,
    cluster: Annotated[int, typer.Argument(metavar="CLUSTER", help="The number of the cluster.")],
    into: Annotated[int, typer.Option(metavar="N", help="The number of parts.")] = 2,
    as_json: Json = False,
) -> None:
    """Split a cluster of a findings folder by the similarity of its members."""
    from cilf import workflow

    _show_edited(workflow.split_cluster(findings, cluster, into), as_json)


@app.command("merge-clusters")
def merge_clusters(
    findings: FindingsFolder,
    clusters: Annotated[
        list[int], typer.Argument(metavar="CLUSTER...", help="The numbers of two or more clusters.")
    ],
    as_json: Json = False,
) -> None:
    """Merge clusters of a findings folder. Later clusters move up."""
    from cilf import workflow

    _show_edited(workflow.merge_clusters(findings, clusters), as_json)


@app.command()
def update(
    model: Model,
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS",
            help="A findings folder with names in its tables, or a table with the columns "
            "identity and label.",
        ),
    ],
    findings: Annotated[
        Path | None,
        typer.Option(help="The findings folder that a table elsewhere is about."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="The accuracy that known classes may lose on average (default: 0.05). A single "
            "class may lose three times as much."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Keep the new version whatever the known classes lose.")
    ] = False,
    devices: Devices = None,
    note: Note = None,
    encoder: Encoders = None,
    as_json: Json = False,
) -> None:
    """Update a model with the labels of a person."""
    from cilf import workflow

    options = select_given(tolerance=tolerance, devices=devices)
    workflow.ModelFolder.open(model)
    try:
        with terminal.show_progress():
            about, named = workflow.read_labels(labels, findings)
            updated = workflow.update(
                model, about, named, source=labels, force=force, note=note, **options
            )
    except workflow.WouldForget as refused:
        _show_update(refused.result, model, as_json)
        raise
    _show_update(updated, model, as_json)


@app.command()
def predict(
    model: Model,
    data: NewData,
    out: Annotated[Path | None, typer.Option(help="A CSV file (default: standard output).")] = None,
    column: ContentColumn = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file if it is there already.")
    ] = False,
    encoder: Encoders = None,
    as_json: Json = False,
) -> None:
    """Predict the known class of each instance, with the confidence and the second best class."""
    from cilf import workflow

    if out is not None:
        require_outside(Path(data), out)
        workflow.require_free(out, overwrite)
    with terminal.show_progress():
        predicted = workflow.predict(model, data, column=column, skip_bad=skip_bad)
    if out is not None:
        predicted.write(out)
    if as_json:
        terminal.print_json(_predictions_to_json(predicted, model, out))
    elif out is None:
        terminal.print_csv(predicted.to_csv())
    else:
        counts = [(name, str(count)) for name, count in predicted.counts.items()]
        terminal.print_table(("class", "instances"), counts)
        terminal.print_line(f"labels: {out}")


@app.command()
def model(
    model: Model,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Compare every file of every version with its checksum."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the classes of a model and the history of its versions."""
    from cilf import workflow

    checked = workflow.ModelFolder.open(model).verify() if verify else None
    about = workflow.describe(model)
    if as_json:
        verified = {} if checked is None else {"verified": asdict(checked)}
        terminal.print_json(about.to_json() | verified)
        return
    if checked is not None:
        terminal.print_line(_describe_verification(checked))
    shape = " x ".join(map(str, about.shape)) or "texts"
    terminal.print_line(
        f"{model}: {about.learner}, version {about.current} of {max(about.sizes)}, "
        f"{len(about.classes)} classes, instances: {shape}"
    )
    if about.compared_backbones:
        measured = ", ".join(f"{name} {h:.2f}" for name, h in about.compared_backbones.items())
        terminal.print_line(f"backbone by H on hidden classes: {measured}")
    terminal.print_table(
        ("class", "since version", "labels", "kept"),
        [(c.label, str(c.since), str(c.n_labels), str(c.n_kept)) for c in about.classes],
    )
    for gone in about.forgotten:
        versions = ", ".join(map(str, gone.held_by))
        terminal.print_line(
            f"{gone.label!r} was forgotten in version {gone.version}; earlier versions still hold "
            f"it ({versions})"
        )
    rows = [_describe_event(event, about.sizes) for event in about.events]
    rows[-1] = (f"{rows[-1][0]} *", *rows[-1][1:])
    terminal.print_table(("version", "when (UTC)", "what happened"), rows)


def _describe_verification(checked: Verification) -> str:
    unsealed = ", ".join(map(str, checked.unsealed))
    earlier = f"; an earlier cilf kept no checksums of versions {unsealed}" if unsealed else ""
    return f"{checked.n_files} files are as they were written{earlier}"


@app.command()
def rename(
    model: Model,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The present name of the class.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    note: Note = None,
    as_json: Json = False,
) -> None:
    """Rename a class of a model."""
    from cilf import workflow

    _show_edit(workflow.rename(model, old, new, note=note), model, as_json)


@app.command()
def merge(
    model: Model,
    kept: Annotated[str, typer.Argument(metavar="A", help="The class that keeps its name.")],
    others: Annotated[
        list[str], typer.Argument(metavar="B...", help="The classes that become part of it.")
    ],
    note: Note = None,
    as_json: Json = False,
) -> None:
    """Merge classes of a model into the first one."""
    from cilf import workflow

    _show_edit(workflow.merge(model, kept, *others, note=note), model, as_json)


@app.command()
def forget(
    model: Model,
    labels: Annotated[list[str], typer.Argument(metavar="CLASS...", help="What to forget.")],
    note: Note = None,
    as_json: Json = False,
) -> None:
    """Remove classes from a model. Earlier versions still hold them."""
    from cilf import workflow

    _show_edit(workflow.forget(model, *labels, note=note), model, as_json)


@app.command()
def rebuild(
    model: Model,
    data: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="Where the data of the fit are now, if they moved."),
    ] = None,
    note: Note = None,
    encoder: Encoders = None,
    as_json: Json = False,
) -> None:
    """Make a model anew from its labels, as they are now."""
    from cilf import workflow

    with terminal.show_progress():
        rebuilt = workflow.rebuild(model, data=data, note=note)
    if as_json:
        terminal.print_json({"model": str(model)} | rebuilt.event.to_json())
        return
    terminal.print_line(
        f"{model}: version {rebuilt.event.version}, from {rebuilt.n_labels} labels; classes: "
        f"{', '.join(rebuilt.classes)}"
    )


@app.command()
def rollback(
    model: Model,
    to: Annotated[
        int | None,
        typer.Option(metavar="VERSION", help="The version to use (default: the predecessor)."),
    ] = None,
    note: Note = None,
    as_json: Json = False,
) -> None:
    """Go back to an earlier version of a model. No version is removed."""
    from cilf import workflow

    event = workflow.ModelFolder.open(model).rollback(to, note)
    if as_json:
        terminal.print_json({"model": str(model), **event.to_json()})
        return
    terminal.print_line(
        f"{model}: version {event.version} (before: {event.before}), "
        f"{len(event.about['classes'])} classes"
    )


# ----------------------------------------------------------------- arguments


def _parse_parameters(changes: list[str]) -> dict[str, Any]:
    from cilf.benchmark.config import parse_changes

    parameters, stream = parse_changes(changes)
    if stream:
        raise BadConfig(f"--set stream.{next(iter(stream))} is for a stream: leave it out.")
    return parameters


# ----------------------------------------------------------------- output


def _findings_to_json(findings: Findings) -> dict[str, Any]:
    found = findings.assignments
    clusters = [
        {
            "cluster": number + 1,
            "instances": size,
            "looks_like": found.nearest_class(number),
            "sheet": None if (sheet := findings.sheet(number)) is None else str(sheet),
        }
        for number, size in enumerate(found.cluster_sizes)
    ]
    return {
        "out": str(findings.path),
        "id": findings.id,
        "page": None if findings.page is None else str(findings.page),
        "model_id": findings.about["model_id"],
        "version": findings.about["version"],
        "n_instances": len(found.ids),
        "n_novel": found.n_novel,
        "n_clusters": len(found.cluster_sizes),
        "count_probability": {str(k): p for k, p in findings.count_probability.items()},
        "known": found.known_counts,
        "clusters": clusters,
    }


def _show_edited(findings: Findings, as_json: bool) -> None:
    if as_json:
        terminal.print_json(_findings_to_json(findings))
        return
    edit = findings.about["edits"][-1]
    into = edit["into"]
    _print_clusters(findings, {})
    if "split" in edit:
        listed = ", ".join(map(str, into))
        terminal.print_line(f"{findings.path}: cluster {edit['split']} is split into {listed}")
    else:
        listed = ", ".join(map(str, edit["merged"]))
        terminal.print_line(f"{findings.path}: clusters {listed} are merged into {into}")


def _print_clusters(findings: Findings, known: Mapping[str, int]) -> None:
    """Print a row for each known class and for each cluster."""
    rows = [(name, str(count), "") for name, count in known.items()]
    for number, size in enumerate(findings.assignments.cluster_sizes):
        sheet = findings.sheet(number)
        rows.append((f"cluster {number + 1}", str(size), "" if sheet is None else str(sheet)))
    terminal.print_table(("class", "instances", "contact sheet"), rows)


def _show_findings(findings: Findings, model: Path) -> None:
    found = findings.assignments
    _print_clusters(findings, found.known_counts)
    n_clusters = len(found.cluster_sizes)
    clusters = f"{n_clusters} cluster{'' if n_clusters == 1 else 's'}"
    novel = f"{found.n_novel} are novel, in {clusters}" if found.n_novel else "none is novel"
    terminal.print_line(f"{findings.path}: of {len(found.ids)} instances {novel}")
    likely = list(findings.count_probability.items())[:3]
    if len(likely) > 1:
        listed = ", ".join(f"{k} ({p:.0%})" for k, p in likely)
        terminal.print_line(f"number of novel classes, by probability: {listed}")
    if found.n_novel:
        if findings.page is not None:
            terminal.print_line(f"every member of every cluster: {findings.page}")
        terminal.print_line(
            f"Fill the column 'name' of {findings.path / 'clusters.csv'} (for whole clusters) or "
            f"of {findings.path / 'findings.csv'} (for single instances). Then run: "
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
            (change.label, *_cells_with_bounds(change.held_out), *_cells(change.memory))
            for change in updated.changes
        ],
    )
    if updated.changes and not any(change.held_out.n for change in updated.changes):
        terminal.print_line(
            "This learner holds no instances out. It is measured on its training instances, which "
            "overestimates its accuracy."
        )
    if updated.event is None:
        return
    new = ", ".join(updated.new_classes) or "none"
    corrected = f" ({updated.n_corrected} corrected)" if updated.n_corrected else ""
    edits = f"; {edits}" if (edits := _describe_edits(updated.event)) else ""
    terminal.print_line(
        f"{model}: version {updated.event.version}, from {updated.n_labels} labels{corrected}; "
        f"new classes: {new}{edits}; known classes {_describe_loss(updated.paired_loss)}"
    )


def _describe_scores(fitted: FitResult, label: str) -> Iterator[str]:
    for scores in (fitted.held_out, fitted.accuracy):
        score = scores.get(label)
        n, accuracy = (score.n, score.after) if score else (0, math.nan)
        yield from (str(n), _format_accuracy(accuracy, n))


def _describe_accuracy(scores: Mapping[str, Score], kind: str) -> str:
    """The mean accuracy with its bounds; "" if it was not measured."""
    from cilf.workflow.comparison import average_scores

    average = average_scores(scores.values())
    if average is None:
        return ""
    mean = terminal.format_number(average.mean)
    return f"{mean} ({average.low:.2f}-{average.high:.2f}) on {average.n} {kind} instances"


def _format_accuracy(accuracy: float, n: int) -> str:
    """An accuracy with its bounds."""
    from cilf.workflow.comparison import bound_accuracy

    bounds, shown = bound_accuracy(accuracy, n), terminal.format_number(accuracy)
    return f"{shown} ({bounds[0]:.2f}-{bounds[1]:.2f})" if bounds else shown


def _cells(score: Score) -> tuple[str, str, str]:
    return str(score.n), terminal.format_number(score.before), terminal.format_number(score.after)


def _cells_with_bounds(score: Score) -> tuple[str, str, str]:
    before, after = (_format_accuracy(value, score.n) for value in (score.before, score.after))
    return str(score.n), before, after


def _describe_loss(loss: Loss) -> str:
    if math.isnan(loss.mean):
        return "were not measured"
    low, high = loss.interval()
    if abs(loss.mean) < SMALLEST_SHOWN:
        return f"lose nothing ({high:.3f} at most, measured on {loss.n} instances)"
    mean, low, high = (loss.mean, low, high) if loss.mean > 0 else (-loss.mean, -high, -low)
    verb = "lose" if loss.mean > 0 else "gain"
    return f"{verb} {mean:.3f} on average ({low:.3f} to {high:.3f}, measured on {loss.n} instances)"


def _predictions_to_json(predicted: Predictions, model: Path, out: Path | None) -> dict[str, Any]:
    columns = predicted.columns()
    rows = zip(*(map(_round, values) for values in columns.values()), strict=True)
    return {
        "model": str(model),
        "out": None if out is None else str(out),
        "counts": predicted.counts,
        "predictions": [dict(zip(columns, row, strict=True)) for row in rows],
    }


def _round(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _show_edit(event: Event, model: Path, as_json: bool) -> None:
    if as_json:
        terminal.print_json({"model": str(model)} | event.to_json())
        return
    classes = ", ".join(event.about["classes"])
    terminal.print_line(
        f"{model}: version {event.version}, {_describe_edits(event)}; classes: {classes} "
        f"(cilf rollback {model} undoes it)"
    )


def _describe_edits(event: Event) -> str:
    from cilf.workflow.model_log import describe_edits

    return "; ".join(describe_edits(event.about))


def _describe_event(event: Event, sizes: Mapping[int, int]) -> tuple[str, str, str]:
    about = event.about
    if event.event == "fit":
        what = f"fit: {about.get('n_labels')} labels from {about.get('data')}"
    elif event.event == "update":
        forced = ", forced" if about.get("forced") else ""
        new = ", ".join(about.get("new_classes", ())) or "none"
        source = f" from {about['source']}" if about.get("source") else ""
        what = f"update: {about.get('n_labels')} labels{source}{forced}; new classes: {new}"
        if about.get("n_corrected"):
            what = f"{what}; {about['n_corrected']} labels corrected"
    elif event.event == "rollback":
        what = f"rollback from version {event.before}"
    elif event.event == "rebuild":
        what = f"rebuild from {about.get('n_labels')} labels"
    else:
        what = event.event
    if edits := _describe_edits(event):
        what = f"{what}; {edits}" if event.event == "update" else f"{what}: {edits}"
    if event.makes_version:
        what = f"{what}; {sizes[event.version] / KILO**2:.1f} MB"
    note = f"; note: {about['note']}" if about.get("note") else ""
    return str(event.version), event.time.replace("T", " ")[:16], what + note
