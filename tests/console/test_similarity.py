from __future__ import annotations

import numpy as np
import pytest

from cilf.console import similarity
from cilf.console.service import Console

from .conftest import HENS, act


def test_similar_vectors_are_found_as_by_sorting_everything() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 6)).astype(np.float32)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    rows, cosine = similarity.find_similar(unit, z[7], 10)
    everything = unit.astype(float) @ unit[7].astype(float)
    np.testing.assert_array_equal(rows, np.argsort(-everything)[:10])
    np.testing.assert_allclose(cosine, np.sort(everything)[::-1][:10], atol=1e-6)
    assert len(similarity.find_similar(unit, z[7], 1000)[0]) == 300


def test_the_nearest_class_is_the_most_likely(console: Console) -> None:
    dogs = [20, 21, 22]
    ranked = similarity.rank_classes(console, 1, dogs)
    assert [name for name, _ in ranked] == ["dog", "cat"]
    assert sum(share for _, share in ranked) == pytest.approx(1)
    assert ranked[0][1] > 0.5
    act(console, 1, "name", clusters=[HENS], name="hen")
    assert similarity.rank_classes(console, 1, [42, 43])[0][0] == "hen"
    assert similarity.rank_classes(console, 1, []) == []
