from __future__ import annotations

from pathlib import Path

import pytest

from cilf.console.sample import start_sample
from cilf.console.service import Console
from cilf.console.store import Store
from cilf.data import load_dataset, load_instances
from cilf.errors import BadInput


def test_the_sample_is_a_fit_and_a_window(tmp_path: Path) -> None:
    store = Store(tmp_path)
    console = Console(store, tmp_path / "model", roots=[])  # uploads are read whatever the roots
    row = start_sample(console)
    fit, detect = store.jobs()
    assert (fit.kind, detect.kind, detect.window) == ("fit", "detect", row.id)
    known, new = load_dataset(fit.about["data"]), load_instances(row.source)
    assert set(known.train.y) == set(range(5))
    assert len(new) == 150
    ids = {
        identity.rpartition("/")[2] for part in (known.train, known.test) for identity in part.ids
    }
    assert not ids & set(new.ids)  # nothing of the window was learned
    with pytest.raises(BadInput, match="being changed already"):
        start_sample(console)
    store.close()
