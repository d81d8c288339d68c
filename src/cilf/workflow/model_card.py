"""The model card, ``README.md`` of a model folder: data, classes, scores, versions, intended use.

It is made of the log alone, so that it can be written again at any time. It is for people: nothing
reads it, and no checksum covers it. What people write outside of its two marks stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cilf.data.spreadsheets import escape_surrogates
from cilf.workflow.model_log import FIT, MERGED, UPDATE, Event, describe_edits, find_first_versions

CARD = "README.md"
BEGIN = "<!-- cilf: every change of the model writes anew what stands from here to the end mark -->"
END = "<!-- cilf: end -->"
HEAD = """---
library_name: cilf
tags:
- class-incremental-learning
- novel-class-discovery
---

# Model card

"""
FORMS = {0: "texts", 1: "rows of {} numbers", 2: "grey images of {} pixels"}  # by number of axes
COLOUR = "images of {} pixels and channels"


@dataclass(frozen=True)
class CardFacts:
    """What a card says beside the events.

    Attributes:
        current: the number of the version in use.
        lineage: the fit that this version comes from, and the changes since then.
        events: all events.
        classes: the classes of the version.
        n_labels: the number of labels of each class.
        shape: the shape of one instance; () if instances are texts.
    """

    current: int
    lineage: Sequence[Event]
    events: Sequence[Event]
    classes: Sequence[str]
    n_labels: Mapping[str, int]
    shape: tuple[int, ...]


def renew_card(card: str, facts: CardFacts) -> str:
    """A card with these facts between its marks; one without marks gets them at its end."""
    block = escape_surrogates("\n".join([BEGIN, "", *_list_lines(facts), "", END]))
    before, begin, rest = card.partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        return f"{before}{block}{after}"
    return f"{card.rstrip()}\n\n{block}\n" if card.strip() else f"{HEAD}{block}\n"


def _list_lines(facts: CardFacts) -> Iterator[str]:
    fit, made = facts.lineage[0], facts.lineage[-1]
    yield (
        f"Version {facts.current} of the model {fit.about.get('model_id', '')}, made at "
        f"{made.time} by cilf {made.about.get('cilf', '')}. Learner: {fit.about.get('learner')}."
    )
    yield from ("", "## Data", "")
    for event in facts.lineage:
        if event.event in (FIT, UPDATE):
            yield f"- {_describe_labels(event)}"
    for problem in fit.about.get("problems", ()):
        yield f"- found at the fit: {_escape(problem)}"
    yield from ("", "## Classes and scores", "")
    yield from _list_classes(facts)
    yield from ("", "## Versions", "", "| version | time (UTC) | change |", "|---|---|---|")
    for event in facts.events:
        yield f"| {event.version} | {event.time} | {_escape(_describe_change(event))} |"
    yield from ("", "## Intended use", "", _describe_use(facts))


def _describe_labels(event: Event) -> str:
    about = event.about
    source = _escape(about.get("data") or about.get("source") or "instances that were given")
    columns = about.get("columns")
    listed = f"; columns: {_escape(', '.join(columns))}" if columns else ""
    n_labels = about.get("n_labels")
    return f"{event.event} (version {event.version}): {n_labels} labels, from {source}{listed}"


def _list_classes(facts: CardFacts) -> Iterator[str]:
    since = find_first_versions(facts.lineage)
    held_out, test = _follow_scores(facts.lineage)
    yield "| class | since version | labels | accuracy, held out | accuracy, test at the fit |"
    yield "|---|---|---|---|---|"
    for label in facts.classes:
        scores = " | ".join(_format_score(table.get(label)) for table in (held_out, test))
        first = since.get(label, facts.lineage[0].version)
        yield f"| {_escape(label)} | {first} | {facts.n_labels.get(label, 0)} | {scores} |"


Scores = dict[str, Mapping[str, Any]]


def _follow_scores(lineage: Sequence[Event]) -> tuple[Scores, Scores]:
    """The last scores of each class on held-out instances, and those on the test split."""
    held_out: Scores = {}
    test: Scores = {}
    for event in lineage:
        held_out, test = (_rename_scores(scores, event) for scores in (held_out, test))
        if event.event == FIT:
            held_out, test = (
                dict(event.about.get("held_out", {})),
                dict(event.about.get("test", {})),
            )
        for change in event.about.get("changes", ()):
            held_out[change["label"]] = change["held_out"]
    return held_out, test


def _rename_scores(scores: Scores, event: Event) -> Scores:
    """Scores under the present names; a class that others became part of has none."""
    names, merged = event.present_names, set(event.about.get(MERGED, {}).values())
    moved = {names.get(label, label): score for label, score in scores.items()}
    return {label: score for label, score in moved.items() if label not in merged}


def _format_score(score: Mapping[str, Any] | None) -> str:
    if not score or not score.get("n") or score.get("after") is None:
        return "not measured"
    bounds = score.get("after_interval")
    shown = f" ({bounds[0]:.2f}-{bounds[1]:.2f})" if bounds else ""
    return f"{score['after']:.3f}{shown}, n = {score['n']}"


def _describe_change(event: Event) -> str:
    new = event.about.get("new_classes", ())
    learned = [f"new classes: {', '.join(map(str, new))}"] if new else []
    note = [f"note: {event.about['note']}"] if event.about.get("note") else []
    return "; ".join([event.event, *learned, *describe_edits(event.about), *note])


def _describe_use(facts: CardFacts) -> str:
    size = " x ".join(map(str, facts.shape))
    form = FORMS.get(len(facts.shape), COLOUR).format(size)
    return (
        f"The model sorts {form}, of the kind that the data above hold, into the classes above, "
        "and finds groups of instances that belong to none of them, for a person to name. Scores "
        "hold for data of this kind only. A prediction names the nearest known class, also of an "
        "instance of a novel one: `novelty_p` is small then. Labels that people gave are taken as "
        "true. What the model is made for, what it must not be used for, its licence and whom to "
        "ask stand outside of these marks, where its owner writes them."
    )


def _escape(text: object) -> str:
    """A text as a cell of a table, without markup."""
    plain = " ".join(str(text).split())
    for sign, written in {"&": "&amp;", "<": "&lt;", "|": "\\|", "`": "\\`", "*": "\\*"}.items():
        plain = plain.replace(sign, written)
    return plain
