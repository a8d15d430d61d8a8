"""How much of each tensor of a chain is stored, and where its logical rows stand in it.

Every tensor is stored in the coordinates of what the end of the chain reads of it. The last output is stored as it is.
A tensor that feeds a conv with output rows 0..R-1 (stored rows, padding of the conv after it included) is read at rows

    row = output_row * stride + tap * dilation        0 <= row < (R - 1) * stride + reach

so the padding of all later convs is part of the stored tensor: its logical row 0 stands at row

    top = padding.top + stride * top_of_the_output

and no index is ever negative, whatever the padding. Where the first stored row of a stripe of the output is a multiple
of 8, so is the first row of what it reads: stripes of every tensor start at block rows. The same holds for columns.

Rows of padding hold the tensor's zero; rows that no output needs (a stride that leaves a rest) are not stored at all.

Where padding takes whole slabs (`Chain.pads_in_slabs`), an intermediate has more rows above, its `lead`, if its logical
rows take a slab less then: a kernel that makes whole slabs makes none for the sake of a row of padding. Its reader's
rows stand so much further down:

    row = lead + output_row * stride + tap * dilation         64 rows and 1 of padding: rows 1 .. 64, slabs 0 to 8
                                                              with a lead of 7:         rows 8 .. 71, slabs 1 to 8

Columns of padding are not stored where their products are 0 and the kernel has nothing to add for what isn't there: the
matrix engine, for bytes of 0 (`unstored_columns`). Logical column 0 is the first one then.

With much padding and few rows a conv may read nothing but padding. Its input then gets one stored row more, where its
last block of rows has room: it holds logical row 0, and nothing reads it. A tensor without a logical row would have no
conv to compute it, and no caches. The same goes for columns.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from hexconv.spec.chain import Chain, Conv2d
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.unfolded import Unfolding

ROW_BLOCK = 8
COLUMN_BLOCK = 8
CHANNEL_BLOCK = 32
REMEMBERED = 1024
"""The number of chains whose extents are kept: every closed form asks for them many times."""


def blocks(size: int, block: int) -> int:
    """Return how many blocks hold `size` elements.

    >>> blocks(62, 8)
    8
    """
    return -(-size // block)


@lru_cache(REMEMBERED)
def in_slabs(conv: Conv2d, lead: int = 0) -> Conv2d:
    """Return a conv that reads as many rows for each row of its output as another one reads slabs of 8 for a slab.

    Args:
        conv: the conv.
        lead: the stored rows above those that it reads.

    >>> three = in_slabs(Conv2d(out_channels=8, kernel=(3, 3)))
    >>> three.reach[0], three.stride[0], three.rows_read(2)
    (2, 1, 3)
    """
    more = blocks(lead + conv.reach[0] - conv.stride[0], ROW_BLOCK)
    return Conv2d(out_channels=1, kernel=(conv.stride[0] + more, 1), stride=(conv.stride[0], 1))


@lru_cache(REMEMBERED)
def slab_convs(chain: Chain) -> tuple[Conv2d, ...]:
    """Return every conv of a chain as one that counts slabs; slabs of phase images are one apart."""
    return tuple(
        in_slabs(conv, source.lead) if source.phases == (1, 1) else _in_phases(conv, source, target.last_phase[0])
        for conv, (source, target) in zip(chain.conv, pairwise(tensor_extents(chain)), strict=True)
    )


def _in_phases(conv: Conv2d, source: "Extents", last: int) -> Conv2d:
    """Return the conv of slabs of phase images that makes phases up to `last` of its output."""
    last_row = source.lead + (ROW_BLOCK - 1) * source.phases[0] + conv.stride[0] * last + conv.reach[0] - 1
    return Conv2d(out_channels=1, kernel=(last_row // source.slab_rows + 1, 1))


def steps_over_slabs(convs: Iterable[Conv2d]) -> bool:
    """Whether any of some convs that count slabs leaves out one between two of its steps."""
    return any(conv.rows_read(0) < 0 for conv in convs)


@dataclass(frozen=True)
class Extents:
    """The stored part of one tensor of a chain.

    Attributes:
        batch: N, the number of images.
        rows: the stored rows, with the padding that later convs read.
        columns: the stored columns, with the padding that later convs read.
        channels: the logical channels.
        top: the stored row at which logical row 0 stands.
        left: the stored column at which logical column 0 stands.
        logical_rows: the rows of the logical tensor.
        logical_columns: the columns of the logical tensor.
        phases: its phase images (`hexconv.spec.phases`), down and across: the distance of two rows, and of two columns,
            of one image.
        last_phase: the last phase that is read, down and across: images of later ones are not stored.
        lead: the stored rows above the first one that is read: with them its logical rows take a slab less.
        unfolded: how it lies in memory where its channels hold taps of a kernel.
    """

    batch: int
    rows: int
    columns: int
    channels: int
    top: int
    left: int
    logical_rows: int
    logical_columns: int
    phases: tuple[int, int] = (1, 1)
    last_phase: tuple[int, int] = (0, 0)
    lead: int = 0
    unfolded: Unfolding | None = None

    @property
    def slab_rows(self) -> int:
        """The rows of a slab: 8 of each phase image."""
        return ROW_BLOCK * self.phases[0]

    @property
    def row_blocks(self) -> int:
        """The number of blocks of 8 stored rows, of phase images."""
        return blocks(self.rows, self.slab_rows)

    @property
    def images(self) -> tuple[tuple[int, int], ...]:
        """The phases of its images, row by row, up to the last ones that are read."""
        down, across = self.last_phase
        return tuple((row, column) for row in range(down + 1) for column in range(across + 1))

    @property
    def images_across(self) -> int:
        """How many images lie side by side before the next phase of rows begins."""
        return self.last_phase[1] + 1

    @property
    def phase_columns(self) -> int:
        """The number of blocks of 8 stored columns of a phase image."""
        return blocks(self.columns, COLUMN_BLOCK * self.phases[1])

    @property
    def column_blocks(self) -> int:
        """The number of blocks of 8 stored columns, of all phase images."""
        return len(self.images) * self.phase_columns

    @property
    def channel_blocks(self) -> int:
        """The number of blocks of 32 channels."""
        return blocks(self.channels, CHANNEL_BLOCK)

    @property
    def valid_rows(self) -> tuple[int, int]:
        """First and one past the last stored row that holds a logical row."""
        return min(self.top, self.rows), min(self.top + self.logical_rows, self.rows)

    @property
    def valid_columns(self) -> tuple[int, int]:
        """First and one past the last stored column that holds a logical column."""
        return min(self.left, self.columns), min(self.left + self.logical_columns, self.columns)

    @property
    def rows_of_images(self) -> tuple[tuple[int, int], ...]:
        """The logical rows of the images of each phase that is stored: the first and one past the last, in its rows."""
        return self._in_images(self.valid_rows)

    def _in_images(self, rows: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        return _of_phases(rows, self.phases[0], self.last_phase[0])

    @property
    def rows_copied(self) -> tuple[tuple[int, int], ...]:
        """The rows of images that are copies of rows in memory: if taps are unfolded, of each row of taps."""
        if self.unfolded is None:
            return self.rows_of_images
        of_taps = ((self.top + first, min(self.top + end, self.rows)) for first, end in self.unfolded.rows_there)
        return tuple(image for rows in of_taps for image in self._in_images(rows))

    @property
    def elements_of_row(self) -> int:
        """The elements of a row in memory that are copied, each once; those of all phases that are stored."""
        if self.unfolded is None:
            return sum(end - first for first, end in self.columns_of_images) * self.channels
        first, end = self.valid_columns
        stored = [at - self.left for at in range(first, end) if at % self.phases[1] <= self.last_phase[1]]
        return self.unfolded.columns_read(stored) * self.unfolded.image[3]

    @property
    def columns_of_images(self) -> tuple[tuple[int, int], ...]:
        """The logical columns of the images of each phase, as the rows of images."""
        return _of_phases(self.valid_columns, self.phases[1], self.last_phase[1])

    @property
    def slabs_with_rows(self) -> tuple[int, int]:
        """The slabs that have logical rows: the first, and one past the last."""
        rows = self.rows_of_images
        return rows[-1][0] // ROW_BLOCK, blocks(rows[0][1], ROW_BLOCK)

    def slab_count(self) -> int:
        """Return how many slabs have logical rows."""
        first, end = self.slabs_with_rows
        return end - first

    def moved_down(self, rows: int) -> "Extents":
        """Return it with so many rows of each phase image more above."""
        lead = rows * self.phases[0]
        return replace(self, rows=self.rows + lead, top=self.top + lead, lead=lead)

    @property
    def packed_shape(self) -> tuple[int, ...]:
        """NHWC8h8w32c: [N, H/8, W/8, C/32, 8, 8, 32], rounded up."""
        outer = (self.batch, self.row_blocks, self.column_blocks, self.channel_blocks)
        return (*outer, ROW_BLOCK, COLUMN_BLOCK, CHANNEL_BLOCK)


def _of_phases(valid: tuple[int, int], phases: int, last: int) -> tuple[tuple[int, int], ...]:
    """Return a range of places as each phase counts them, up to the last phase.

    >>> _of_phases((3, 10), 1, 0), _of_phases((3, 10), 3, 1)
    (((3, 10),), ((1, 4), (1, 3)))
    """
    first, end = valid
    return tuple((blocks(first - phase, phases), blocks(end - phase, phases)) for phase in range(last + 1))


@lru_cache(REMEMBERED)
def tensor_extents(chain: Chain) -> tuple[Extents, ...]:
    """Return the stored extents of the input and of every conv's output, in order.

    >>> from hexconv.spec import Conv2d
    >>> same = Conv2d(out_channels=8, kernel=(3, 3), padding=1)
    >>> [(e.rows, e.top) for e in tensor_extents(Chain(input=(1, 16, 16, 8), conv=(same, same)))]
    [(20, 2), (18, 1), (16, 0)]
    """
    n, h, w, c = chain.shapes[-1]
    return chain.backwards(
        Extents(n, h, w, c, 0, 0, h, w),
        lambda index, output: _read_by(chain, index, output),
    )


def added_at(chain: Chain, index: int) -> tuple[int, int]:
    """Return by how many stored rows and columns an element that conv `index` adds stands behind that of its output.

    All convs between the two have a stride of 1: it is their padding.

    >>> from hexconv.spec.addition import Add
    >>> same = [Conv2d(out_channels=8, kernel=(3, 3), padding=1, add=add) for add in (None, Add(from_="input"))]
    >>> added_at(Chain(input=(1, 16, 16, 8), conv=tuple(same)), 1)
    (2, 2)
    """
    add, extents = chain.conv[index].add, tensor_extents(chain)
    assert add
    theirs, own = extents[add.tensor], extents[index + 1]
    return theirs.top - own.top, theirs.left - own.left


def reads_input_rows(chain: Chain) -> bool:
    """Whether the first conv reads a row of the input; with much padding and few rows it may read padding alone.

    >>> from hexconv.spec import Conv2d, Padding
    >>> convs = [Conv2d(out_channels=8, padding=Padding(top=3), stride=stride) for stride in (1, 2)]
    >>> [reads_input_rows(Chain(input=(1, 1, 8, 8), conv=(conv,))) for conv in convs]
    [True, False]
    """
    source, output = tensor_extents(chain)[:2]
    return source.valid_rows[0] < chain.conv[0].rows_read(output.rows)


def _read_by(chain: Chain, index: int, output: Extents) -> Extents:
    """Return the extents that conv `index` reads of its input to fill the stored part of its output."""
    conv, shape, phases = chain.conv[index], chain.shapes[index], chain.phases[index]
    unstored = unstored_columns(chain, index, output)
    down, across = conv.stride
    rows, top = _with_logical(conv.rows_read(output.rows), conv.padding.top + down * output.top, ROW_BLOCK * phases[0])
    # Where columns are kept, those right of the logical ones are no output of the conv, so it reads nothing for them.
    made = output.valid_columns[1] if chain.keeps_columns else output.columns
    of_block = COLUMN_BLOCK * phases[1]
    columns, left = _with_logical(conv.columns_read(made), conv.padding.left + across * output.left, of_block)
    if unstored is not None:
        columns, left = min(shape[2], columns - unstored), 0
    axes = zip(conv.stride, conv.dilation, conv.kernel, output.last_phase, strict=True)
    read = [
        max((stride * phase + tap * apart) % count for phase in range(last + 1) for tap in range(taps))
        for (stride, apart, taps, last), count in zip(axes, phases, strict=True)
    ]
    found = Extents(
        batch=shape[0],
        rows=rows,
        columns=columns,
        channels=shape[3],
        top=top,
        left=left,
        logical_rows=shape[1],
        logical_columns=shape[2],
        phases=phases,
        last_phase=(read[0], read[1]),
        unfolded=None if index else chain.unfolded,
    )
    is_made_in_slabs = index > 0 and chain.pads_in_slabs
    return min(map(found.moved_down, range(ROW_BLOCK)), key=Extents.slab_count) if is_made_in_slabs else found


def unstored_columns(chain: Chain, index: int, target: Extents) -> int | None:
    """Return how many columns of padding conv `index` reads left of those stored; None where all padding is stored.

    Padding isn't stored where its products are 0, the conv has a stride of 1, and its output has no padding either, nor
    more blocks of columns.

    Args:
        chain: the chain as its kernel's nest has it.
        index: the number of the conv, from 0.
        target: the tensor that it makes.
    """
    conv, left, right = chain.conv[index], chain.conv[index].padding.left, chain.conv[index].padding.right
    columns = min(chain.shapes[index][2], conv.columns_read(target.columns) - left)
    is_zero = chain.dtype in INTEGER_RANGE and chain.padding_value(index) == INTEGER_RANGE[chain.dtype][0]
    has_images = chain.phases[index] != (1, 1) or conv.stride[1] > 1
    fits = target.left == 0 and target.columns <= target.logical_columns
    reaches = left < conv.reach[1] and blocks(target.columns, COLUMN_BLOCK) <= blocks(columns, COLUMN_BLOCK)
    is_unstored = chain.leaves_zeros_out and left + right > 0 and is_zero and not has_images and fits and reaches
    return left if is_unstored else None


def _with_logical(read: int, first: int, block: int) -> tuple[int, int]:
    """Return the stored size of an axis of which `0 .. read - 1` is read, and where its first logical element stands.

    >>> _with_logical(10, 2, 8), _with_logical(3, 5, 8), _with_logical(8, 9, 8)
    ((10, 2), (4, 3), (8, 9))
    """
    has_room = read % block != 0
    return (read + 1, read) if first >= read and has_room else (read, first)
