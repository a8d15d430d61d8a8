"""Allocate the scratch memory that a conv needs beside its caches."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import tirx

from hexconv.lower.hvx import vector
from hexconv.lower.hvx.inner import InnerConv
from hexconv.lower.hvx.planes import Planes, planes_of
from hexconv.lower.hvx.scales import Scales, scales_of
from hexconv.lower.hvx.split import split_of
from hexconv.lower.hvx.taps import taps_memory
from hexconv.lower.hvx.windows import Windows, windows_of
from hexconv.spec import Plan
from hexconv.spec.conv import TABLE
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import bias_name, numbered

WHOLE = tirx.Ramp(0, 1, vector.WORDS)


@dataclass(frozen=True)
class Scratch:
    """The scratch memory of a conv beside its caches.

    Attributes:
        bias: the argument that holds the bias, if there is one.
        offsets: int32, the offset of each channel's sums; None where all channels have the same constant.
        windows: the sums of windows for the filter's zero point, where they are made before the tiles.
        split: high and low bytes, apart, of some rows of an int16 source; None where they already lie apart.
        scales: the per-channel values of requantisation, if there are any.
        taps: the taps of a depthwise conv, in all variants.
        planes: what tiles multiply where lanes are pixels; None where lanes are channels.
        table: the argument that results are looked up in, if there is one.
    """

    bias: tirx.Buffer | None
    offsets: tirx.Buffer | None
    windows: Windows | None
    split: tirx.Buffer | None
    scales: Scales | None
    taps: tirx.Buffer | None
    planes: Planes | None
    table: tirx.Buffer | None

    @property
    def memory(self) -> list[tirx.Buffer]:
        """The buffers to allocate."""
        windows = [self.windows.columns, self.windows.corrections] if self.windows else []
        scales = [self.scales.memory] if self.scales else []
        planes = (self.planes.memory, self.planes.words) if self.planes else ()
        apart = [buffer for buffer in (self.offsets, self.split, self.taps) if buffer is not None]
        return [*apart, *scales, *windows, *(buffer for buffer in planes if buffer is not None)]


def scratch_of(conv: InnerConv, arguments: Mapping[str, tirx.Buffer], plan: Plan) -> Scratch:
    """Say what scratch a conv needs beside its caches."""
    scope = plan.scope("filters")
    channels = conv.out_blocks * CHANNEL_BLOCK
    name = numbered("offset", conv.number)
    offsets = tirx.decl_buffer((channels,), "int32", name, scope=scope, data_alignment=vector.BYTES)
    bias = arguments.get(bias_name(conv.number))
    scales = scales_of(conv, arguments, scope)
    has = offsets if conv.has_offsets else None
    split = split_of(conv, plan.scope("input"))
    # Tiles load corrections word by word.
    windows = windows_of(conv, "global" if plan.activations == "splats" else plan.scope("intermediates"))
    planes = planes_of(conv, plan.scope("intermediates"))
    table = arguments.get(numbered(TABLE, conv.number))
    return Scratch(bias, has, windows, split, scales, taps_memory(conv, scope), planes, table)
