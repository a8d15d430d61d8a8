"""Halide's convs, built for Hexagon and run in this project's simulator harness: the peer on HVX."""

from hexconv.bench.halide.run import check, measured, varies
from hexconv.bench.halide.schedule import SCHEDULES, AnySchedule, Schedule

__all__ = ["SCHEDULES", "AnySchedule", "Schedule", "check", "measured", "varies"]
