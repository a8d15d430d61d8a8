"""The plots of the page: each has a chart, words that describe it, and a table of its numbers."""

from hexconv.report.plots.cost_plots import front_plot, split_plots
from hexconv.report.plots.memory_plots import lifetimes_plot, vtcm_plot
from hexconv.report.plots.plot import Format, Numbers, Plot
from hexconv.report.plots.slot_plots import Reached, packets_plot, roofline_plot, timeline_plot

__all__ = [
    "Format",
    "Numbers",
    "Plot",
    "Reached",
    "front_plot",
    "lifetimes_plot",
    "packets_plot",
    "roofline_plot",
    "split_plots",
    "timeline_plot",
    "vtcm_plot",
]
