"""The schedules that Halide is measured with: the best found by hand, for each case of the bench."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """How two fused convs are computed.

    Attributes:
        tiles: per conv, (columns, rows) of the pixels that are computed together for all output channels, in registers.
        channels: per conv, how many input channels a step of the reduction takes.
        rolls: how many rows of the intermediate a ring buffer holds, each computed once; 0: no ring buffer, and rows
            are recomputed for each row of tiles.
    """

    tiles: tuple[tuple[int, int], tuple[int, int]]
    channels: tuple[int, int]
    rolls: int = 0


@dataclass(frozen=True)
class Depthwise:
    """How a depthwise conv of stride 1 is computed.

    Attributes:
        rows: how many rows of the output are computed together, for 128 neighbouring elements of a row.
    """

    rows: int


@dataclass(frozen=True)
class Strided:
    """How a depthwise conv of stride 2 is computed.

    Attributes:
        pairs: how many pairs of rows are computed together, for 128 neighbouring elements of two rows.
    """

    pairs: int


@dataclass(frozen=True)
class FirstLayer:
    """How the first conv of a network is computed.

    Attributes:
        tile: (pairs of pixels, rows) of the output that are computed together for all channels, in registers.
    """

    tile: tuple[int, int]


AnySchedule = Schedule | Depthwise | Strided | FirstLayer

_POINTWISE = Schedule(tiles=((2, 2), (2, 2)), channels=(16, 16))
_THREE_BY_THREE = Schedule(tiles=((7, 1), (6, 1)), channels=(4, 4), rolls=4)

SCHEDULES: dict[str, AnySchedule] = {
    "a-shift": _POINTWISE,
    "a-multiplier": _POINTWISE,
    "a-filter-zero": _POINTWISE,
    "a-int8-filters": _POINTWISE,
    "b-shift": _THREE_BY_THREE,
    "b-multiplier": _THREE_BY_THREE,
    "b-filter-zero": _THREE_BY_THREE,
    "b-int8-filters": _THREE_BY_THREE,
    "depthwise": Depthwise(rows=4),
    "depthwise-stride-2": Strided(pairs=1),
    "first-layer": FirstLayer(tile=(2, 2)),
}
"""The schedules by the name of the case in `schedules/hvx`."""
