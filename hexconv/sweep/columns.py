"""A plan as columns of a sweep's table."""

from dataclasses import asdict
from typing import Any

from hexconv.spec import Plan

COLUMN_OF = {"vtcm_bytes": "stated_vtcm_bytes"}
"""Knobs whose column has another name: `vtcm_bytes` is what a run had in use."""


def plan_columns(plan: Plan | dict[str, Any]) -> dict[str, Any]:
    """The knobs of a plan, or of the table that was meant to be one, by the names of their columns."""
    knobs = plan if isinstance(plan, dict) else asdict(plan)
    return {COLUMN_OF.get(knob, knob): value for knob, value in knobs.items()}
