"""A run as one HTML file, to read, print or send: `write_report`."""

from app.report.document import report, single_page, write_report

__all__ = ["report", "single_page", "write_report"]
