"""Write a case as TOML text: the fields that differ from their defaults, in the order of the dataclasses."""

from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import tomli_w

from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d, Padding
from hexconv.spec.plan import Plan


def to_toml(
    chain: Chain, plan: Plan | None, documented: Iterable[tuple[str, int]] = (), states_knobs: bool = True
) -> str:
    """Return the text of a case file.

    Args:
        chain: what is computed.
        plan: how it is scheduled; None where no plan is stated.
        documented: names of caches, each with its documented elements.
        states_knobs: whether the plan states knobs. If so, a plan of all defaults is written with a split, since a
            plan that is empty, or has a kernel alone, states none.

    >>> print(to_toml(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)), Plan(h_split=2)))
    [chain]
    input = [1, 8, 8, 4]
    [[chain.conv]]
    out_channels = 2
    [plan]
    h_split = 2
    <BLANKLINE>
    """
    lines = ["[chain]", *_lines(chain)]
    for conv in chain.conv:
        lines += ["[[chain.conv]]", *_lines(conv)]
    if plan:
        lines += ["[plan]", *_lines(plan)]
        lines += [f"k_split = {plan.k_split}"] if states_knobs and not plan.stated else []
    if figures := dict(documented):
        lines += tomli_w.dumps({"documented": figures}).splitlines()
    return "\n".join([*lines, ""])


def _lines(table: Chain | Conv2d | Plan) -> list[str]:
    """Return `key = value` for every field that is not at its default; sub-tables of a chain are written elsewhere."""
    stated = ((field, getattr(table, field.name)) for field in fields(table) if field.name != "conv")
    return [f"{field.name} = {_value(value)}" for field, value in stated if not _is_default(field, value)]


def _is_default(field: Any, value: object) -> bool:
    """Return whether a file without the field says the same."""
    default = field.default
    return default is not MISSING and getattr(default, "default", default) == value


def _value(value: object) -> str:
    """Return a value in TOML's notation."""
    if isinstance(value, Padding):
        return _value([value.top, value.left, value.bottom, value.right])
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if is_dataclass(value):
        inside = ((field.name, getattr(value, field.name)) for field in fields(value))
        stated = [f"{name} = {_value(item)}" for name, item in inside if item is not None]
        return "{ " + ", ".join(stated) + " }"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")
