"""Unfold a kernel's taps into channels: an input of few channels then fills the blocks of 32 that an engine multiplies.

A pixel of three channels takes 3 bytes of 32 in a crouton of the matrix engine, and each tap of a kernel multiplies all
32. So whoever lays the input out puts the channels of several taps side by side, and the conv behind it has a kernel
without these:

    channel (r * columns + s) * C + c of row i, column x      holds      input[i * stride + r * dilation - padding,
                                                                               x * stride + s * dilation - padding, c]

7x7 with stride 2 over 3 channels becomes 7x1 with strides 2 and 1 over 21 channels, 3x3 becomes 1x1 over 27. What is
padding is the zero point in all of its copies. An axis that is not unfolded keeps its padding, stride and dilation.
`hexconv.spec.phases` says which chains' inputs are unfolded, and how.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any


@dataclass(frozen=True)
class Unfolding:
    """How an input lies in memory, and which of its elements each channel of the unfolded one holds.

    Attributes:
        image: the input in memory, (N, H, W, C).
        outputs: the rows and columns that are unfolded: those of the conv's output along an axis whose taps are.
        kernel: the rows and columns of taps that are unfolded.
        stride, dilation, before: of these axes, `before` being the padding above and left of them; of others 1, 1, 0.
    """

    image: tuple[int, int, int, int]
    outputs: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]

    @property
    def taps(self) -> int:
        """How many taps lie side by side in the channels of a pixel."""
        return prod(self.kernel)

    @property
    def channels(self) -> int:
        """The channels of the unfolded input."""
        return self.taps * self.image[3]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The unfolded input, (N, H, W, C)."""
        return (self.image[0], *self.outputs, self.channels)

    def place(self, axis: int, index: Any, tap: Any) -> Any:
        """Return the row (axis 0) or column (axis 1) in memory of a tap; numbers or expressions, outside of it too."""
        return index * self.stride[axis] + tap * self.dilation[axis] - self.before[axis]

    def leaves(self, axis: int) -> tuple[bool, bool]:
        """Return whether taps leave the image before its first row or column, and behind its last one."""
        last = self.place(axis, self.outputs[axis] - 1, self.kernel[axis] - 1)
        return self.before[axis] > 0, last >= self.image[axis + 1]

    @property
    def rows_there(self) -> tuple[tuple[int, int], ...]:
        """The unfolded rows of which each row of taps has elements: the first, and one past the last.

        >>> Unfolding((1, 8, 8, 3), (4, 4), (3, 3), (2, 2), (1, 1), (1, 1)).rows_there
        ((1, 4), (0, 4), (0, 4))
        """
        found: list[tuple[int, int]] = []
        for tap in range(self.kernel[0]):
            first, stride = self.place(0, 0, tap), self.stride[0]
            begin, end = -(first // stride), -((first - self.image[1]) // stride)
            found.append((min(max(begin, 0), self.outputs[0]), min(max(end, 0), self.outputs[0])))
        return tuple(found)

    def columns_read(self, columns: Iterable[int]) -> int:
        """Return how many columns in memory some columns of the unfolded input hold elements of."""
        read = {self.place(1, *each) for each in product(columns, range(self.kernel[1]))}
        return sum(0 <= column < self.image[2] for column in read)
