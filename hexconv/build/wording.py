"""Writes the comments of a header, which describe its chain."""

from dataclasses import dataclass
from importlib.metadata import version
from math import prod

import numpy as np

from hexconv.analyze import needed_work, planned_work
from hexconv.layout import Layout, packed
from hexconv.spec import Case
from hexconv.whitelist import Code


@dataclass(frozen=True)
class Argument:
    """A tensor that a call reads or writes.

    Attributes:
        dtype: the type of an element.
        layout: the name of its layout.
        shape: its physical shape in that layout.
        bytes: the bytes that it takes.
    """

    dtype: str
    layout: str
    shape: tuple[int, ...]
    bytes: int

    @classmethod
    def like(cls, layout: str, shape: tuple[int, ...], dtype: str) -> "Argument":
        """Return an argument with this layout, physical shape and dtype; the bytes follow from them."""
        return cls(dtype, layout, shape, prod(shape) * np.dtype(dtype).itemsize)

    def layout_for(self, shape: tuple[int, ...]) -> Layout:
        """Return the layout of a tensor of this logical NHWC shape."""
        return packed(self.layout, shape, logical="NHWC")


@dataclass(frozen=True)
class Description:
    """A chain in words.

    Attributes:
        summary: the chain in one line.
        facts: lines with the case as TOML, and with the figures of its plan.
        version: the version of hexconv.
    """

    summary: Code
    facts: tuple[Code, ...]
    version: str


def description(case: Case) -> Description:
    """Describe a case: shapes, dtypes, quantisation and plan as its file has them, and the closed forms' figures."""
    chain, needed = case.chain, needed_work(case.chain)
    planned = planned_work(chain, case.settled)
    shapes = " -> ".join("x".join(map(str, shape)) for shape in chain.shapes)
    traffic, macs = (sum(work.values()) for work in (planned.traffic_bytes, planned.macs))
    facts = [
        "The case, as hexconv reads it:",
        "",
        *(f"    {line}" if line else "" for line in case.to_toml().splitlines()),
        "",
        f"Traffic: {traffic} bytes, of which {sum(needed.traffic_bytes.values())} are needed.",
        f"Multiply-accumulates: {macs}, of which {sum(needed.macs.values())} are needed.",
    ]
    convs = "1 conv" if len(chain.conv) == 1 else f"{len(chain.conv)} convs"
    summary = Code.comment(f"{convs} of {chain.dtypes}, {shapes}")
    return Description(summary, tuple(map(Code.comment, facts)), version("hexconv"))
