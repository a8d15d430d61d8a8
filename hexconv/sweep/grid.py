"""A grid file: a case file of which some fields have alternatives, and what to do with every case.

targets = ["cache", "llvm"]     # optional: cache (the default), llvm, hexagon
[chain]                         # a case file; what varies may be left out here
[[chain.conv]]
[plan]                          # any field may be a list of values
k_split = [1, 2, 4]
[grid]                          # alternatives for fields of the chain: hexconv.sweep.axes has the rule
input = [[1, 64, 64, 128], [1, 56, 56, 64]]
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hexconv.errors import InputError
from hexconv.spec.case import CaseFile
from hexconv.spec.document import parse_table, read_text
from hexconv.spec.wrong import check_keys, first_complaint
from hexconv.sweep.axes import Axis, Table, axes

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
        """Rows, at most: combinations that come to the same case are one."""
        return prod(len(axis.alternatives) for axis in self.axes) * len(self.targets)

    def tables(self) -> Iterator[Table]:
        """The tables of every combination, the last field of the file varying fastest."""
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
        """Refuse what can't stand in its field at all; what doesn't go with the rest of a case is a row's business."""
        _check_fields(self.base, "")
        for axis in self.axes:
            table = deepcopy(self.base)
            for number, alternative in enumerate(axis.alternatives):
                axis.put(table, alternative)
                _check_fields(table, f"{axis.name}[{number}]")


def _table(table: Table, name: str) -> Table:
    """One of the file's tables, empty where it isn't there."""
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise InputError(name, "no table", f"a table [{name}]")
    return found


def _targets(value: Any) -> tuple[str, ...]:
    """What to do with every case, each once."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or any(target not in TARGETS for target in values):
        raise InputError("targets", json.dumps(value, default=str)[:60], f"a list of {', '.join(TARGETS)}")
    return tuple(dict.fromkeys(values))


def _check_fields(table: Table, where: str) -> None:
    """Every field of the tables for itself."""
    try:
        TypeAdapter(CaseFile).validate_json(json.dumps(table, default=str))
    except ValidationError as error:
        complaint = first_complaint(error)
        raise (complaint.within(where) if where else complaint) from None
    except InputError:
        pass  # fields that don't go with each other, in this combination
