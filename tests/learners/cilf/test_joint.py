"""Joint training."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cilf import CILF
from cilf.core.types import Array
from cilf.data import load_dataset
from cilf.evaluate import run_stream, summarize
from cilf.learners import LEARNERS, Joint
from cilf.nn import training
from cilf.stream import multiple_novel

Digits = Callable[..., tuple[Array, Array]]


def test_joint_keeps_every_instance_and_recognises_all_classes(digits: Digits) -> None:
    first, second = digits(range(3), 0, 45), digits(range(3, 5), 0, 45)
    learner = Joint(epochs=5, update_epochs=5, memory_size=10).fit(*first).update(*second)
    n_held_out = len(learner._calibration)
    assert len(learner._everything) + n_held_out == len(first[1]) + len(second[1])
    X, y = digits(range(5), 60, 15)
    assert (learner.predict(X) == y).mean() > 0.9


def test_what_it_holds_out_is_never_trained_on(digits: Digits) -> None:
    learner = Joint(epochs=1, update_epochs=1, calibration_size=5).fit(*digits(range(3), 0, 45))
    learner.update(*digits(range(5), 45, 90))
    assert np.bincount(learner._calibration.y).tolist() == [5] * 5
    trained = {image.tobytes() for image in learner._everything.X}
    assert not trained & {image.tobytes() for image in learner._calibration.X}


def test_no_incremental_learner_trains_more_epochs_in_an_update() -> None:
    """But for den, whose updates train a small block, with up to 100 short passes."""
    others = {name: cls() for name, cls in LEARNERS.items() if name not in ("joint", "den")}
    epochs = {n: learner.get_params().get("update_epochs", 0) for n, learner in others.items()}
    assert Joint().update_epochs >= max(epochs.values())
    assert Joint().epochs >= max(lr.get_params().get("epochs", 0) for lr in others.values())


def test_its_first_training_is_that_of_cilf(digits: Digits) -> None:
    first, fresh = digits(range(3), 0, 45), digits(range(3), 60, 15)[0]
    assert np.array_equal(
        Joint(epochs=3).fit(*first).embed(fresh), CILF(epochs=3).fit(*first).embed(fresh)
    )


def test_an_update_trains_on_everything_with_classes_evenly(
    digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = digits(range(3), 0, 60), digits([3], 0, 15)
    seen: list[list[int]] = []
    original = training.even_batches

    def spy(y: Any, *others: Any) -> Any:
        batches = original(y, *others)

        def of_epoch(number: int) -> Any:
            drawn = list(batches(number))
            rows = [row for batch in drawn for row in batch.tolist()]
            seen.append(np.bincount(y[rows].numpy()).tolist())
            return drawn

        return of_epoch

    monkeypatch.setattr(training, "even_batches", spy)
    Joint(epochs=1, update_epochs=2, calibration_size=0).fit(*first).update(*second)
    assert len(seen) == 2  # epochs of the update
    assert all(len(set(counts)) == 1 and len(counts) == 4 for counts in seen)
    assert all(sum(counts) >= 3 * 60 + 15 for counts in seen)


@pytest.mark.parametrize(("warm_start", "n_epochs"), [(True, [2, 3, 3]), (False, [2, 5, 8])])
def test_by_any_window_it_has_trained_all_epochs(
    digits: Digits, monkeypatch: pytest.MonkeyPatch, warm_start: bool, n_epochs: list[int]
) -> None:
    trained: list[int] = []
    original = training.epochs

    def spy(*arguments: Any, **named: Any) -> Any:
        trained.append(sum(1 for argument in original(*arguments, **named)))
        return iter(())

    monkeypatch.setattr(training, "epochs", spy)
    learner = Joint(epochs=2, update_epochs=3, warm_start=warm_start).fit(*digits(range(3), 0, 9))
    learner.update(*digits([3], 0, 9)).update(*digits([4], 0, 9))
    assert trained == n_epochs


def test_it_is_not_beaten_by_a_learner_with_a_small_memory() -> None:
    """LDA learns from the memory alone. The sums of ridge hold every instance, whatever it is."""
    stream = multiple_novel(load_dataset("digits"), seed=0, initial_size=40, window_size=15)
    ends = {
        learner.name: summarize(list(run_stream(learner, stream, protocol="given")))["holdout_all"]
        for learner in (Joint(readout="lda"), CILF(readout="lda", memory_size=30))
    }
    assert ends["joint"] > ends["cilf"]
