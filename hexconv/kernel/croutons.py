"""Convs that Hexagon's matrix engine (HMX) multiplies: packets on croutons, 8 by 8 pixels of 32 channels, NHWC8h8w32c.

A packet multiplies a crouton by all taps of a kernel, 32 inputs and 32 outputs of each. Column x of a tap moves its
products x columns to the right, so kernels lie with their last column first, and output 0 stands in column `last`:

    column of the sums     0 .. last-1                      last .. 7          in the other set of sums: 0 .. last-1
    output                 the end of the tile to the left  0 .. 7-last                                  8-last .. 7

What leaves a crouton to the right goes to the other set, which the next crouton to the right completes. Rows past the
crouton are read from the one below it. So nothing is shifted, and nothing is copied.

Taps two apart go together in a packet, taps further apart one by one (`hexconv.kernel.engine.tap_packets`).

Requantisation is exact where a conv doesn't ask for the engine's own convert, by which a store writes results. Sums
leave the engine whole: four stores that wrap write a byte of each sum, by bias tables of four exponents, and HVX puts
the bytes together and narrows them as it narrows its own sums. What all sums of a channel begin with is added in the
table: bias, rounding, and what the zero point of the source takes off.

    table:    32 low words: exponent, scale    32 high words: what is added to the sums

Nothing of this ran on hardware. The model that stands for the engine was held against Qualcomm's own public one
(`run/simulator/harness/hmx.h`).
"""

from dataclasses import dataclass

from hexconv.kernel.cost import Cost
from hexconv.kernel.engine import engine_filter, engine_packing
from hexconv.kernel.form import Form
from hexconv.kernel.layouts import Packing
from hexconv.layout import Layout
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.vectors import Array


@dataclass(frozen=True)
class Croutons(Form):
    """Packets of the matrix engine."""

    name = "croutons"
    kernel = "hmx"
    lays_source_out = True

    @classmethod
    def serves(cls, conv: object) -> str:
        """Serve all convs of the kernel: its rules refuse others."""
        return ""

    @property
    def filter_layout(self) -> tuple[Layout, Packing]:
        """The documents' filter, of signed bytes, the last column of the kernel first."""
        chain = self.conv.chain
        return engine_filter(chain, self.conv.index), engine_packing(chain, self.conv.index)

    def summed_weights(self, filter: Array) -> Array:
        """Sum over all but the output channels of OIHW8i32o4i, OIHW32o4i or OIHW32o."""
        lanes = filter.ndim - (1 if filter.shape[-1] == CHANNEL_BLOCK else 2)
        return filter.sum(axis=tuple(axis for axis in range(1, filter.ndim) if axis != lanes)).ravel()

    @property
    def products(self) -> int:
        """None of HVX."""
        return 0

    def packets(self) -> Cost:
        """Refuse: no device has timed them."""
        raise NotImplementedError("packets of the matrix engine are counted apart")

    def traffic(self) -> Cost:
        """Refuse: all of its caches lie in VTCM."""
        raise NotImplementedError("all caches of the matrix engine lie in VTCM")
