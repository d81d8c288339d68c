from __future__ import annotations

from pathlib import Path

from cilf.data.listing import list_datasets

from .named_samples import as_parquet, write


def test_the_list_shows_what_is_here(root: Path) -> None:
    write(root, "mnist", as_parquet)
    write(root, "cifar10")
    entries = {entry.name: entry for entry in list_datasets()}
    assert list(entries) == ["digits", "mnist", "cifar10", "cifar50", "cifar100"]
    assert (entries["digits"].where, entries["digits"].train_rows) == ("embedded", 1437)
    assert entries["mnist"].to_row()[:6] == ("mnist", "10", "28 x 28", "30", "10", "CILF_DATA")
    assert entries["cifar10"].to_json()["here"]
    assert (entries["cifar50"].n_classes, entries["cifar50"].where) == (50, "hub")
    assert not entries["cifar50"].to_json()["here"]


def test_the_list_shows_what_is_damaged(root: Path) -> None:
    (root / "mnist").mkdir(parents=True)
    for part in ("train", "test"):
        (root / "mnist" / f"{part}.parquet").write_bytes(b"no parquet")
    assert {entry.name: entry.where for entry in list_datasets()}["mnist"] == "damaged in CILF_DATA"
