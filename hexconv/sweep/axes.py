"""The axes of a grid: each varied field with its alternatives, and its places in a case file.

The rule for the fields of `[grid]`:

- a field of `[chain]` (`input`, `dtype`, `filter_dtype`, `zero_point`, `input_layout`, `output_layout`) is that of the
  chain;
- a field of a conv (`kernel`, `out_channels`, `stride`, `padding`, ...) is that of every conv of the chain, the same
  for all of them at once;
- `[[grid.conv]]`, as often as `[[chain.conv]]`, in its order, varies fields of that one conv, apart from the others.

A field of `[plan]` that is a list of values is varied as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from hexconv.errors import InputError
from hexconv.spec import Chain, Conv2d
from hexconv.spec.wrong import check_keys

Table = dict[str, Any]
Place = tuple[str | int, ...]

CHAIN_FIELDS = tuple(field.name for field in fields(Chain) if field.name != "conv")
CONV_FIELDS = tuple(field.name for field in fields(Conv2d))


@dataclass(frozen=True)
class Axis:
    """One field that varies.

    Attributes:
        name: where its alternatives stand in the grid file, `grid.conv[0].kernel`.
        places: where each of them goes in the tables of a case: several where convs share it.
        alternatives: TOML values, in the order of the file.
    """

    name: str
    places: tuple[Place, ...]
    alternatives: tuple[Any, ...]

    def put(self, table: Table, alternative: Any) -> None:
        """Set the field to an alternative in a case's tables."""
        for *path, last in self.places:
            inner: Any = table
            for step in path:
                inner = inner[step]
            inner[last] = alternative


def axes(grid: Table, plan: Table, convs: int) -> tuple[Axis, ...]:
    """Return everything that varies, in the order of the file, the plan last.

    Args:
        grid: the table `[grid]`.
        plan: the table `[plan]`.
        convs: how many the chain has.

    Raises:
        InputError: an unknown field, one without alternatives, or one that is varied twice.
    """
    check_keys(grid, "grid", (*CHAIN_FIELDS, *CONV_FIELDS, "conv"))
    found = [*_of_chain(grid, convs), *_of_convs(grid, convs), *_of_plan(plan)]
    seen: dict[Place, str] = {}
    for axis in found:
        for place in axis.places:
            if place in seen:
                raise InputError(axis.name, f"what {seen[place]} varies, too", "only one of the two")
            seen[place] = axis.name
    return tuple(found)


def _of_chain(grid: Table, convs: int) -> Iterator[Axis]:
    """Return the axes of the chain's fields, and of fields of all convs at once."""
    for name in (name for name in grid if name != "conv"):
        in_chain = (("chain", name),)
        in_convs = tuple(("chain", "conv", index, name) for index in range(convs))
        yield _axis(f"grid.{name}", in_chain if name in CHAIN_FIELDS else in_convs, grid[name])


def _of_convs(grid: Table, convs: int) -> Iterator[Axis]:
    """Return the axes of fields of single convs."""
    tables = grid.get("conv", [])
    if not isinstance(tables, list) or len(tables) > convs or not all(isinstance(table, dict) for table in tables):
        raise InputError("grid.conv", "something else", f"[[grid.conv]] tables, at most the chain's {convs}")
    for index, table in enumerate(tables):
        check_keys(table, f"grid.conv[{index}]", CONV_FIELDS)
        for name, values in table.items():
            yield _axis(f"grid.conv[{index}].{name}", (("chain", "conv", index, name),), values)


def _of_plan(plan: Table) -> Iterator[Axis]:
    """Return the axes of the plan's fields that are lists."""
    for name, values in plan.items():
        if isinstance(values, list):
            yield _axis(f"plan.{name}", (("plan", name),), values)


def _axis(name: str, places: tuple[Place, ...], values: Any) -> Axis:
    """Return the axis of a field with its alternatives."""
    if not isinstance(values, list) or not values:
        raise InputError(name, "no list" if values != [] else "an empty list", "a list of alternatives: [1, 2, 4]")
    return Axis(name, places, tuple(values))
