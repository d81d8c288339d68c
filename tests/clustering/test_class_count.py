"""The table of rules: each of them works in both detectors, by its name."""

import pytest
import torch

from cilf.clustering.class_count import COUNT_RULES
from cilf.clustering.evidence import Evidence
from cilf.clustering.kmeans import semi_supervised_kmeans
from cilf.learners import make

from .blobs import label


@pytest.mark.parametrize("name", COUNT_RULES)
def test_every_rule_finds_one_class_that_lies_far_away(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    known = torch.tensor([[0.0, 0.0], [30.0, 0.0]])
    centres = torch.cat([known, torch.tensor([[0.0, 30.0]])])
    z = (centres.repeat(40, 1) + torch.randn(120, 2, generator=generator)).float()
    counts = range(5)
    clusterings = {k: semi_supervised_kmeans(z, known, k, generator=generator) for k in counts}
    evidence = Evidence(
        clusterings=clusterings,
        points=dict.fromkeys(counts, z),
        memory=dict.fromkeys(counts, label(known, 40, seed=1)),
        held_out=dict.fromkeys(counts, label(known, 20, seed=2)),
        curve={0: 0.4, 1: 0.9, 2: 0.7, 3: 0.6, 4: 0.5},
        generator=generator,
    )
    found = COUNT_RULES[name]().find_centres(evidence)
    assert len(found) == 1
    assert torch.allclose(found[0], centres[2], atol=1.0)


@pytest.mark.parametrize("detector", ["calibrated", "curriculum"])
@pytest.mark.parametrize("name", COUNT_RULES)
def test_detectors_take_every_rule_by_name(name: str, detector: str) -> None:
    learner = make("cilf", detector=detector, detector__count=name)
    assert learner.get_params()["detector__count"] == COUNT_RULES[name]()
