"""A tensor as a step of a network sees it: its memory, its layout, and what its elements stand for."""

from dataclasses import dataclass, replace
from math import inf, prod

import numpy as np

from hexconv.layout import packed

Extents = tuple[int, int, int, int]

NHWC = "NHWC"
"""The layout that operators write and chains read."""
NCHW = "NCHW"
"""The layout of a model's inputs and outputs."""
BLOCKS = "NHWC8h8w32c"
"""The layout that chains of float32 write."""


@dataclass(frozen=True)
class Operand:
    """Elements of a buffer. They are real numbers, or codes that stand for `(code - zero_point) * scale`.

    Attributes:
        buffer: the name of the memory that it lies in.
        extents: its logical sizes N, H, W, C; a matrix has its rows in N and its columns in C.
        dtype: the dtype of its elements.
        layout: its layout, `NHWC`, `NCHW` or `NHWC8h8w32c`.
        scale: the real number that a step of one code stands for, a float32.
        zero_point: the code that stands for 0.
        low: the least real value that is stored; lower values are raised to it.
        high: the largest real value that is stored; higher values are lowered to it.
    """

    buffer: str
    extents: Extents
    dtype: str
    layout: str = NHWC
    scale: float = 1.0
    zero_point: int = 0
    low: float = -inf
    high: float = inf

    @property
    def bytes(self) -> int:
        """The bytes of its memory, fringe included."""
        physical = packed(BLOCKS, self.extents).physical_shape if self.layout == BLOCKS else self.extents
        return prod(physical) * np.dtype(self.dtype).itemsize

    @property
    def is_float(self) -> bool:
        """Whether its elements are real numbers."""
        return self.dtype.startswith("float")

    @property
    def is_one_order(self) -> bool:
        """Whether NCHW and NHWC are the same order of its elements.

        >>> Operand("x", (1, 4, 4, 1), "uint8").is_one_order, Operand("x", (1, 4, 4, 2), "uint8").is_one_order
        (True, False)
        """
        _, rows, columns, channels = self.extents
        return channels == 1 or rows * columns == 1

    @property
    def is_flat(self) -> bool:
        """Whether its elements lie in the order of NCHW, whatever its layout is called."""
        return self.layout == NCHW or (self.layout == NHWC and self.is_one_order)

    def reshaped(self, extents: Extents) -> "Operand":
        """Return the same flat elements under other extents."""
        seen = replace(self, extents=extents, layout=NCHW)
        return replace(seen, layout=NHWC) if seen.is_one_order else seen

    @property
    def as_numbers(self) -> "Operand":
        """Return the same elements read as plain numbers: scale 1, zero point 0, no clamp."""
        return replace(self, scale=1.0, zero_point=0, low=-inf, high=inf)

    def meaning(self, scale: float, zero_point: int) -> "Operand":
        """Return the same elements read as codes of this scale and zero point."""
        return replace(self, scale=scale, zero_point=zero_point)


def extents_of(shape: tuple[int, ...], rank: int | None = None) -> Extents:
    """Logical N, H, W, C of a model's tensor: of NCHW, NCW or a matrix; any other shape has all elements in C.

    Args:
        shape: the shape of the tensor.
        rank: the rank of the tensor that it is broadcast to, by default its own.

    >>> extents_of((1, 3, 8, 9)), extents_of((2, 10)), extents_of((64, 1, 1), 4), extents_of((6, 4, 2))
    ((1, 8, 9, 3), (2, 1, 1, 10), (1, 1, 1, 64), (6, 1, 2, 4))
    """
    sizes = (1,) * ((rank or len(shape)) - len(shape)) + shape
    if len(sizes) in (3, 4):
        return sizes[0], sizes[2] if len(sizes) == 4 else 1, sizes[-1], sizes[1]
    return (sizes[0], 1, 1, sizes[1]) if len(sizes) == 2 else (1, 1, 1, prod(sizes))
