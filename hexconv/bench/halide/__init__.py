"""Halide's convs, built for Hexagon and run in this project's simulator harness: the peer on HVX."""

from hexconv.bench.halide.run import check, measured
from hexconv.bench.halide.schedule import SCHEDULES, Schedule

__all__ = ["SCHEDULES", "Schedule", "check", "measured"]
