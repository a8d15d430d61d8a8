"""Runs on the Hexagon instruction simulator."""

from hexconv.run.simulator.runner import Simulator

__all__ = ["Simulator"]
