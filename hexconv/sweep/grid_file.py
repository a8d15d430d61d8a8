"""A grid file: a case file of which some fields have alternatives, their axes, and what to do with every case.

targets = ["cache", "llvm"]     # optional: cache (the default), llvm, hexagon
[chain]                         # a case file; what varies may be left out here
[[chain.conv]]
[plan]                          # any field may be a list of values
k_split = [1, 2, 4]
[grid]                          # alternatives for fields of the chain: hexconv.sweep.grid_file has the rule
input = [[1, 64, 64, 128], [1, 56, 56, 64]]

The rule for the fields of `[grid]`:

- a field of `[chain]` (`input`, `dtype`, `filter_dtype`, `zero_point`, `input_layout`, `output_layout`) is that of the
  chain;
- a field of a conv (`kernel`, `out_channels`, `stride`, `padding`, ...) is that of every conv of the chain, the same
  for all of them at once;
- `[[grid.conv]]`, as often as `[[chain.conv]]`, in its order, varies fields of that one conv, apart from the others.

A field of `[plan]` that is a list of values is varied as well.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hexconv.errors import InputError
from hexconv.spec import Chain, Conv2d, Plan
from hexconv.spec.case import CaseFile, parse_table, read_text
from hexconv.spec.fields import check_keys, first_complaint

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


TARGETS = ("cache", "llvm", "hexagon")
MOST_ROWS = 100_000


@dataclass(frozen=True)
class Grid:
    """What a grid file asks for.

    Attributes:
        base: the tables of a case, with the first alternative of everything that varies.
        axes: what varies, slowest first.
        targets: what to do with every case.
    """

    base: Table
    axes: tuple[Axis, ...]
    targets: tuple[str, ...]

    @classmethod
    def load(cls, path: Path) -> "Grid":
        """Read a grid file.

        Raises:
            InputError: it can't be read, or a field or an alternative can't stand there, whatever the others are.
        """
        return cls.parse(read_text(path), str(path))

    @classmethod
    def parse(cls, text: str, where: str = "grid") -> "Grid":
        """Read a grid from TOML text; `where` names its source in errors."""
        table = parse_table(text, where)
        try:
            grid = cls._of(table)
            grid._check_size()
            grid._check_alternatives()
        except InputError as error:
            raise error.within(where) from None
        return grid

    @classmethod
    def _of(cls, table: Table) -> "Grid":
        check_keys(table, "", ("chain", "plan", "grid", "targets", "documented"))
        chain, plan, grid = (_table(table, name) for name in ("chain", "plan", "grid"))
        convs = chain.get("conv", [])
        if not isinstance(convs, list) or not all(isinstance(conv, dict) for conv in convs):
            raise InputError("chain.conv", "what is no list of tables", "[[chain.conv]] tables")
        varied = axes(grid, plan, len(convs))
        base = deepcopy({"chain": {**chain, "conv": convs}, "plan": plan})
        for axis in varied:
            axis.put(base, axis.alternatives[0])
        return cls(base, varied, _targets(table.get("targets", ["cache"])))

    def __len__(self) -> int:
        """The most rows of the sweep: combinations that give the same case have one row."""
        return prod(len(axis.alternatives) for axis in self.axes) * len(self.targets)

    def tables(self) -> Iterator[Table]:
        """Yield the tables of every combination, the last field of the file varying fastest."""
        for alternatives in product(*(axis.alternatives for axis in self.axes)):
            table = deepcopy(self.base)
            for axis, alternative in zip(self.axes, alternatives, strict=True):
                axis.put(table, alternative)
            yield table

    def _check_size(self) -> None:
        if len(self) > MOST_ROWS:
            counts = " x ".join(str(len(axis.alternatives)) for axis in self.axes)
            given = f"{counts} alternatives for {len(self.targets)} targets, {len(self)} rows"
            raise InputError("grid", given, f"up to {MOST_ROWS} rows; part it into several files")

    def _check_alternatives(self) -> None:
        """Refuse alternatives that their field can't hold. A conflict with other fields is refused in its row."""
        _check_fields(self.base, "")
        for axis in self.axes:
            table = deepcopy(self.base)
            for number, alternative in enumerate(axis.alternatives):
                axis.put(table, alternative)
                _check_fields(table, f"{axis.name}[{number}]")


def _table(table: Table, name: str) -> Table:
    """Return one of the file's tables, empty where it is missing."""
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise InputError(name, "no table", f"a table [{name}]")
    return found


def _targets(value: Any) -> tuple[str, ...]:
    """Return the targets, each once."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or any(target not in TARGETS for target in values):
        raise InputError("targets", json.dumps(value, default=str)[:60], f"a list of {', '.join(TARGETS)}")
    return tuple(dict.fromkeys(values))


def _check_fields(table: Table, where: str) -> None:
    """Check every field of the tables by itself."""
    try:
        TypeAdapter(CaseFile).validate_json(json.dumps(table, default=str))
    except ValidationError as error:
        complaint = first_complaint(error)
        raise (complaint.within(where) if where else complaint) from None
    except InputError:
        pass  # These fields conflict with each other in this combination alone.


COLUMN_OF = {"vtcm_bytes": "stated_vtcm_bytes"}
"""Knobs whose column has another name, since the column `vtcm_bytes` is the VTCM that a run had in use."""


def plan_columns(plan: Plan | dict[str, Any]) -> dict[str, Any]:
    """Return the knobs of a plan, or of a table that is no valid plan, by the names of their columns."""
    knobs = plan if isinstance(plan, dict) else asdict(plan)
    return {COLUMN_OF.get(knob, knob): value for knob, value in knobs.items()}
