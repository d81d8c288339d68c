"""What is wrong with the store, in one sentence that is true."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError, OperationalError

from cilf.console.log import SERVER

NOTHING_SAVED = "Nothing was saved."
UNKNOWN = f"the store failed, {SERVER} in the store says why. {NOTHING_SAVED}"
FULL = f"the disk of the store is full. {NOTHING_SAVED} Make room, then try again."
LOCKED = f"another program holds the database. {NOTHING_SAVED} Try again when it is done."
OTHER_SCHEMA = (
    f"the database lacks a table or a column. {NOTHING_SAVED} Restore a backup, or start a new "
    "store."
)
READ_ONLY = f"the store cannot be written. {NOTHING_SAVED} Check its permissions and its disk."
DAMAGED = f"the database is damaged. {NOTHING_SAVED} Restore a backup."
UNREACHABLE = f"the database cannot be reached. {NOTHING_SAVED} Start it, then try again."

SQLITE = {  # what SQLite says
    "database or disk is full": FULL,
    "database( table)? is (locked|busy)": LOCKED,
    "no such (table|column)|has no column": OTHER_SCHEMA,
    "readonly database|unable to open database": READ_ONLY,
    "malformed|not a database": DAMAGED,
}
POSTGRESQL = {  # the beginning of its code of an error
    "53100": FULL, "55P03": LOCKED, "40P01": LOCKED, "42P01": OTHER_SCHEMA, "42703": OTHER_SCHEMA,
    "25006": READ_ONLY, "42501": READ_ONLY, "XX001": DAMAGED, "08": UNREACHABLE, "57P": UNREACHABLE,
}  # fmt: skip
SYSTEM = {
    errno.ENOSPC: FULL, errno.EDQUOT: FULL, errno.EROFS: READ_ONLY, errno.EACCES: READ_ONLY,
    errno.EPERM: READ_ONLY,
}  # fmt: skip


def explain_problem(error: Exception) -> str:
    """The sentence about an error of the database or of the disk."""
    if isinstance(error, OSError):
        return SYSTEM.get(error.errno or 0, UNKNOWN)
    original = getattr(error, "orig", None)
    code = getattr(original, "sqlstate", None)
    if code is not None:
        return _find(POSTGRESQL, code.startswith)
    if isinstance(error, OperationalError) and "psycopg" in type(original).__module__:
        return UNREACHABLE  # an error without a code comes from the connection
    if isinstance(error, DBAPIError):
        return _find(SQLITE, lambda pattern: re.search(pattern, str(original)) is not None)
    return UNKNOWN


def _find(sentences: dict[str, str], fits: Callable[[str], bool]) -> str:
    return next((sentence for sign, sentence in sentences.items() if fits(sign)), UNKNOWN)
