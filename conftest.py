"""What all tests share, doctests too."""

from __future__ import annotations

import os

import hypothesis
import pytest

from cilf.core import notices

# The same cases in every run, and no wall time decides: a busy machine is not a failure.
hypothesis.settings.register_profile("cilf", deadline=None, derandomize=True)
hypothesis.settings.load_profile("cilf")


@pytest.fixture(scope="session", autouse=True)
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A cache that ends with the tests: one for all workers, so that data are decoded once."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    os.environ["CILF_CACHE"] = str(base / "cilf-cache")


@pytest.fixture(autouse=True)
def _notices_start_afresh() -> None:
    """Every test hears what is said in it, also if another has heard it before."""
    notices.forget()
