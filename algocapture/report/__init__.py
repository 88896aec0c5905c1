"""What people see of a run: its summary, figures, the page."""

from algocapture.elsewhere import elsewhere

with elsewhere():  # where no matplotlibrc is that others wrote
    from algocapture.report.export import PAGE, write_figures, write_page
    from algocapture.report.figures import (
        figure_cost,
        figure_curve,
        figure_error,
        figure_exponent,
        figure_unadapted,
    )
    from algocapture.report.html import figures, page, render
    from algocapture.report.results import Results
    from algocapture.report.summary import Summary, summarise, summarise_sweep

__all__ = [
    "PAGE",
    "Results",
    "Summary",
    "figure_cost",
    "figure_curve",
    "figure_error",
    "figure_exponent",
    "figure_unadapted",
    "figures",
    "page",
    "render",
    "summarise",
    "summarise_sweep",
    "write_figures",
    "write_page",
]
