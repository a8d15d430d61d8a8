"""Bytes and MACs of a plan, and the bytes that a nest of rows moves in caches outside of VTCM.

If some caches lie in VTCM and another lies outside, what a kernel does in that other one is traffic: every load and
every store counts, however often it touches the same byte. Copies into a cache and out of it are counted with the
argument that they copy, and filling its padding isn't counted. Counted are caches, and the buffers that hold their
elements in another order: `split`, a source of int16 that is taken apart, and `planes`, a source where lanes are
pixels, or dense rows as often as they are copied. A kernel's sums and constants don't count, nor does what it reads in
`words`, the cache of a filter whose words scalar loads read.

HVX kernels read and write, for a row of outputs:

    source   4 bytes for each word of 4 channels under a window, once for each tile of channels (or two vectors for
             each 32 words of a run, where they are spread over vectors); where the zero point of
             the filter wants windows summed ahead, all vectors of the rows under the row of outputs as well; a
             depthwise conv reads vectors of 4 pixels, those that its windows meet, once for rows made together
    filter   128 bytes for each word, block of 32 channels and tile of pixels; of a depthwise conv, once for rows made
             together, or for each of their tiles
    target   whole vectors, those of the fringe included

Scalar code in their nest reads 4 bytes of the source and 32 of the filter for 8 output channels; product by product, an
element for 8 products (a depthwise conv one each), and one of the filter for each. It writes all that it makes.

Everything follows from the steps of every conv (`hexconv.analyze.block_nest`).

Input. Each step of the input read copies the logical elements of its slabs: padding and fringe are written, not read.

Filters. Each step of a conv stages all of its packed filter, one channel tile after the other, fringe included. A step
past the end of the tensor stages it too, though it computes nothing, as in the listings of the source document.
Resident filters are staged once. With ring buffers only steps that make something stage a filter.

Output. Every element of the packed output is written once, its fringe included.

MACs. Each step computes the logical outputs of its slabs; padding that they read is multiplied like anything else.

Biases, vectors and tables go through no cache; `hexconv.analyze.planned` counts them once a call.

Outside of VTCM, what the kernel does in a cache is traffic, too. It reads an element of the source and of the filter
for each multiply-accumulate, and writes all of each block that it makes; where its sums are its results, it reads and
writes one for each multiply-accumulate, too.

Sources: the loop nests of seed document 003; it states none of these figures.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, prod

from hexconv.analyze.block_nest import PlannedBlocks
from hexconv.analyze.caches import BLOCK, DTYPE_BYTES, has_accumulator, packed_filter
from hexconv.analyze.conv_packets import rows_read, vectors_loaded, words_loaded
from hexconv.analyze.needed import Work, macs_per_output
from hexconv.analyze.row_nest import VECTOR_WORDS, PlannedRows
from hexconv.kernel import output_layout
from hexconv.kernel.channel_blocks import filled_columns
from hexconv.kernel.dense import HALFWORD_BYTES, DenseRows
from hexconv.kernel.depthwise import TILE_ROWS, WAYS_TOGETHER, handed_down, is_depthwise
from hexconv.kernel.grouped import own_words_of
from hexconv.kernel.pixels import PixelLanes
from hexconv.kernel.planes import PixelPlanes
from hexconv.kernel.tiles import FIRST_WORDS, PAIR_BYTES, VECTOR_BLOCKS, VECTOR_BYTES, tile_pixels
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import (
    INPUT_CACHE,
    conv_name,
    filter_cache,
    filter_name,
    kept_cache,
    numbered,
    source_cache,
    target_cache,
)

Bytes = Counter[str]
"""Bytes by the name of a cache."""


@dataclass(frozen=True)
class Touched:
    """The bytes that a conv's kernel reads and writes in each cache.

    Attributes:
        row: the bytes for a row that has elements, all of its channels.
        blank_row: the bytes for a row of fringe, without elements.
        step: the further bytes for a step that makes some row with elements.
        once: the bytes for a run in every thread, whatever the stripes; none for a conv that makes no element.
        together: the further bytes for rows of a depthwise conv that are made in each way (`WAYS_TOGETHER`).
    """

    row: Bytes = field(default_factory=Bytes)
    blank_row: Bytes = field(default_factory=Bytes)
    step: Bytes = field(default_factory=Bytes)
    once: Bytes = field(default_factory=Bytes)
    together: tuple[Bytes, ...] = field(default_factory=lambda: tuple(Bytes() for _ in WAYS_TOGETHER))

    @property
    def parts(self) -> tuple[Bytes, ...]:
        """All fields, in order."""
        return (self.row, self.blank_row, self.step, self.once, *self.together)


WORD_BYTES = 4


def rows_touched(planned: PlannedRows) -> Bytes:
    """The bytes that HVX kernels read and write in each cache in a run."""
    convs, total = len(planned.chain.conv), Bytes()
    for index in range(convs):
        touched, tensor = touched_by(planned, index), index + 1
        rows, stored = planned.logical_rows(tensor), planned.stored_rows(tensor)
        times = (rows, stored - rows, planned.making_steps(tensor), planned.bands.count, *planned.rows_together(tensor))
        for each, count in zip(touched.parts, times, strict=True):
            total.update({name: size * count for name, size in each.items()})
        total[target_cache(tensor, convs)] += planned.filled_bytes(tensor, stored)
        if kept := planned.kept_bytes(tensor, stored):  # saved once, and restored once
            total[target_cache(tensor, convs)] += 2 * kept
            total[kept_cache(tensor)] += 2 * kept
    if kept := planned.kept_bytes(0, planned.first_reads):
        total[INPUT_CACHE] += kept  # what is restored is written, like a copy
        total[kept_cache(0)] += 2 * kept
    return total


def touched_by(planned: PlannedRows, index: int) -> Touched:
    """The bytes that the kernel of conv `index` reads and writes, for a row, a blank row, a step, and once."""
    touched = Touched()
    if planned.kernels[index] == "plain":
        _scalar(planned, index, touched)
    else:
        _target(planned, index, touched)
        if is_depthwise(planned.chain, index):
            _depthwise(planned, index, touched)
        elif own_words_of(planned.chain, index):
            _own_words(planned, index, touched)
        elif lanes := planned.pixels(index):
            _pixels(planned, index, lanes, touched)
        elif dense := planned.dense(index):
            _dense_rows(planned, index, dense, touched)
        else:
            _words(planned, index, touched)
    if not planned.makes_any(index):
        touched.once.clear()
    return touched


def _scalar(planned: PlannedRows, index: int, touched: Touched) -> None:
    """Add everything that a conv without an HVX kernel reads and writes."""
    work, tensor = planned.scalar(index), planned.extents[index + 1]
    first, end = tensor.valid_columns
    touched.row[source_cache(index + 1)] += (end - first) * work.source_elements * planned.source_bytes
    touched.row[filter_cache(index + 1)] += (end - first) * work.weights * planned.filter_bytes
    touched.once[filter_cache(index + 1)] += work.filter_macs
    name = target_cache(index + 1, len(planned.chain.conv))
    columns = planned.source_columns(index + 1)
    elements = columns * tensor.channel_blocks * CHANNEL_BLOCK
    for rows in (touched.row, touched.blank_row):
        rows[name] += elements * DTYPE_BYTES[planned.chain.output_dtype(index)]


def _words(planned: PlannedRows, index: int, touched: Touched) -> None:
    """Add the reads of source and filter by a conv whose words are 4 channels."""
    conv, source, filter = planned.chain.conv[index], source_cache(index + 1), filter_cache(index + 1)
    first, end = planned.extents[index + 1].valid_columns
    vectors, passes = planned.multiplied_vectors(index), planned.source_bytes * planned.filter_bytes
    words = vectors // planned.extents[index + 1].channel_blocks
    tiles = planned.tiles(index)
    if index == 0 and planned.source_bytes > 1:
        source = _split(planned, touched)
    read = _splats(planned, index, words) if planned.splats(index) else words * WORD_BYTES
    touched.row[source] += (end - first) * read * passes * tiles.total()
    if planned.sums_windows_ahead(index):
        touched.row[source] += tiles.total() * conv.kernel[0] * planned.tile_row_bytes(index)
    for blocks, times in tiles.items():
        of_pixels = ceil((end - first) / tile_pixels(blocks))
        touched.row[filter] += times * of_pixels * blocks * words * passes * VECTOR_BYTES
    for blocks, times in planned.overlapped(index).items():
        touched.row[source] += times * tile_pixels(blocks) * FIRST_WORDS * WORD_BYTES
        touched.row[filter] += times * blocks * FIRST_WORDS * VECTOR_BYTES


def _splats(planned: PlannedRows, index: int, words: int) -> int:
    """The bytes that are read under a window by vectors: two vectors for each 32 words of a run."""
    conv = planned.chain.conv[index]
    runs = conv.kernel[0] * planned.planes(index) * (1 if conv.dilation[1] == 1 else conv.kernel[1])
    return runs * ceil(words // runs / VECTOR_WORDS) * 2 * VECTOR_BYTES


def _split(planned: PlannedRows, touched: Touched) -> str:
    """Add the rows of int16 that are taken apart; tiles read these rows instead of the source."""
    conv, tiles = planned.chain.conv[0], planned.tiles(0).total()
    new = min(conv.reach[0], conv.stride[0])
    for name in (INPUT_CACHE, numbered("split", 1)):
        touched.row[name] += tiles * new * planned.tile_row_bytes(0)
        touched.step[name] += tiles * (conv.reach[0] - new) * planned.tile_row_bytes(0)
    return "split1"


def _depthwise(planned: PlannedRows, index: int, touched: Touched) -> None:
    """Add the reads of source and filter by a conv whose lanes are channels."""
    conv = planned.chain.conv[index]
    vectors = vectors_loaded(planned, index)
    *along, row_down, step_down = touched.together
    for rows, of_rows in zip(TILE_ROWS, along, strict=True):
        of_rows[source_cache(index + 1)] += rows_read(planned, index, rows) * vectors * VECTOR_BYTES
    for of_rows in (*along, step_down):
        of_rows[filter_cache(index + 1)] += words_loaded(planned, index) * VECTOR_BYTES
    shared, down = len(handed_down(conv)), vectors_loaded(planned, index, goes_down=True)
    row_down[source_cache(index + 1)] += (rows_read(planned, index, 1) - shared) * down * VECTOR_BYTES
    step_down[source_cache(index + 1)] += shared * down * VECTOR_BYTES


def _own_words(planned: PlannedRows, index: int, touched: Touched) -> None:
    """Add the reads of source and filter by a conv whose lanes have words of their own groups."""
    blocks, vectors = planned.extents[index + 1].channel_blocks, planned.filter_vectors(index)
    for pixels, times in planned.own_tiles(index):
        quads = planned.own_quads(index, pixels)
        touched.row[source_cache(index + 1)] += times * blocks * quads * VECTOR_BYTES
        touched.row[filter_cache(index + 1)] += times * vectors * VECTOR_BYTES


def _pixels(planned: PlannedRows, index: int, lanes: PixelLanes, touched: Touched) -> None:
    """Add the accesses of the source by a conv whose lanes are pixels; scalar loads read its filter."""
    layout = lanes.planes
    planes = source_cache(index + 1) if layout.is_direct else numbered("planes", index + 1)
    if not layout.is_direct:
        _laid(planned, index, layout, touched)
    for tile, times in lanes.tiles:
        touched.row[planes] += times * tile.vectors * lanes.runs(tile) * layout.steps * VECTOR_BYTES


def _dense_rows(planned: PlannedRows, index: int, dense: DenseRows, touched: Touched) -> None:
    """Add the accesses of source and filter by a conv that multiplies windows of dense rows."""
    copies, tiles, kernel = (
        numbered("planes", index + 1),
        planned.tiles(index).total(),
        planned.chain.conv[index].kernel,
    )
    for name in (source_cache(index + 1), copies):
        touched.row[name] += tiles * dense.new_rows * dense.copied_vectors * VECTOR_BYTES
        touched.step[name] += tiles * (dense.rows - dense.new_rows) * dense.copied_vectors * VECTOR_BYTES
    pairs = ceil(dense.words * WORD_BYTES / PAIR_BYTES)
    touched.row[copies] += tiles * dense.columns * kernel[0] * pairs * PAIR_BYTES
    if planned.filter_zero(index):
        touched.row[copies] += tiles * (dense.summed * VECTOR_BYTES + dense.columns * HALFWORD_BYTES)
    for blocks, times in planned.tiles(index).items():
        of_pixels = sum(count for _, count in dense.tiles(blocks))
        touched.row[filter_cache(index + 1)] += times * of_pixels * blocks * dense.steps * VECTOR_BYTES


def _laid(planned: PlannedRows, index: int, layout: PixelPlanes, touched: Touched) -> None:
    """Add what laying out rows as planes reads of the source, and what it reads and writes of the planes."""
    source, tiles = layout.source, planned.tiles(index).total()
    row_bytes = source.count * ceil(source.bytes / layout.loaded_bytes) * VECTOR_BYTES
    merged = layout.read_vectors * sum(len(layout.parts(plane)) + 1 for plane in layout.merged)
    laid_bytes = (layout.chunks * layout.groups * layout.stride + merged) * VECTOR_BYTES
    for name, size in ((source_cache(index + 1), row_bytes), (numbered("planes", index + 1), laid_bytes)):
        touched.row[name] += tiles * layout.new_rows * size
        touched.step[name] += tiles * (layout.rows - layout.new_rows) * size


def _target(planned: PlannedRows, index: int, touched: Touched) -> None:
    """Add what a conv writes: vectors of results, and vectors of the fringe."""
    how, is_last = planned.chain.conv[index].requantize, index == len(planned.chain.conv) - 1
    name = target_cache(index + 1, len(planned.chain.conv))
    if planned.makes_narrow(index):
        _narrow(planned, index, name, touched)
        return
    is_wide, together = planned.source_bytes > 1, planned.blocks_together(index)
    result_bytes = WORD_BYTES if how is None else 2 if is_wide and is_last else 1
    pixels = VECTOR_BLOCKS // together // result_bytes
    size = VECTOR_BYTES * (2 if is_wide and not is_last else 1)
    tensor = planned.extents[index + 1]
    first, end = tensor.valid_columns
    columns = planned.source_columns(index + 1)
    in_blocks = planned.makes_blocks(index)
    starts = range(ceil(end / pixels) * pixels if in_blocks else 0, columns, pixels)
    filled = len(starts) if in_blocks else sum(at < first or at + pixels > end for at in starts)
    for blocks, times in planned.tiles(index).items():
        whole, rest = divmod(end - first, tile_pixels(blocks))
        stored = whole * ceil(tile_pixels(blocks) / pixels) + ceil(rest / pixels)
        touched.row[name] += times * blocks // together * (stored + filled) * size
        touched.blank_row[name] += times * blocks // together * (columns // pixels) * size


def _narrow(planned: PlannedRows, index: int, name: str, touched: Touched) -> None:
    """Add what a conv writes in narrow blocks: whole vectors of the pixels of each tile, and those of the fringe."""
    blocks, pixels = planned.narrow_blocks(index), planned.narrow_pixels(index)
    stored = sum(ceil(size / pixels) * times for size, times in _tiles_of_row(planned, index))
    filled = len(filled_columns(planned.extents[index + 1], pixels))
    touched.row[name] += blocks * (stored + filled) * VECTOR_BYTES
    touched.blank_row[name] += blocks * planned.source_columns(index + 1) // pixels * VECTOR_BYTES


def _tiles_of_row(planned: PlannedRows, index: int) -> Sequence[tuple[int, int]]:
    """Return (pixels of a tile, how many of these a row has) for a conv that makes narrow blocks."""
    if lanes := planned.pixels(index):
        return [(tile.pixels, times) for tile, times in lanes.tiles]
    blocks = max(planned.tiles(index))
    if dense := planned.dense(index):
        return dense.tiles(blocks)
    first, end = planned.extents[index + 1].valid_columns
    whole, rest = divmod(end - first, tile_pixels(blocks))
    return [(tile_pixels(blocks), whole), (rest, 1)]


def plain_work(planned: PlannedBlocks) -> Work:
    """The bytes that a plan moves and the MACs that it computes.

    >>> from hexconv.analyze.block_nest import planned_blocks
    >>> from hexconv.spec import Chain, Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> planned = planned_blocks(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan())
    >>> {name: macs // (64 * 64 * 128 * 128) for name, macs in plain_work(planned).macs.items()}
    {'conv1': 4, 'conv2': 1}
    """
    chain, order = planned.chain, range(len(planned.chain.conv))
    elements = [planned.logical_pixels(tensor) * each.channels for tensor, each in enumerate(planned.extents)]
    traffic = {"input": elements[0] * DTYPE_BYTES[chain.dtype]}
    for index in order:
        filter_bytes = prod(packed_filter(chain, index)) * DTYPE_BYTES[chain.dtype_of_filters]
        traffic[filter_name(index + 1)] = planned.filter_stagings(index) * filter_bytes
    traffic["output"] = prod(output_layout(chain).physical_shape) * DTYPE_BYTES[chain.output_dtype(order[-1])]
    return Work(traffic, {conv_name(i + 1): elements[i + 1] * macs_per_output(chain, i) for i in order})


def plain_touched(planned: PlannedBlocks) -> Bytes:
    """The bytes that the plain kernel reads and writes in each cache in a run."""
    chain, macs, total = planned.chain, plain_work(planned).macs, Bytes()
    for index, tensor in enumerate(planned.extents[1:]):
        products = macs[conv_name(index + 1)]
        target = target_cache(index + 1, len(chain.conv))
        elements = planned.made[index + 1].slabs * tensor.column_blocks * tensor.channel_blocks * prod(BLOCK)
        sum_bytes = DTYPE_BYTES[chain.sum_dtype(index)]
        total[source_cache(index + 1)] += products * DTYPE_BYTES[chain.dtype]
        total[filter_cache(index + 1)] += products * DTYPE_BYTES[chain.dtype_of_filters]
        if has_accumulator(chain, index):
            total[target] += elements * DTYPE_BYTES[chain.output_dtype(index)]
        else:
            total[target] += (2 * products + elements) * sum_bytes
    return total
