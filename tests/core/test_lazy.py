from __future__ import annotations

import json.encoder

import pytest

from cilf.core.lazy import lazy_attributes


def test_names_are_looked_up_in_their_modules() -> None:
    find = lazy_attributes("json", {"JSONEncoder": "encoder", "decoder": ""})
    assert find("JSONEncoder") is json.encoder.JSONEncoder
    assert find("decoder") is json.decoder
    with pytest.raises(AttributeError, match="module 'json' has no attribute 'JSONDecoder'"):
        find("JSONDecoder")
