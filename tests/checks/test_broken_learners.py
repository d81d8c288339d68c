"""Checks are worth what they catch: one learner that keeps the contract, many that do not."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from cilf.checks import CHECKS, CheckFailed, check_learner, run_check
from cilf.clustering import novel_clusters
from cilf.core import Detection
from cilf.core.random import torch_generator
from cilf.errors import BadConfig
from cilf.learners.base import Learner
from cilf.nn.memory import Memory


class Toy(Learner):
    """Nearest class mean; far from every mean is novel. Keeps the contract."""

    name: ClassVar[str] = "toy"

    def __init__(self, *, seed: int = 0, reach: float = 1.2) -> None:
        self.seed = seed
        self.reach = reach

    def _fit(self, X, y):
        self._sums, self._counts = self._totals(X, y, int(y.max()) + 1)
        self._radius = float(self._distances(X).min(1).mean())

    def _update(self, X, y, n_classes):
        sums, counts = self._totals(X, y, n_classes)
        known = len(self._counts)
        sums[:known] += self._sums
        counts[:known] += self._counts
        self._sums, self._counts = sums, counts

    def _totals(self, X, y, n_classes):
        members = np.eye(n_classes)[y]
        return members.T @ self._embed(X).astype(float), members.sum(0)

    def _embed(self, X):
        return X.reshape(len(X), -1).astype(np.float32) / np.float32(255)

    def _distances(self, X):
        means = self._sums / self._counts[:, None]
        return np.linalg.norm(self._embed(X)[:, None] - means, axis=2)

    def _predict(self, X):
        return self._distances(X).argmin(1)

    def _novelty(self, X):
        return self._distances(X).min(1)

    def _detect(self, X, n_novel):
        novelty = self._novelty(X)
        marked = novel_clusters.take_at_least(
            n_novel or 0, novelty > self.reach * self._radius, novelty
        )
        cluster, curve = novel_clusters.cluster_novel(
            torch.from_numpy(self._embed(X)), marked, n_novel,
            k_max=4, least_silhouette=0.3, generator=torch_generator(self.seed, "detect"),
        )  # fmt: skip
        return Detection(
            novelty=novelty.astype(np.float32),
            label=self.classes_[self._predict(X)],
            cluster=cluster,
            n_novel=int(cluster.max()) + 1,
            curve=curve,
            embedding=self._embed(X),
        )

    def _get_state(self):
        return {"sums": self._sums, "counts": self._counts}, {"radius": self._radius}

    def _set_state(self, arrays, plain):
        self._sums, self._counts = arrays["sums"], arrays["counts"]
        self._radius = plain["radius"]


def changed(found: Detection, **parts: Any) -> Detection:
    names = ("novelty", "label", "cluster", "n_novel", "curve", "embedding")
    return Detection(**({name: getattr(found, name) for name in names} | parts))


# ----------------------------------------------------------------- api


class TakesPositionalArguments(Toy):
    def __init__(self, seed: int = 0, reach: float = 1.2) -> None:
        self.seed = seed
        self.reach = reach


class TunnelsArguments(Toy):
    def __init__(self, *, seed: int = 0, **more: Any) -> None:
        super().__init__(seed=seed, **more)


class HasNoSeed(Toy):
    def __init__(self, *, reach: float = 1.2) -> None:
        super().__init__(reach=reach)


class ConvertsInInit(Toy):
    def __init__(self, *, seed: int = 0, reach: float = 1.2) -> None:
        self.seed = seed
        self.reach = float(reach)


class ComputesInInit(Toy):
    def __init__(self, *, seed: int = 0, reach: float = 1.2) -> None:
        super().__init__(seed=seed, reach=reach)
        self.means: list[float] = []


class ChangesItsParameters(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self.reach = self.reach + 0.1


class ChangesAMutableParameter(Toy):
    def __init__(self, *, seed: int = 0, reach: float = 1.2, seen: tuple[Any, ...] = ([],)) -> None:
        super().__init__(seed=seed, reach=reach)
        self.seen = seen

    def _fit(self, X, y):
        super()._fit(X, y)
        self.seen[0].append(len(X))


class KeepsStateInTheClass(Toy):
    def fit(self, X, y):
        super().fit(X, y)
        type(self)._classes = self._classes
        return self


class EmbedsBeforeFit(Toy):
    def embed(self, X):
        return self._embed(np.asarray(X))


class ReturnsNothing(Toy):
    def update(self, X, y):
        super().update(X, y)


class FitGoesOn(Toy):
    def _fit(self, X, y):
        before = getattr(self, "_radius", 0.0)
        super()._fit(X, y)
        self._radius = max(self._radius, 1.01 * before)


# ----------------------------------------------------------------- state


class LearnsInDetect(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        self._radius *= 1.01
        return found


class LearnsInPredict(Toy):
    def _predict(self, X):
        self._counts = self._counts + 1
        return super()._predict(X)


class WritesIntoItsInput(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        X[0] = 0
        return found


class DrawsFromNumpy(Toy):
    def _detect(self, X, n_novel):
        np.random.random()  # noqa: NPY002
        return super()._detect(X, n_novel)


class DrawsFromTorch(Toy):
    def _update(self, X, y, n_classes):
        torch.rand(1)
        super()._update(X, y, n_classes)


class SeedsPython(Toy):
    def _fit(self, X, y):
        random.seed(self.seed)
        super()._fit(X, y)


class IsUnseeded(Toy):
    def _novelty(self, X):
        return super()._novelty(X) + np.random.default_rng().normal(0, 1e-3, len(X))


class LooksAtTheGlobalGenerator(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._radius += torch.initial_seed() * 1e-9


class AliasesItsInput(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._X, self._y = X, y

    def _predict(self, X):
        distances = np.linalg.norm(self._embed(X)[:, None] - self._embed(self._X), axis=2)
        return self._y[distances.argmin(1)]


class LosesItsRadius(Toy):
    def _get_state(self):
        return super()._get_state()[0], {}

    def _set_state(self, arrays, plain):
        super()._set_state(arrays, {"radius": 1.0})


class LosesItsCounts(Toy):
    def _set_state(self, arrays, plain):
        super()._set_state(arrays, plain)
        self._sums = self._sums / self._counts[:, None]
        self._counts = np.ones_like(self._counts)


class RenamesAndReturnsNothing(Toy):
    def rename(self, names):
        super().rename(names)


class RemembersOldNames(Toy):
    def detect(self, X, n_novel=None):
        found = super().detect(X, n_novel)
        first = np.array([event["new_classes"] for event in self._history[:1]]).ravel()
        return changed(found, label=first[np.minimum(self._predict(X), len(first) - 1)])


class SortsWhatItRenames(Toy):
    def rename(self, names):
        super().rename(names)
        self._classes = sorted(self._classes, reverse=True)
        return self


class CountsRenamesAsUpdates(Toy):
    @property
    def _n_updates(self):
        return len(self._history) - 1

    def _novelty(self, X):
        return super()._novelty(X) * (1 + self._n_updates)


class KeepsEverything(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._all = X.copy()

    def _update(self, X, y, n_classes):
        super()._update(X, y, n_classes)
        self._all = np.concatenate([self._all, X])

    def _get_state(self):
        arrays, plain = super()._get_state()
        return arrays | {"all": self._all}, plain


class FillsHoles(Toy):
    def detect(self, X, n_novel=None):
        return super().detect(np.nan_to_num(X) if np.asarray(X).dtype.kind == "f" else X, n_novel)


class SpeaksOfSomethingElse(Toy):
    def predict(self, X):
        try:
            return super().predict(X)
        except ValueError as error:
            raise type(error)("something is wrong") from error


class UpdatesBeforeItChecks(Toy):
    def update(self, X, y):
        self._require_fitted()
        self._radius *= 1.01
        return super().update(X, y)


# ----------------------------------------------------------------- output


class MixesUpItsMemory(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._memory = Memory(X.copy(), y[::-1])

    def _kept(self):
        return self._memory, None


class RecallsSomethingElse(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._memory = Memory(X.copy(), y)

    def _kept(self):
        return None, self._memory

    def recall(self, kept):
        return np.repeat(self.classes_[:1], len(kept.y))


class AnswersMinusOne(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, label=np.where(found.is_novel, -1, found.label))


class AnswersPositions(Toy):
    def predict(self, X):
        super().predict(X)
        return self._predict(np.asarray(X))


class CountsClustersFromOne(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, cluster=np.where(found.is_novel, found.cluster + 1, -1))


class SaysNaN(Toy):
    def _novelty(self, X):
        return np.where(np.arange(len(X)) == 0, np.nan, super()._novelty(X))


class SaysAllAtOnce(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, novelty=found.novelty[:, None])


class CountsInNumpy(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        return changed(found, n_novel=np.int64(found.n_novel))


class EmbedsInDoubles(Toy):
    def embed(self, X):
        return super().embed(X).astype(np.float64)


class EstimatesWhenTold(Toy):
    def _detect(self, X, n_novel):
        return super()._detect(X, None)


class FindsNothingOnRequest(Toy):
    def _detect(self, X, n_novel):
        return super()._detect(X, max(1, n_novel) if n_novel is not None else None)


class PredictsByTheBatch(Toy):
    def _predict(self, X):
        means = self._sums / self._counts[:, None]
        z = self._embed(X) - self._embed(X).mean(0)
        return np.linalg.norm(z[:, None] - (means - means.mean(0)), axis=2).argmin(1)


class EmbedsByTheBatch(Toy):
    def embed(self, X):
        z = super().embed(X)
        return z - z.mean(0)


class SortsItsClasses(Toy):
    @property
    def classes_(self):
        return np.sort(super().classes_)


class TakesLabelsForPositions(Toy):
    def predict(self, X):
        return np.sort(self.classes_)[self._predict(self._checked(X))]


# ----------------------------------------------------------------- edge_cases


class ScalesInPlace(Toy):
    def _detect(self, X, n_novel):
        X //= 1
        return super()._detect(X, n_novel)


class NeedsTwoInstances(Toy):
    def _novelty(self, X):
        with np.errstate(all="ignore"):
            novelty = super()._novelty(X)
            return novelty / (novelty.max() - novelty.min())


class NeedsKnownInstances(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        known = found.novelty[~found.is_novel]
        return changed(found, novelty=found.novelty - known.min())


class NeedsDifferentInstances(Toy):
    def _detect(self, X, n_novel):
        found = super()._detect(X, n_novel)
        with np.errstate(all="ignore"):
            return changed(found, novelty=found.novelty / found.novelty.std())


class NeedsThreeInstances(Toy):
    def _fit(self, X, y):
        np.linalg.cholesky(np.diag(np.bincount(y) - 2.0))
        super()._fit(X, y)


class NeedsNewClasses(Toy):
    def _update(self, X, y, n_classes):
        np.stack([X[y == label].mean(0) for label in range(len(self._counts), n_classes)])
        super()._update(X, y, n_classes)


class LearnsOneClassAtATime(Toy):
    def _update(self, X, y, n_classes):
        super()._update(X, y, n_classes)
        self._sums[len(self._classes) + 1 :] = 1e6


class DividesByDeviation(Toy):
    def _fit(self, X, y):
        flat = X.reshape(len(X), -1).astype(float)
        with np.errstate(all="ignore"):
            self._scale = np.float32(1) / flat.std(0).astype(np.float32)
        super()._fit(X, y)

    def _embed(self, X):
        with np.errstate(all="ignore"):
            return super()._embed(X) * self._scale


# ----------------------------------------------------------------- behaviour


class GuessesNovelty(Toy):
    def _novelty(self, X):
        return np.random.default_rng(0).random(len(X))


class NeverLearns(Toy):
    def _update(self, X, y, n_classes):
        super()._update(X, y, n_classes)
        self._sums[len(self._classes) :] = 1e6


class Forgets(Toy):
    def _update(self, X, y, n_classes):
        super()._update(X, y, n_classes)
        self._sums[: len(self._classes)] = 1e6


class StaysSurprised(Toy):
    def _fit(self, X, y):
        super()._fit(X, y)
        self._first = self._sums / self._counts[:, None]

    def _novelty(self, X):
        return np.linalg.norm(self._embed(X)[:, None] - self._first, axis=2).min(1)


# ----------------------------------------------------------------- blindness


class Peeks(Toy):
    def detect(self, X, n_novel=None):
        truth = getattr(X, "truth", None)
        found = super().detect(X, n_novel)
        if truth is None:
            return found
        return changed(found, novelty=np.float32(~np.isin(truth, self.classes_)))


class PeeksUnderTheArray(Toy):
    def _predict(self, X):
        truth = getattr(X.base, "truth", None)
        predicted = super()._predict(X)
        if truth is None:
            return predicted
        position = {label: i for i, label in enumerate(self.classes_.tolist())}
        return np.array([position.get(label, 0) for label in truth.tolist()])


BROKEN: dict[str, list[type[Toy]]] = {
    "constructor_signature": [TakesPositionalArguments, TunnelsArguments, HasNoSeed],
    "init_only_stores": [ConvertsInInit, ComputesInInit],
    "parameters_stay": [ChangesItsParameters, ChangesAMutableParameter],
    "clone_is_fresh": [KeepsStateInTheClass],
    "not_fitted": [EmbedsBeforeFit],
    "fit_and_update_return_self": [ReturnsNothing],
    "fit_starts_afresh": [FitGoesOn],
    "detect_is_pure": [LearnsInDetect, LearnsInPredict],
    "inputs_stay": [WritesIntoItsInput],
    "generators_untouched": [DrawsFromNumpy, DrawsFromTorch, SeedsPython],
    "same_seed_same_result": [IsUnseeded, LooksAtTheGlobalGenerator],
    "inputs_not_aliased": [AliasesItsInput],
    "saved_goes_on_the_same": [LosesItsRadius, LosesItsCounts],
    "rename_changes_names_only": [
        RemembersOldNames,
        SortsWhatItRenames,
        CountsRenamesAsUpdates,
        RenamesAndReturnsNothing,
    ],
    "memory_is_bounded": [KeepsEverything],
    "bad_input_is_refused": [FillsHoles, SpeaksOfSomethingElse],
    "bad_input_changes_nothing": [UpdatesBeforeItChecks],
    "labels_are_known": [AnswersMinusOne, AnswersPositions],
    "detection_is_well_formed": [CountsClustersFromOne, SaysNaN, SaysAllAtOnce, CountsInNumpy],
    "embedding_is_well_formed": [EmbedsInDoubles],
    "n_novel_is_respected": [EstimatesWhenTold, FindsNothingOnRequest],
    "predict_one_by_one": [PredictsByTheBatch],
    "embed_one_by_one": [EmbedsByTheBatch],
    "classes_in_order_of_arrival": [SortsItsClasses],
    "remembered_was_told": [MixesUpItsMemory, RecallsSomethingElse],
    "labels_are_names": [TakesLabelsForPositions],
    "read_only_inputs": [ScalesInPlace],
    "window_of_one": [NeedsTwoInstances],
    "window_of_novel_instances": [NeedsKnownInstances],
    "window_of_equal_instances": [NeedsDifferentInstances],
    "class_of_two_instances": [NeedsThreeInstances],
    "update_with_known_classes": [NeedsNewClasses],
    "update_with_undetected_class": [LearnsOneClassAtATime],
    "constant_features": [DividesByDeviation],
    "novel_looks_novel": [GuessesNovelty],
    "new_class_is_recognised": [NeverLearns],
    "old_classes_are_kept": [Forgets],
    "learned_class_looks_less_novel": [StaysSurprised],
    "blind_to_hidden_truth": [Peeks, PeeksUnderTheArray],
}

CASES = [
    pytest.param(name, broken, id=f"{name}-{broken.__name__}")
    for name, learners in BROKEN.items()
    for broken in learners
]


def test_the_sound_learner_passes() -> None:
    check_learner(Toy())


@pytest.mark.parametrize(("name", "broken"), CASES)
def test_the_check_catches_it(name: str, broken: type[Toy]) -> None:
    with pytest.raises(CheckFailed, match=f"^{name}: "):
        CHECKS[name](broken())


def test_check_learner_passes_on_what_a_check_found() -> None:
    with pytest.raises(CheckFailed, match=r"^not_fitted: embed of an unfitted learner"):
        check_learner(EmbedsBeforeFit())


def test_every_check_has_something_to_catch() -> None:
    assert set(BROKEN) == set(CHECKS)


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
