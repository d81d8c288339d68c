"""Files of labels that wait for the worker to import them."""

from __future__ import annotations

import uuid

from cilf.console.service import Console
from cilf.console.store import Job, Store
from cilf.core.files import make_folder, replace_file

IMPORT = "import"  # a kind of jobs
IMPORTS = "imports"  # folder of the store


def start_import(
    console: Console, window: int, content: bytes, format: str, person: str = ""
) -> int:
    """Queue the import of a file of labels. Returns the number of the job."""
    console.open(window)
    folder, name = console.store.folder / IMPORTS, uuid.uuid4().hex
    make_folder(folder)
    replace_file(folder / name, content)
    return console.store.add_job(IMPORT, window, file=name, format=format, person=person)


def read_import(store: Store, job: Job) -> bytes:
    """The file that a job imports."""
    name: str = job.about["file"]
    return (store.folder / IMPORTS / name).read_bytes()


def remove_import(store: Store, job: Job) -> None:
    """Remove the file of a job that has ended."""
    if job.kind == IMPORT:
        (store.folder / IMPORTS / job.about["file"]).unlink(missing_ok=True)
