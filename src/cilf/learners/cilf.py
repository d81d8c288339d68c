"""CILF: an embedding that adapts to the classes it is told about, one window after another."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cilf.core import Detection, progress, validation
from cilf.core.random import generator, torch_generator
from cilf.core.types import Array, Floats, Ints
from cilf.learners import curriculum, novel_count
from cilf.learners.base import Arrays, Learner
from cilf.learners.clustering import Clusters, semi_supervised_kmeans, silhouette
from cilf.nn import losses, training
from cilf.nn.backbones import Factory
from cilf.nn.memory import Memory, set_aside
from cilf.nn.network import (
    Network,
    as_tensor,
    embed,
    make_network,
    resolve_device,
    to_numpy,
)
from cilf.nn.prototypes import annealed, class_means


class CILF(Learner):
    name: ClassVar[str] = "cilf"

    def __init__(
        self,
        *,
        seed: int = 0,
        device: str = "auto",
        backbone: str | Factory = "auto",
        width: int | None = None,
        embedding_size: int = 64,
        alpha: float = 0.3,
        margin: float = 1.0,
        lambda1: float = 1.0,
        lambda2: float = 1.0,
        beta: float = 0.8,
        epochs: int = 20,
        batch_size: int = 64,
        learning_rate: float = 0.01,
        weight_decay: float = 0.001,
        schedule: str = "constant",
        clip: float | None = None,
        augmentation: str | None = None,
        k_max: int = 8,
        count: str = "excess-mass",
        weighted: bool = False,
        gamma: float = 0.7,
        order: str = "certainty",
        pace_start: float = 0.4,
        pace_growth: float = 1.5,
        pace_every: int = 20,
        detect_epochs: int = 5,
        detect_steps: int = 20,
        detect_learning_rate: float = 0.005,
        replay: int = 64,
        update_epochs: int = 15,
        update_learning_rate: float = 0.01,
        distill: float = 1.0,
        memory_size: int = 2000,
        calibration_size: int = 20,
    ) -> None:
        for k, v in locals().items():
            if k not in ("self", "__class__"):
                setattr(self, k, v)

    # Algorithm 1
    def _fit(self, X: Array, y: Ints) -> None:
        rng = generator(self.seed, "fit")
        train, aside = set_aside(y, self.calibration_size, rng)
        network = make_network(
            self.backbone, X.shape[1:], embedding_size=self.embedding_size, width=self.width,
            seed=self.seed, device=resolve_device(self.device),
        )
        x = as_tensor(X[train], network.device)
        network.standardise(x)
        labels = torch.from_numpy(y[train]).to(network.device)
        self._prototypes = self._learn_embedding(network, x, labels)
        self._network = network
        self._memory = Memory(X[train], y[train]).rebalanced(self.memory_size, rng)
        self._calibration = Memory(X[aside], y[aside])

    def _learn_embedding(self, network: Network, x: Tensor, y: Tensor) -> Tensor:
        n_classes = int(y.max()) + 1
        prototypes = class_means(embed(network, x), y, n_classes)[0]
        draws = torch_generator(self.seed, "fit", "draws")

        def objective(z: Tensor, rows: Tensor) -> Tensor:
            intra = losses.prototype_cross_entropy(z, y[rows], prototypes, self.alpha)
            return intra + self.lambda1 * losses.triplet_loss(z, y[rows], self.margin, draws)

        batches = training.shuffled(len(x), self.batch_size, draws, network.device)
        for epoch in training.epochs(network, x, batches, objective, self._settings("fit"), seed=self.seed, purpose="fit"):
            means, counts = class_means(epoch.z, y[epoch.rows], n_classes)
            prototypes = annealed(prototypes, means, counts, self.beta)
        if self.epochs:
            self._final = getattr(self, "_final", "exact")
        return class_means(embed(network, x), y, n_classes)[0]

    def _settings(self, what: str) -> training.Settings:
        e, lr = dict(fit=(self.epochs, self.learning_rate), update=(self.update_epochs, self.update_learning_rate), detect=(self.detect_epochs, self.detect_learning_rate))[what]
        return training.Settings(epochs=e, learning_rate=lr, weight_decay=self.weight_decay, schedule=self.schedule, clip=self.clip, augmentation=self.augmentation)

    # Algorithm 2
    def _detect(self, X: Array, n_novel: int | None) -> Detection:
        device = self._network.device
        x = as_tensor(X, device)
        z = embed(self._network, x)
        draws = torch_generator(self.seed, "detect", self._n_updates)
        curve: dict[int, float] = {}
        if n_novel is None:
            ks = range(0, min(self.k_max, len(X)) + 1)
            clusterings = {k: self._cluster(z, k, draws) for k in ks}
            curve = {k: silhouette(z, c.assignment) for k, c in clusterings.items()}
            cal = embed(self._network, as_tensor(self._calibration.X, device))
            n_novel = novel_count.excess_mass(clusterings, z, cal, torch.from_numpy(self._calibration.y), generator=draws)
        clusters = self._cluster(z, n_novel, draws)
        network, clusters = self._tune(x, clusters, draws)
        z = embed(network, x)
        d = losses.squared_distances(z, clusters.centres).sqrt()
        C = clusters.n_known
        near, label = d[:, :C].min(1)
        novelty = near
        assign = d.argmin(1)
        if n_novel:
            novelty = near - d[:, C:].amin(1)
        cluster = torch.where(assign >= C, assign - C, -1)
        return Detection(to_numpy(novelty), self.classes_[label.numpy()], cluster.numpy().astype(np.int64), n_novel, curve, to_numpy(z))

    def _cluster(self, z: Tensor, k: int, draws) -> Clusters:
        return semi_supervised_kmeans(z, self._prototypes, k, generator=draws, beta=getattr(self,"kbeta",1.0))

    def _tune(self, x: Tensor, clusters: Clusters, draws) -> tuple[Network, Clusters]:
        network = copy.deepcopy(self._network)
        if self.detect_epochs == 0:
            return network, clusters
        n, C, K = len(x), clusters.n_known, len(clusters.centres)
        mem_x = as_tensor(self._memory.X, network.device)
        mem_y = torch.from_numpy(self._memory.y)
        both = torch.cat([x, mem_x])
        pseudo = torch.cat([clusters.assignment, mem_y])
        centres = clusters.centres
        old = self._prototypes
        z = embed(network, x)
        ranks = curriculum.easiest_of_each(curriculum.certainty(z, centres), pseudo[:n])

        def batches(epoch: int) -> Iterable[Tensor]:
            for step in range(self.detect_steps):
                share = curriculum.pace(epoch * self.detect_steps + step, self.pace_start, self.pace_growth, self.pace_every)
                pool = torch.nonzero(ranks < share)[:, 0]
                rows = pool[torch.randint(len(pool), (self.batch_size,), generator=draws)]
                mem = n + torch.randint(len(mem_x), (self.replay,), generator=draws)
                yield torch.cat([rows, mem])

        def objective(z: Tensor, rows: Tensor) -> Tensor:
            y = pseudo[rows]
            loss = losses.prototype_cross_entropy(z, y, centres, self.alpha)
            loss = loss + self.lambda1 * losses.triplet_loss(z, y, self.margin, draws)
            return loss + self.lambda2 * losses.prototype_drift(z, y, old)

        for epoch in training.epochs(network, both, batches, objective, self._settings("detect"), seed=self.seed, purpose="detect"):
            zz = embed(network, both)
            zx, zm = zz[:n], zz[n:]
            means, counts = class_means(zm, mem_y, C)
            known = torch.where((counts > 0)[:, None], means, centres[:C])
            nm, nc = class_means(zx, pseudo[:n], K)
            centres = torch.cat([known, annealed(centres[C:], nm[C:], nc[C:], 0.0)])
            # trim to certain
            pseudo[:n] = losses.squared_distances(zx, centres).argmin(1)
            ranks = curriculum.easiest_of_each(curriculum.certainty(zx, centres), pseudo[:n])
        return network, Clusters(centres, pseudo[:n], C)

    # Algorithm 3
    def _update(self, X: Array, y: Ints, n_classes: int) -> None:
        rng = generator(self.seed, "update", self._n_updates)
        draws = torch_generator(self.seed, "update", self._n_updates)
        train, aside = set_aside(y, self.calibration_size, rng)
        old_net = self._network
        network = copy.deepcopy(old_net)
        old_p = self._prototypes
        pool = Memory(X[train], y[train]).joined(self._memory.X, self._memory.y)
        n_new = len(train)
        x = as_tensor(pool.X, network.device)
        labels = torch.from_numpy(pool.y)
        z0 = embed(network, x)
        means, counts = class_means(z0, labels, n_classes)
        C = len(old_p)
        prototypes = torch.cat([old_p, means[C:]])
        batches = training.shuffled(len(x), self.batch_size, draws, network.device)

        def objective(z: Tensor, rows: Tensor) -> Tensor:
            y = labels[rows]
            loss = losses.prototype_cross_entropy(z, y, prototypes, self.alpha)
            mem = rows >= n_new
            if self.distill and bool(mem.any()):
                loss = loss + self.distill * losses.distillation(z[mem], z0[rows[mem]], prototypes, old_p, self.alpha)
            loss = loss + self.lambda1 * losses.triplet_loss(z, y, self.margin, draws)
            return loss + self.lambda2 * losses.prototype_drift(z, y, old_p)

        for epoch in training.epochs(network, x, batches, objective, self._settings("update"), seed=self.seed, purpose="update"):
            means, counts = class_means(epoch.z, labels[epoch.rows], n_classes)
            prototypes = annealed(prototypes, means, counts, self.beta)
        means, counts = class_means(embed(network, x), labels, n_classes)
        self._prototypes = annealed(prototypes, means, counts, 0.0)
        self._network = network
        self._memory = pool.rebalanced(self.memory_size, rng)
        self._calibration = self._calibration.joined(X[aside], y[aside]).capped(self.calibration_size, rng)

    def _predict(self, X: Array) -> Ints:
        z = embed(self._network, as_tensor(X, self._network.device))
        return losses.squared_distances(z, self._prototypes).argmin(1).numpy()

    def _embed(self, X: Array) -> Floats:
        return to_numpy(embed(self._network, as_tensor(X, self._network.device)))

    def _get_state(self):
        return {}, {}
    def _set_state(self, a, p):
        pass
