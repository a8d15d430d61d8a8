"""The plots of the page: each has a chart, words that describe it, and a table of its numbers."""

from hexconv.report.plots.front import front_plot
from hexconv.report.plots.heat import split_plots
from hexconv.report.plots.over_slots import timeline_plot
from hexconv.report.plots.over_time import lifetimes_plot
from hexconv.report.plots.over_vtcm import vtcm_plot
from hexconv.report.plots.packets import packets_plot
from hexconv.report.plots.plot import Format, Numbers, Plot
from hexconv.report.plots.roofline import Reached, roofline_plot

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
