"""Reports: tables and one self-contained page, made from run folders alone.

A report runs nothing again: it knows only what ``cilf.evaluate.records`` reads.
"""

from cilf.report.page import write_report
from cilf.report.tables import Table

__all__ = ["Table", "write_report"]
