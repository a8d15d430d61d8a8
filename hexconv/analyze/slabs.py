"""Count the slabs of 8 rows that a nest of blocks holds of every tensor, and the steps in which it makes them.

Stripes. A conv that computes `step` block rows writes 8 * step rows, 0 .. 8 * step - 1 of its step, and reads

    rows 0 .. (8 * step - 1) * stride + (kernel - 1) * dilation         relative to where the step starts

and a step that starts at a block row of the output starts at a block row of the input (`hexconv.spec.extents`), so the
stripe that it reads holds

    slabs = ((8 * step - 1) * stride + (kernel - 1) * dilation) // 8 + 1

slabs of 8 rows, or the whole tensor if that is less. For 1x1 with stride 1 that is `step`. A 3x3 kernel reads 2 rows
more than it writes, its halo, and these open one more slab: step 2 reads rows 0 .. 17, slabs 0, 1 and 2. This is why
the document's 3x3 caches have h_split + 1 = 3 slabs. Stride 2 reads twice the rows: 31 + 2 rows, 5 slabs.

Steps of earlier convs. The slabs of an intermediate are again computed h_split at a time (fewer if it has fewer), and
the stripe behind them follows by the same formula with step = min(h_split, slabs).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hexconv.analyze.exact import ceil_divide, smaller
from hexconv.spec import Chain, Extents, tensor_extents
from hexconv.spec.extents import slabs_read


@dataclass(frozen=True)
class Splits:
    """How splits divide the tensors of a chain: the input is tensor 0, conv i writes tensor i + 1.

    Attributes:
        chain: the chain that is divided.
        h_split: the slabs of the output in a step: a number, or an array of them, for which all is found at once.
        k_split: the blocks of output channels in a tile, likewise.
    """

    chain: Chain
    h_split: Any
    k_split: Any

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def slabs(self) -> tuple[Any, ...]:
        """The slabs of 8 rows that are held of every tensor.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
        >>> splits = Splits(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), h_split=2, k_split=1)
        >>> splits.slabs, splits.row_steps
        ((3, 3, 2), (2, 4))
        """

        def read(index: int, slabs: Any) -> Any:
            step = smaller(self.h_split, slabs)
            return smaller(slabs_read(self.chain.conv[index], step), self.extents[index].row_blocks)

        return self.chain.backwards(smaller(self.h_split, self.extents[-1].row_blocks), read)

    @cached_property
    def row_steps(self) -> tuple[Any, ...]:
        """The steps of `h_split` slabs that each conv takes: over the output, or over the stripe that is read next."""
        return tuple(ceil_divide(slabs, self.h_split) for slabs in (*self.slabs[1:-1], self.extents[-1].row_blocks))

    @cached_property
    def step_slabs(self) -> tuple[Any, ...]:
        """The slabs that each conv makes in a step."""
        return tuple(smaller(self.h_split, slabs) for slabs in self.slabs[1:])

    @cached_property
    def channel_tiles(self) -> tuple[Any, ...]:
        """The tiles of output channels of each conv."""
        return tuple(ceil_divide(tensor.channel_blocks, self.k_split) for tensor in self.extents[1:])

    @cached_property
    def staged_blocks(self) -> tuple[Any, ...]:
        """The blocks of output channels in a tile of each conv."""
        return tuple(smaller(self.k_split, tensor.channel_blocks) for tensor in self.extents[1:])
