"""Allocate the scratch memory that a conv needs beside its caches, and declare its constants."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import tirx

from hexconv.lower.hvx import vector
from hexconv.lower.hvx.constants import Constants, offsets_of, scales_of
from hexconv.lower.hvx.inner import InnerConv
from hexconv.lower.hvx.planes import Planes, planes_of
from hexconv.lower.hvx.split import split_of
from hexconv.lower.hvx.windows import Windows, windows_of
from hexconv.spec import Plan
from hexconv.spec.activations import TABLE
from hexconv.spec.names import numbered

WHOLE = tirx.Ramp(0, 1, vector.WORDS)


@dataclass(frozen=True)
class Scratch:
    """The scratch memory of a conv beside its caches, and its constants.

    Attributes:
        offsets: the offset of each channel's sums; None where all channels have the same constant.
        windows: the sums of windows for the filter's zero point, where they are made before the tiles.
        split: high and low bytes, apart, of some rows of an int16 source; None where they already lie apart.
        scales: the per-channel values of requantisation, if there are any.
        planes: what tiles multiply where lanes are pixels; None where lanes are channels.
        table: the argument that results are looked up in, if there is one.
    """

    offsets: Constants | None
    windows: Windows | None
    split: tirx.Buffer | None
    scales: Constants | None
    planes: Planes | None
    table: tirx.Buffer | None

    @property
    def memory(self) -> list[tirx.Buffer]:
        """The buffers to allocate."""
        windows = [self.windows.columns, self.windows.corrections] if self.windows else []
        offsets, scales = (each.cache if each else None for each in (self.offsets, self.scales))
        planes = self.planes.memory if self.planes else None
        return [one for one in (offsets, self.split, scales, *windows, planes) if one is not None]

    @property
    def constants(self) -> list[Constants]:
        """The constants of its channels."""
        return [each for each in (self.offsets, self.scales) if each]

    @property
    def staged(self) -> list[Constants]:
        """The constants that are copied into VTCM."""
        return [each for each in self.constants if each.cache is not None]


def scratch_of(conv: InnerConv, arguments: Mapping[str, tirx.Buffer], plan: Plan) -> Scratch:
    """Say what scratch a conv needs beside its caches."""
    scope = plan.scope("filters")
    split = split_of(conv, plan.scope("input"))
    # Tiles load corrections word by word.
    windows = windows_of(conv, "global" if plan.activations == "splats" else plan.scope("intermediates"))
    planes = planes_of(conv, plan.scope("intermediates"))
    table = arguments.get(numbered(TABLE, conv.number))
    offsets, scales = offsets_of(conv, scope), scales_of(conv, scope)
    return Scratch(offsets, windows, split, scales, planes, table)
