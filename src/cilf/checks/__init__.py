"""The checks that every learner must pass. ``check_learner`` runs them on your own learner.

A check is a small function of an unfitted learner. It raises ``CheckFailed`` with its name and its
observation. The class attribute ``expected_failures`` of a learner names the checks that it fails
by nature, with reasons. Such a check must fail.
"""

from __future__ import annotations

from cilf.checks import api, behaviour, blindness, edge_cases, edits, output, state
from cilf.checks.check import Check, CheckFailed, name_of
from cilf.core import validation
from cilf.learners.base import Learner

__all__ = ["CHECKS", "CheckFailed", "check_learner", "run_check"]

CHECKS: dict[str, Check] = {
    name_of(check): check
    for check in (
        api.check_constructor_signature,
        api.check_init_only_stores,
        api.check_parameters_stay,
        api.check_clone_is_fresh,
        api.check_not_fitted,
        api.check_fit_and_update_return_self,
        api.check_fit_starts_afresh,
        state.check_detect_is_pure,
        state.check_inputs_stay,
        state.check_generators_untouched,
        state.check_same_seed_same_result,
        state.check_inputs_not_aliased,
        state.check_saved_goes_on_the_same,
        state.check_rename_changes_names_only,
        state.check_memory_is_bounded,
        state.check_bad_input_is_refused,
        state.check_bad_input_changes_nothing,
        edits.check_forgotten_class_is_gone,
        edits.check_merged_classes_are_one,
        edits.check_retracted_labels_are_gone,
        output.check_labels_are_known,
        output.check_detection_is_well_formed,
        output.check_embedding_is_well_formed,
        output.check_n_novel_is_respected,
        output.check_novelty_ignores_n_novel,
        output.check_predict_one_by_one,
        output.check_embed_one_by_one,
        output.check_novelty_p_alone,
        output.check_probabilities_fit_predictions,
        output.check_classes_in_order_of_arrival,
        output.check_remembered_was_told,
        output.check_labels_are_names,
        edge_cases.check_read_only_inputs,
        edge_cases.check_window_of_one,
        edge_cases.check_window_of_novel_instances,
        edge_cases.check_window_of_equal_instances,
        edge_cases.check_class_of_two_instances,
        edge_cases.check_update_with_known_classes,
        edge_cases.check_update_with_undetected_class,
        edge_cases.check_constant_features,
        behaviour.check_novel_looks_novel,
        behaviour.check_new_class_is_recognised,
        behaviour.check_old_classes_are_kept,
        behaviour.check_learned_class_looks_less_novel,
        blindness.check_blind_to_hidden_truth,
    )
}


def check_learner(learner: Learner) -> None:
    """Run every check on clones of the learner.

    The first failure raises ``CheckFailed``. A check that the learner declares in
    ``expected_failures`` must fail; if it passes, that raises ``CheckFailed``, too.
    """
    for name in learner.expected_failures:
        validation.one_of("check in expected_failures", name, CHECKS)
    for name in CHECKS:
        run_check(name, learner)


def run_check(name: str, learner: Learner) -> None:
    """Run one check. If its failure is declared, it must fail.

    >>> from cilf.learners.iforest import IForest
    >>> run_check("n_novel_is_respected", IForest(n_estimators=20))
    """
    reason = learner.expected_failures.get(name)
    try:
        CHECKS[name](learner)
    except CheckFailed:
        if reason is None:
            raise
    else:
        if reason is not None:
            raise CheckFailed(
                f"{name}: {type(learner).__name__} declares that it fails ({reason}), but it "
                "passes: remove the stale declaration from expected_failures."
            )
