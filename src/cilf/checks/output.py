"""Checks of output: results are well-formed, and do not depend on batches or on class names."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.base import clone

from cilf.checks.check import check, require
from cilf.checks.compare import require_same
from cilf.checks.data import LATER, NOVEL, forms, task
from cilf.checks.trial import fit_copy, keep_trial
from cilf.core import Detection
from cilf.core.types import Array
from cilf.learners.base import Learner

NAMINGS: dict[str, dict[int, int | str]] = {
    "numbers with gaps": {0: 70, 4: -3, 6: 12, NOVEL: 5},
    "strings": {0: "pear", 4: "fig", 6: "apple", NOVEL: "a rather long name"},
}


@check
def check_labels_are_known(learner: Learner) -> None:
    """predict and detect only answer with classes the learner knows, before and after an update."""
    lived = keep_trial(learner)
    before, after = lived.classes
    _require_known(lived.found.label, before, "detect")
    _require_known(lived.found_later.label, after, "detect after an update")
    _require_known(lived.predicted, after, "predict")


def _require_known(labels: Array, classes: Array, method: str) -> None:
    same_kind = labels.dtype.kind == classes.dtype.kind
    require(same_kind, f"{method} gives {labels.dtype}, the classes are {classes.dtype}")
    strange = sorted(set(labels.tolist()) - set(classes.tolist()))
    require(not strange, f"{method} answers {strange}, which are no classes")


@check
def check_detection_is_well_formed(learner: Learner) -> None:
    """A detection has one finite value of the right type for each instance of the window."""
    for form in forms(learner):
        data, lived = task(form), keep_trial(learner, form)
        require_well_formed(lived.found, len(data.window.X))
        require_well_formed(lived.found_later, len(data.fresh.X))


def require_well_formed(found: Detection, n: int) -> None:
    """Fail unless the fields of a detection of ``n`` instances fit together."""
    for name in ("novelty", "label", "cluster", "is_novel"):
        shape = getattr(found, name).shape
        require(shape == (n,), f"{name} has shape {shape} for {n} instances")
    require(found.novelty.dtype.kind == "f", f"novelty is {found.novelty.dtype}")
    require(bool(np.isfinite(found.novelty).all()), "novelty is not finite")
    require(found.cluster.dtype.kind == "i", f"cluster is {found.cluster.dtype}")
    require(type(found.n_novel) is int, f"n_novel is a {type(found.n_novel).__name__}")
    require_same(found.is_novel, found.cluster >= 0, "is_novel against cluster >= 0")
    present = sorted(set(found.cluster.tolist()) - {-1})
    expected = list(range(found.n_novel))
    require(present == expected, f"clusters are {present} where n_novel is {found.n_novel}")
    _require_vectors(found.embedding, n)
    _require_p_values(found.novelty_p, n)
    _require_distribution(found.count_probability)


def _require_p_values(p: Array, n: int) -> None:
    require(p.shape == (n,), f"novelty_p has shape {p.shape} for {n} instances")
    require(p.dtype.kind == "f", f"novelty_p is {p.dtype}")
    seen = f"novelty_p goes from {p.min()} to {p.max()}"
    require(bool(((p > 0) & (p <= 1)).all()), seen)  # NaN is neither


def _require_distribution(probability: Mapping[int, float]) -> None:
    """Fail unless these are the probabilities of numbers of novel classes."""
    strange = [k for k in probability if type(k) is not int or k < 0]
    require(not strange, f"count_probability has {strange}, which are no numbers of classes")
    values = np.array(list(probability.values()), dtype=np.float64)
    require(bool(((values >= 0) & (values <= 1)).all()), "count_probability exceeds 0 to 1")
    total = float(values.sum())
    require(abs(total - 1) <= 1e-6, f"count_probability sums to {total}")


@check
def check_embedding_is_well_formed(learner: Learner) -> None:
    """embed gives one finite float32 vector for each instance."""
    for form in forms(learner):
        X = task(form).window.X
        _require_vectors(fit_copy(learner, form).embed(X), len(X))


def _require_vectors(embedding: Array, n: int) -> None:
    seen = f"the embedding of {n} instances is {embedding.dtype} of shape {embedding.shape}"
    require(embedding.ndim == 2 and len(embedding) == n and embedding.shape[1] > 0, seen)
    require(embedding.dtype == np.float32, seen)
    require(bool(np.isfinite(embedding).all()), "the embedding is not finite")


@check
def check_n_novel_is_respected(learner: Learner) -> None:
    """detect with ``n_novel=k`` gives k clusters, none of them empty."""
    X = task().window.X
    learner = fit_copy(learner)
    for k in (0, 1, 3):
        found = learner.detect(X, n_novel=k)
        require(found.n_novel == k, f"n_novel is {found.n_novel}, {k} was given")
        filled = len(set(found.cluster.tolist()) - {-1})
        require(filled == k, f"{filled} clusters have members, n_novel={k} was given")


@check
def check_novelty_ignores_n_novel(learner: Learner) -> None:
    """The novelty of an instance is the same whatever number of novel classes is found or given."""
    X = task().window.X
    learner = fit_copy(learner)
    found = learner.detect(X).novelty
    for k in (0, 1, 3):
        same = np.allclose(found, learner.detect(X, n_novel=k).novelty)
        require(same, f"novelty is another one if n_novel={k} is given")


@check
def check_predict_one_by_one(learner: Learner) -> None:
    """An instance gets the same label alone and in a batch."""
    learner, X = fit_copy(learner), task().fresh.X
    alone = [learner.predict(X[i : i + 1])[0] for i in range(len(X))]
    require_same(learner.predict(X), np.array(alone), "predict one by one and all at once")


@check
def check_embed_one_by_one(learner: Learner) -> None:
    """An instance has the same embedding alone and in a batch."""
    learner, X = fit_copy(learner), task().fresh.X
    together = learner.embed(X)
    alone = np.concatenate([learner.embed(X[i : i + 1]) for i in range(len(X))])
    worst = float(np.abs(together - alone).max() / max(np.abs(together).max(), 1e-12))
    require(worst <= 1e-4, f"embed one by one differs from all at once by {worst:.2g}, relatively")


@check
def check_novelty_p_alone(learner: Learner) -> None:
    """The p-value of an instance is the same alone and in a window."""
    learner, X = fit_copy(learner), task().fresh.X
    together = learner.detect(X).novelty_p
    alone = np.concatenate([learner.novelty_p(X[i : i + 1]) for i in range(len(X))])
    worst, resolution = float(np.abs(together - alone).max()), _rank_resolution(learner)
    require(worst <= 1e-6 + 1.5 * resolution, f"novelty_p alone differs from detect by {worst:.2g}")


def _rank_resolution(learner: Learner) -> float:
    """How much a p-value changes by one rank, where rounding may swap neighbours."""
    kept = learner.remembered()
    if kept is None:
        return 0.0
    n_ranked = int(kept.held_out.sum()) or len(kept.y)
    return 1 / (n_ranked + 1)


@check
def check_probabilities_fit_predictions(learner: Learner) -> None:
    """class_probabilities, if there are any, sum to one, and predict takes the largest."""
    learner, X = fit_copy(learner).update(*task().answers), task().fresh.X
    probabilities = learner.class_probabilities(X)
    if probabilities is None:
        return
    shape = (len(X), len(learner.classes_))
    require(probabilities.shape == shape, f"probabilities have shape {probabilities.shape}")
    require(bool((probabilities >= 0).all()), "probabilities are negative or not finite")
    worst = float(np.abs(probabilities.sum(1) - 1).max())
    require(worst <= 1e-5, f"the probabilities of an instance sum to 1 only within {worst:.2g}")
    is_label = learner.predict(X)[:, None] == learner.classes_
    short = float((probabilities.max(1) - probabilities[is_label]).max())
    require(
        short <= 1e-6, f"predict takes a class that is less probable than another by {short:.2g}"
    )


@check
def check_classes_in_order_of_arrival(learner: Learner) -> None:
    """classes_ lists classes as they first appear, and an update only appends."""
    data = task()
    learner = clone(learner)
    learner.fit(data.initial.X[::-1], data.initial.y[::-1])
    _require_classes(learner, [6, 4, 0])
    learner.update(*data.later)
    _require_classes(learner, [6, 4, 0, LATER])
    learner.update(data.window.X[::-1], data.window.y[::-1])
    _require_classes(learner, [6, 4, 0, LATER, NOVEL])


def _require_classes(learner: Learner, expected: list[int]) -> None:
    seen = learner.classes_.tolist()
    require(seen == expected, f"classes_ is {seen}, they came in the order {expected}")


@check
def check_remembered_was_told(learner: Learner) -> None:
    """The instances that a learner remembers have the labels that it was given."""
    data, learner = task(), fit_copy(learner)
    parts = zip((*data.initial.X, *data.answers.X), (*data.initial.y, *data.answers.y), strict=True)
    told = {X.tobytes(): y.item() for X, y in parts}
    for _ in range(2):
        kept = learner.remembered()
        if kept is None or learner._features is not None:  # then it keeps vectors, not images
            return
        truth = [told.get(instance.tobytes()) for instance in kept.X]
        require(kept.y.tolist() == truth, "remembered gives instances or labels nobody told it")
        require(kept.held_out.shape == kept.y.shape, "held_out has not one value per instance")
        require_same(learner.recall(kept), learner.predict(kept.X), "recall instead of predict")
        learner.update(*data.answers)


@check
def check_labels_are_names(learner: Learner) -> None:
    """Other names for the classes change the names in the answers and nothing else."""
    lived = keep_trial(learner)
    plain = {
        "the label of detect": lived.found.label.tolist(),
        "the cluster of detect": lived.found.cluster.tolist(),
        "predict": lived.predicted.tolist(),
    }
    for what, names in NAMINGS.items():
        for name, answer in _answers(clone(learner), names).items():
            require(answer == plain[name], f"{name} is another one with {what} as labels")


def _answers(learner: Learner, names: Mapping[int, int | str]) -> dict[str, list[int]]:
    """The results of a learner with other class names, under the original names."""
    data = task()
    digit = {name: label for label, name in names.items()}
    learner.fit(data.initial.X, [names[label] for label in data.initial.y])
    found = learner.detect(data.window.X)
    learner.update(data.answers.X, [names[label] for label in data.answers.y])
    return {
        "the label of detect": [digit[name] for name in found.label.tolist()],
        "the cluster of detect": found.cluster.tolist(),
        "predict": [digit[name] for name in learner.predict(data.fresh.X).tolist()],
    }
