"""Reports: tables and one self-contained page, made from run folders alone.

A report runs nothing again: it knows only what ``cilf.evaluate.records`` reads.
"""

from typing import TYPE_CHECKING

from cilf.core.lazy import lazy_attributes

if TYPE_CHECKING:
    from cilf.report.page import write_report
    from cilf.report.tables import Table

__all__ = ["Table", "write_report"]

__getattr__ = lazy_attributes(__name__, {"Table": "tables", "write_report": "page"})
