"""The embedded data set: scikit-learn's 1,797 handwritten digits of 8 x 8 pixels."""

from __future__ import annotations

import numpy as np

from cilf.data.dataset import Dataset, Split


def load_digits() -> Dataset:
    """The digits as 8 x 8 uint8 images (0..255); one fixed, stratified fifth is the test split."""
    from sklearn.datasets import load_digits as sklearn_digits  # a second to import
    from sklearn.model_selection import train_test_split

    raw = sklearn_digits()
    images = np.round(raw.images * (255 / 16)).astype(np.uint8)
    labels = raw.target.astype(np.int64)
    rows = np.arange(len(labels))
    train, test = train_test_split(rows, test_size=0.2, stratify=labels, random_state=0)
    return Dataset(
        "digits",
        train=_rows(images, labels, np.sort(train)),
        test=_rows(images, labels, np.sort(test)),
    )


def _rows(images: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> Split:
    return Split(images[rows], labels[rows], np.array([f"digits/{row}" for row in rows]))
