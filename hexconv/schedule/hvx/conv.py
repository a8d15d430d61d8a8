"""What the parts of a conv's kernel share: its buffers, and the tiles that one group of channels is computed in."""

from collections.abc import Callable
from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.block import Block, Number, int32
from hexconv.schedule.hvx.filters import steps
from hexconv.schedule.hvx.stage import Group, Plane, Stage
from hexconv.schedule.hvx.windows import Windows

Address = Callable[[Number, Number, Group, Number, int], Number]
"""(row, column, group, repetition, part of the group) -> element of the target where a pixel's channels start."""

SHORT_STEPS = 128  # a reduction so short that the start and end of a tile count
LEAST_STEPS = 4


@dataclass(frozen=True)
class Conv:
    """A conv with its buffers.

    Attributes:
        name: of the conv, in listings.
        stage: the conv.
        source: activations, uint8, flat.
        planes: of the source.
        low_bytes: from its planes of high bytes to those of low bytes; 0 where elements are bytes.
        source_base: the row of the conv's input that row 0 of `source` holds.
        filters: the filter cache.
        filter_low_bytes: from its high bytes to its low bytes; 0 where filters are bytes.
        groups: of output channels.
        offsets: int32, what is added to the sums of every channel, where that differs by channel.
        windows: the corrections for the filter's zero point, where they are made ahead of the tiles.
        target: where results go, flat: uint8, or int32 where sums leave as they are.
        target_low_bytes: likewise, where the target is a cache.
        address: element of the target.
        is_output: whether the target leaves the chain.
    """

    name: str
    stage: Stage
    source: tirx.Buffer
    planes: tuple[Plane, ...]
    low_bytes: int
    source_base: Number
    filters: tirx.Buffer
    filter_low_bytes: int
    groups: tuple[Group, ...]
    offsets: tirx.Buffer | None
    windows: Windows | None
    target: tirx.Buffer
    target_low_bytes: int
    address: Address
    is_output: bool

    @property
    def starts_at_zero(self) -> bool:
        """Whether sums start from nothing at all."""
        return self.offsets is None and self.windows is None and self.stage.offset == 0

    @property
    def sums_windows_in_tiles(self) -> bool:
        """Whether tiles have to sum their windows themselves: a quarter more work, for any source."""
        return self.stage.filter_zero != 0 and self.windows is None

    @property
    def overlaps_tiles(self) -> bool:
        """Whether a tile's first words are multiplied while the tile before it is narrowed.

        Worth it where the reduction is short; possible where it is one run of doublewords.
        """
        first, *rest = self.planes
        aligned = first.pixel_bytes % 8 == 0 and first.row_bytes % 8 == 0
        dense = first.pixel_bytes == first.steps * 4 and self.stage.dilation[1] == 1
        one_run = not rest and self.stage.kernel[0] == 1 and (self.stage.kernel[1] == 1 or dense)
        short = LEAST_STEPS < steps(self.stage, self.planes) <= SHORT_STEPS
        return one_run and aligned and short and not self.sums_windows_in_tiles


@dataclass(frozen=True)
class Row:
    """A row of tiles: `count` tiles of `pixels` pixels from `first_column` on."""

    first_column: int
    pixels: int
    count: int


@dataclass(frozen=True)
class Tiles:
    """The tiles of some rows, for one group of channels.

    Attributes:
        conv: what to compute.
        group: of channels.
        number: repetition of the group.
        row: the tiles of each row.
        begin: the first row.
        end: one past the last row.
    """

    conv: Conv
    group: Group
    number: Number
    row: Row
    begin: Number
    end: Number

    @property
    def count(self) -> Number:
        """Tiles in all rows."""
        return (self.end - self.begin) * self.row.count

    def place(self, block: Block, index: tirx.Expr) -> tuple[tirx.Expr, tirx.Expr]:
        """(row, column) of the first pixel of a tile."""
        y = block.bind("y", tirx.floordiv(index, int32(self.row.count)) + self.begin)
        x = block.bind("x", tirx.floormod(index, int32(self.row.count)) * self.row.pixels + self.row.first_column)
        return y, x

    def origin(self, y: tirx.Expr, x: tirx.Expr) -> list[tirx.Expr]:
        """Per plane, the byte where the window of output pixel (y, x) starts."""
        stage = self.conv.stage
        top = y * stage.stride[0] - stage.padding[0] - self.conv.source_base
        left = x * stage.stride[1]
        return [top * plane.row_bytes + left * plane.pixel_bytes + plane.first_byte for plane in self.conv.planes]


def tile_pixels(blocks: int) -> int:
    """Pixels of a tile: as many as make 12 or 16 sums.

    With them two loads a packet feed two vrmpy a packet, and the 32 HVX registers hold the sums, the filter vectors and
    what narrowing needs (24 sums leave LLVM's pipeliner no room with a doubleword per pixel).
    """
    return 4 if blocks > 2 else 8


def tile_rows(columns: int, pixels: int) -> tuple[Row, ...]:
    """The tiles of a row: whole ones, then one with what is left.

    >>> tile_rows(62, 4)
    (Row(first_column=0, pixels=4, count=15), Row(first_column=60, pixels=2, count=1))
    """
    count, rest = divmod(columns, pixels)
    rows = (Row(0, pixels, count), Row(count * pixels, rest, 1))
    return tuple(row for row in rows if row.pixels and row.count)
