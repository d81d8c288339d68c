from __future__ import annotations

import pytest

from cilf.data.options import Options
from cilf.data.readers import FOLDER, READERS, SHARDS


@pytest.mark.parametrize("name", READERS)
def test_a_format_takes_options_that_exist(name: str) -> None:
    assert READERS[name].options <= set(Options.names())


@pytest.mark.parametrize("name", READERS)
def test_a_file_has_a_suffix_and_a_folder_has_none(name: str) -> None:
    assert bool(READERS[name].suffixes) == (name not in (FOLDER, SHARDS))
