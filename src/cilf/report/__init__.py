"""Reports: tables and one self-contained page, made from run folders alone.

A report never runs anything again: what ``cilf.evaluate.records`` reads is all it knows.
"""

from cilf.report.page import write_report
from cilf.report.tables import Table

__all__ = ["Table", "write_report"]
