"""Messages that the page shows name its fields and buttons, not options of commands."""

from __future__ import annotations

import re
from pathlib import Path

import cilf
from cilf.console.page_words import use_page_words

SOURCES = ("data", "workflow/model_update.py", "workflow/model_fit.py", "workflow/input_data.py")
OWN = {"--local-dir", "--repo-type", "--again"}  # a command to copy; what the page never causes


def test_no_message_names_an_option() -> None:
    root = Path(cilf.__file__).parent
    files = [
        file
        for name in SOURCES
        for file in ([root / name] if name.endswith(".py") else sorted((root / name).glob("*.py")))
    ]
    fragments = [re.findall(r'"([^"\n]*--[a-z][^"\n]*)"', file.read_text()) for file in files]
    messages = [use_page_words(text) for found in fragments for text in found]
    assert len(messages) >= 8
    options = {one for message in messages for one in re.findall(r"--[a-z][\w-]*", message)}
    assert options <= OWN
