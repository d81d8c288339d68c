from __future__ import annotations

import numpy as np

from cilf.evaluate.records import RunFolder, Snapshot
from cilf.report.clusters import find_correct, list_clusters


def test_right_agrees_with_a_slow_reading_of_the_definition(last: Snapshot) -> None:
    expected = []
    for i, truth in enumerate(last.truth.tolist()):
        cluster = int(last.cluster[i])
        if cluster >= 0:
            expected.append(str(last.matched[cluster]) == str(truth))
        else:
            expected.append(not last.novel[i] and last.label[i] == truth)
    assert find_correct(last).tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_without_clusters_only_known_instances_can_be_right(digits_run: RunFolder) -> None:
    snapshot = digits_run.read_snapshot(3)
    assert snapshot is not None
    assert np.array_equal(find_correct(snapshot), ~snapshot.novel)
    assert list_clusters(snapshot) == []


def test_clusters_know_size_match_and_share_and_put_right_members_first(last: Snapshot) -> None:
    mixed, _, pure, unmatched = list_clusters(last)
    assert (mixed.number, mixed.size, mixed.matched, mixed.n_right) == (1, 32, "2", 20)
    assert mixed.share == 20 / 32
    assert last.truth[mixed.members].tolist() == [2] * 20 + [4] * 12
    assert pure.share == 1.0
    assert (unmatched.matched, unmatched.n_right) == ("", 0)
