"""How checks are run: a sound learner passes, declared failures have to happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pytest

from cilf.checks import CHECKS, CheckFailed, check_learner, run_check
from cilf.errors import BadConfig

from .test_api import BROKEN as API
from .test_api import EmbedsBeforeFit
from .test_behaviour import BROKEN as BEHAVIOUR
from .test_behaviour import StaysSurprised
from .test_blindness import BROKEN as BLINDNESS
from .test_edge_cases import BROKEN as EDGE_CASES
from .test_edits import BROKEN as EDITS
from .test_output import BROKEN as OUTPUT
from .test_state import BROKEN as STATE
from .toy import Toy


def test_the_sound_learner_passes() -> None:
    check_learner(Toy())


def test_check_learner_passes_on_what_a_check_found() -> None:
    with pytest.raises(CheckFailed, match=r"^not_fitted: embed of an unfitted learner"):
        check_learner(EmbedsBeforeFit())


def test_every_check_has_something_to_catch() -> None:
    caught = [API, BEHAVIOUR, BLINDNESS, EDGE_CASES, EDITS, OUTPUT, STATE]
    assert {name for broken in caught for name in broken} == set(CHECKS)


def test_a_declared_failure_is_accepted() -> None:
    class Declared(StaysSurprised):
        expected_failures: ClassVar[Mapping[str, str]] = {
            "learned_class_looks_less_novel": "novelty is measured from the first classes"
        }

    run_check("learned_class_looks_less_novel", Declared())


def test_a_stale_declaration_is_refused() -> None:
    class Stale(Toy):
        expected_failures: ClassVar[Mapping[str, str]] = {"not_fitted": "an old reason"}

    with pytest.raises(CheckFailed, match=r"not_fitted: Stale declares .*an old reason.*stale"):
        run_check("not_fitted", Stale())


def test_an_unknown_declaration_is_answered_with_the_nearest() -> None:
    class Misspelt(Toy):
        expected_failures: ClassVar[Mapping[str, str]] = {"not_fited": "a reason"}

    with pytest.raises(BadConfig, match="did you mean 'not_fitted'"):
        check_learner(Misspelt())


def test_checks_leave_the_learner_and_the_global_generators_alone() -> None:
    learner, before = Toy(), np.random.get_state()[1].tolist()  # noqa: NPY002
    run_check("generators_untouched", learner)
    assert vars(learner) == {"seed": 0, "reach": 1.2}
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_every_check_says_what_it_checks_in_one_sentence() -> None:
    for name, check in CHECKS.items():
        lines = (check.__doc__ or "").splitlines()
        assert len(lines) == 1, name
        assert lines[0].endswith("."), name
