from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from cilf import cli, workflow
from cilf.workflow import ModelFolder, read_labels
from cilf.workflow.model_card import BEGIN, CARD, END, CardFacts, renew_card
from cilf.workflow.model_log import Event

CHANGING = re.compile(r"Version|\| \d+ \| 20\d\d-")  # the lines with dates and identifiers


def card() -> str:
    return (Path("model") / CARD).read_text(encoding="utf-8")


def test_a_card_has_data_classes_scores_versions_and_use(named_points: Path) -> None:
    workflow.update("model", *read_labels("found"))
    workflow.rename("model", "up", "top|<b>")
    said = card()
    assert said.startswith("---\nlibrary_name: cilf\n")
    assert re.search(r"Version 3 of the model \w+, made at 20.* by cilf .*Learner: iforest", said)
    assert "- fit (version 1): 96 labels, from " in said
    assert "known.csv; columns: x, y" in said
    assert re.search(r"- update \(version 2\): \d+ labels, from .*new.csv", said)
    assert re.search(r"\| left \| 1 \| \d+ \| not measured \| \d\.\d+ \(.*\), n = 12 \|", said)
    assert re.search(r"\| top\\\|&lt;b> \| 2 \| \d+ \| not measured \| not measured \|", said)
    assert re.search(r"\| 3 \| 20.* \| rename; up renamed to top\\\|&lt;b> \|", said)
    assert "sorts rows of 2 numbers" in said
    ModelFolder.open("model").rollback(1)
    assert "Version 1 of the model" in card()
    assert "- update" not in card()
    ModelFolder.open("model").verify()


def test_equal_models_differ_in_dates_and_identifiers_only(points: Path) -> None:
    first = card()
    parameters = {"contamination": 0.05, "n_estimators": 30}
    workflow.fit(str(points / "known.csv"), "again", learner="iforest", parameters=parameters)
    again = Path("again", CARD).read_text(encoding="utf-8")
    lines = list(zip(first.splitlines(), again.splitlines(), strict=True))
    differing = [one for one, other in lines if one != other]
    assert all(CHANGING.match(line) or line.startswith("- fit") for line in differing)


def test_what_people_write_outside_of_the_marks_stays(points: Path) -> None:
    path = Path("model", CARD)
    path.write_text(card().replace("# Model card", "# Left or right").replace(END, f"{END}\nCC0"))
    workflow.rename("model", "left", "links")
    assert card().startswith("---\nlibrary_name: cilf")
    assert "# Left or right" in card()
    assert card().endswith(f"{END}\nCC0\n")
    assert "| links |" in card()
    path.write_text("Ours.")
    workflow.rename("model", "links", "left")
    assert card().startswith(f"Ours.\n\n{BEGIN}")


def test_a_model_needs_no_card(points: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = Path("model", CARD)
    path.unlink()
    path.mkdir()
    with caplog.at_level(logging.WARNING, logger="cilf"):
        workflow.rename("model", "left", "links")
    assert "is not brought up to date" in caplog.text
    assert ModelFolder.open("model").current == 2
    path.rmdir()
    with pytest.raises(SystemExit) as left:
        cli.main(["model", "model", "--card", "--json"])
    assert left.value.code == 0
    assert "| links |" in card()


def test_a_kill_before_the_card_is_made_up_by_the_next_change(
    points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(self: ModelFolder) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ModelFolder, "write_card", die)
        with pytest.raises(KeyboardInterrupt):
            workflow.rename("model", "left", "links")
    assert ModelFolder.open("model").classes(2) == ["links", "right"]
    assert "| left |" in card()
    workflow.rename("model", "links", "far left")
    assert "Version 3" in card()


def test_a_class_that_others_became_part_of_has_no_score() -> None:
    def score(accuracy: float) -> dict[str, object]:
        return {"n": 9, "after": accuracy, "after_interval": [0.5, 1.0]}

    held_out = {"ant": score(0.9), "bee": score(0.8), "cat": score(0.7)}
    fit = Event("fit", 1, None, "now", {"held_out": held_out, "new_classes": ["ant", "bee", "cat"]})
    merge = Event("merge", 2, 1, "now", {"merged": {"bee": "ant"}, "classes": ["ant", "cat"]})
    facts = CardFacts(2, [fit, merge], [fit, merge], ["ant", "cat"], {"ant": 4}, ())
    said = renew_card("", facts)
    assert "| ant | 1 | 4 | not measured | not measured |" in said
    assert "| cat | 1 | 0 | 0.700 (0.50-1.00), n = 9 | not measured |" in said
    assert "sorts texts, of the kind" in said
