"""The columns of a sweep's table that state the plan."""

from dataclasses import asdict
from typing import Any

from hexconv.spec import Plan

COLUMN_OF = {"vtcm_bytes": "stated_vtcm_bytes"}
"""Knobs whose column has another name, since the column `vtcm_bytes` is the VTCM that a run had in use."""


def plan_columns(plan: Plan | dict[str, Any]) -> dict[str, Any]:
    """Return the knobs of a plan, or of a table that is no valid plan, by the names of their columns."""
    knobs = plan if isinstance(plan, dict) else asdict(plan)
    return {COLUMN_OF.get(knob, knob): value for knob, value in knobs.items()}
