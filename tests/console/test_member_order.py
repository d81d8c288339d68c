from __future__ import annotations

import numpy as np

from cilf.console.member_order import measure_distance, measure_uncertainty
from cilf.console.service import Console


def test_uncertain_is_what_lies_between_two_classes(console: Console) -> None:
    opened = console.open(1)
    gallery, cluster_of = opened.gallery, opened.state.cluster_of
    groups = [range(20), range(20, 30), range(30, 42), range(42, 50)]
    z = gallery.embedding.astype(float)
    centres = np.stack([z[list(rows)].mean(axis=0) for rows in groups])
    away = np.linalg.norm(z[:, None] - centres, axis=2)
    own = np.repeat(np.arange(4), [len(rows) for rows in groups])
    here = away[np.arange(50), own]
    np.testing.assert_allclose(measure_distance(gallery, cluster_of), here, rtol=1e-5)
    away[np.arange(50), own] = np.inf
    expected = here / away.min(axis=1)
    np.testing.assert_allclose(measure_uncertainty(gallery, cluster_of), expected, atol=1e-4)
