"""What people see of a run: its summary, figures, the page."""

from algocapture.report.summary import Summary, summarise

__all__ = ["Summary", "summarise"]
