"""Messages of commands in the words of the page: where the page has a field, there is no option."""

from __future__ import annotations

import re

# What a command says -> what the page says.
WORDS = (
    (
        r" ?\(--force; cilf rollback undoes it\)",
        " (the button “Update anyway”; a rollback undoes it)",
    ),
    (r", or name the right one with --column", ""),
    (r" ?\(--force\)", " (the button “Update anyway”)"),
    (r"with label=\.\.\. \(--label on the command line\)", "in the field “Label column”"),
    (r"with column=\.\.\. \(--column on the command line\)", "in the field “Content column”"),
    (r"column=\.\.\. \(--column on the command line\)", "the field “Content column”"),
    (r"label=\.\.\. \(--label on the command line\)", "the field “Label column”"),
    (r" ?\(--skip-bad, skip_bad=True\)", " (the box “Leave out what cannot be read”)"),
    (r" \(size=\.\.\., on the command line --size, changes it\)", ""),
    (r" \(--[\w-]+(, \w+=\w+)?\)", ""),
    (r" \(cilf rollback\)", " (on the page “Classes”)"),
    (r": see 'cilf data'", ""),
    (r", or see 'cilf data'", ""),
    (r" or with 'cilf fit DATA --out [^']*'", ""),
)


def use_page_words(message: str) -> str:
    """A message without options of commands.

    >>> use_page_words("look for wrong labels, or keep it anyway (--force).")
    'look for wrong labels, or keep it anyway (the button “Update anyway”).'
    """
    for pattern, words in WORDS:
        message = re.sub(pattern, words, message)
    return message
