"""A run as one HTML file, to read, print or send: `write_report`."""

from app.report.document import report, write_report

__all__ = ["report", "write_report"]
