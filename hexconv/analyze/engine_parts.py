"""Packets of a thread beside the matrix engine: how often each part of its copies and its narrowing occurs.

`machines/engine.toml` prices parts (`hexconv.search.machine`), `reports.engine_prices` fits the prices to runs; a part
without a price is free.

    call          packets of the engine that are calls of their own
    stored        calls that store all bytes of sums, eight packets of the engine
    row           rows of tiles, for each of which bias tables are staged
    narrowed      tiles whose sums HVX puts together and narrows
    by_channel, even, looked_up   of these, tiles by channel; tiles that round half to even; tiles that are looked up
    held          tiles that the engine converts, and that HVX then holds between two codes or looks up
    edge          tiles of which not all is an output, so that HVX fills them
    read          vectors of 4 pixels of a block of channels that HVX makes of an input in pixels (`crouton_rows`)
    read_near     the same where 4 pixels lie in one or two vectors
    read_edge     such vectors of tiles of which some pixels lie outside of the image
    filled        vectors of fringe of the input
    read_byte, read_block   runs of up to 32 bytes of an input that HVX copies one by one, and of one in blocks
    read_short    stores that fill what a pixel of such runs lacks to whole blocks of 32 bytes
    filter        vectors of filters that HVX copies, or widens
    staged        tiles of filters
    written, written_part, written_near   vectors of 4 pixels that HVX writes as pixels: of whole vectors of channels,
                  of others, near as above
    written_byte  runs of up to 32 bytes that HVX writes one by one
    block         vectors of an output in blocks that HVX writes
    step          steps of convs
    started_..    of the parts of copies, those where the copy engine copies
    fork          starts of threads, and joins
    conv, once    what a conv, and a run, takes once

Threads share the rows of tiles of a step, and the rows and vectors that HVX copies; what they don't share, one does
alone (`hexconv.lower.dealt_rows`).
"""

from dataclasses import dataclass
from math import ceil, gcd, prod
from typing import Any

import numpy as np

from hexconv.analyze.block_grid import BlockAxes, engine_packets_of
from hexconv.analyze.exact import Integers, ceil_divide
from hexconv.kernel.cost import Parts
from hexconv.kernel.engine import EXPONENTS, is_converted, is_widened
from hexconv.kernel.tiles import PAIR_BYTES, VECTOR_BLOCKS, VECTOR_BYTES
from hexconv.spec.activations import TABLE
from hexconv.spec.chain import IN_BLOCKS, PIXELS
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK, Extents

PIXELS_OF_VECTOR = VECTOR_BYTES // CHANNEL_BLOCK
HALVES = COLUMN_BLOCK // PIXELS_OF_VECTOR


@dataclass(frozen=True)
class Dealt:
    """Which share of what threads share the slowest of them has.

    Attributes:
        axes: the plans.
        threads: how many threads there are.
    """

    axes: BlockAxes
    threads: int

    def of_rows(self, index: int) -> Any:
        """Of the rows of tiles of a step of conv `index`, [words, H, K]."""
        return self._share(self._rows(index))

    def of_tiles(self, index: int) -> Any:
        """Of the tiles of a step of conv `index` that HVX finishes: they are dealt where there are few rows."""
        rows = self._rows(index)
        return self._share(rows * np.where(rows < self.threads, self._columns(index), 1))

    @property
    def of_lines(self) -> float:
        """Of the eight lines of a row of tiles that is copied."""
        return ceil(ROW_BLOCK / self.threads) / ROW_BLOCK

    @property
    def forks(self) -> Any:
        """How often threads start: in the steps of convs that have several rows of tiles, and for copies by HVX."""
        if self.threads == 1:
            return 0
        axes, copies = self.axes, ~self.axes.plans.flags("buffering", "double")
        found: Any = axes.steps_made[0] + copies * axes.steps_made[-1] * axes.tiles(axes.convs[-1])
        resident = axes.plans.flags("filters", "resident")
        for index in axes.convs:
            steps = axes.steps_made[index + 1] * axes.tiles(index)
            rows = self._rows(index)
            found = found + steps * ((rows > 1) * 1 + ((self._columns(index) > 1) & (rows < self.threads)))
            found = found + copies * np.where(resident, 1, axes.stagings[index + 1] * axes.tiles(index))
        return found

    def _share(self, of: Integers) -> Any:
        return ceil_divide(of, self.threads) / of

    def _columns(self, index: int) -> int:
        return self.axes.extents[index + 1].column_blocks

    def _rows(self, index: int) -> Integers:
        slabs = self.axes.rows(lambda stripes: stripes.step_slabs[index])
        return np.maximum(self.axes.staged(index) * slabs, 1)


def parts_beside_engine(axes: BlockAxes, threads: int = 1) -> Parts:
    """Count the parts of every plan of a grid, [words, H, K] or less.

    Args:
        axes: the plans.
        threads: how many threads share them; of several, those that the slowest has are counted.
    """
    dealt, found = Dealt(axes, threads), Parts(once=1, conv=len(axes.chain.conv))
    found["fork"] = dealt.forks
    for index in axes.convs:
        did, results = engine_packets_of(axes, index), _of_results(axes, index)
        found.add(
            {name: count * dealt.of_rows(index) for name, count in (("call", did.multiplies), ("row", did.clears))}
        )
        found.add({name: count * dealt.of_tiles(index) for name, count in results.items()})
        found["step"] = found["step"] + axes.tiles(index) * axes.slabs_made[index + 1]
    overlaps, widened = axes.plans.flags("buffering", "double"), _of_filters(axes, of_widened=True)
    filters = _of_filters(axes, of_widened=False)
    by_vectors = _read_by_vectors(axes)
    of_input = by_vectors if _is_read_by_hvx(axes) else _read_by_bytes(axes)
    lines = (by_vectors or _read_by_bytes(axes), dealt.of_lines), (_written_by_vectors(axes), dealt.of_lines)
    for parts, share in (*lines, (filters, 1 / threads)):
        found.add({name: count * ~overlaps * share for name, count in parts.items()})
    found.add({name: count / threads for name, count in widened.items()})
    for parts in (of_input or _read_by_bytes(axes), filters, _written_by_bytes(axes)):
        shares = {name: dealt.of_lines if _is_of_hvx(name, axes) else 1 for name in parts}
        found.add({f"started_{name}": count * overlaps * shares[name] for name, count in parts.items()})
    return found


def _is_of_hvx(part: str, axes: BlockAxes) -> bool:
    """Whether HVX does a part of a copy of the input while the copy engine copies: it fills, and flips bits."""
    return part in ("filled", "read_short") or (part.startswith("read") and _is_read_by_hvx(axes))


def _is_read_by_hvx(axes: BlockAxes) -> bool:
    """Whether HVX copies the input always: the copy engine flips no bits, and unfolds no taps."""
    return axes.chain.dtype == "int8" or axes.chain.unfolded is not None


def _of_results(axes: BlockAxes, index: int) -> Parts:
    """Count the parts of the results of a conv."""
    conv, target = axes.chain.conv[index], axes.extents[index + 1]
    how, tiles, found = conv.requantize, axes.tiles_made[index + 1] * target.column_blocks, Parts()
    assert how, "the matrix engine serves convs that are requantised"
    did = engine_packets_of(axes, index)
    if is_converted(conv):
        found["call"] = did.stores + did.table_loads
        found["held"] = tiles * int(conv.activation == TABLE or how.clamp is not None or axes.chain.dtype == "int8")
    else:
        found["narrowed"], found["stored"] = tiles, did.stores // len(EXPONENTS)
        found["by_channel"] = tiles * int(bool(how.vectors))
        found["even"], found["looked_up"] = tiles * int(how.rounding == "even"), tiles * int(conv.activation == TABLE)
    is_filled = index + 1 < len(axes.chain.conv) or axes.chain.output_layout == IN_BLOCKS
    found["edge"] = tiles * (_edge_share(target) * is_filled)
    return found


def _edge_share(tensor: Extents) -> float:
    """Return the share of a tensor's tiles of which not all is logical."""
    inside = [
        sum(max(0, end // size - ceil(first / size)) for first, end in images)
        for images, size in ((tensor.rows_of_images, ROW_BLOCK), (tensor.columns_of_images, COLUMN_BLOCK))
    ]
    return max(0.0, 1 - prod(inside) / (tensor.row_blocks * tensor.column_blocks))


def _read_by_vectors(axes: BlockAxes) -> Parts:
    """Count the parts of copying an input in pixels to croutons by vectors; none of another input, or a short one.

    Of an unfolded input each row of taps is a load.
    """
    chain, tensor = axes.chain, axes.extents[0]
    if chain.input_layout != PIXELS or prod(chain.input) < VECTOR_BYTES:
        return Parts()
    channels, apart = chain.input[3], tensor.phases[1] * chain.input[3]
    is_near = (PIXELS_OF_VECTOR - 1) * apart + channels <= VECTOR_BYTES or apart == channels == 2 * CHANNEL_BLOCK
    inside, edges = (axes.rows_made[0] * (count * tensor.channel_blocks) for count in _vectors_of_row(tensor))
    loads = tensor.unfolded.kernel[0] if tensor.unfolded else 1
    if loads > 1:  # each row of taps has a predicate of its own, as an edge has
        inside, edges = 0, inside + edges
    return Parts(
        **{"read_near" if is_near else "read": inside},
        read_edge=edges,
        filled=_stored_vectors(axes) - (inside + edges) // loads,
    )


def _vectors_of_row(tensor: Extents) -> tuple[int, int]:
    """Count the vectors of a logical row and a block of channels: of tiles that lie inside of it, and at its edges."""
    inside = edges = 0
    for first, end in tensor.columns_of_images:
        whole = range(ceil(first / COLUMN_BLOCK), end // COLUMN_BLOCK)
        some = range(first // PIXELS_OF_VECTOR, ceil(end / PIXELS_OF_VECTOR))
        inside += HALVES * len(whole)
        edges += len(some) - HALVES * len(whole)
    return inside, edges


def _read_by_bytes(axes: BlockAxes) -> Parts:
    """Count the parts of copying runs of bytes of the input to croutons."""
    channels, tensor, rows = axes.chain.input[3], axes.extents[0], axes.rows_made[0]
    pixels = sum(end - first for first, end in tensor.columns_of_images)
    stored = tensor.channel_blocks * CHANNEL_BLOCK
    name = "read_block" if axes.chain.input_layout == IN_BLOCKS else "read_byte"
    return Parts(
        **{name: rows * (pixels * tensor.channel_blocks)},
        read_short=rows * (pixels * ((stored - channels) // gcd(PAIR_BYTES, channels))),
        filled=_stored_vectors(axes) - rows * (pixels * stored // VECTOR_BYTES),
    )


def _stored_vectors(axes: BlockAxes) -> Integers:
    """Count the vectors that the input has in croutons, of all steps."""
    tensor = axes.extents[0]
    return axes.slabs_made[0] * (tensor.column_blocks * tensor.channel_blocks * COLUMN_BLOCK * HALVES)


def _of_filters(axes: BlockAxes, of_widened: bool) -> Parts:
    """Count the parts of staging filters: of depthwise ones, which HVX widens always, or of the others."""
    resident, found = axes.plans.flags("filters", "resident"), Parts()
    for number in axes.chain.filters:
        if is_widened(axes.chain, number - 1) != of_widened:
            continue
        times = resident * 1 + ~resident * axes.stagings[number]
        found["filter"] = found["filter"] + times * (prod(axes.packed_filter(number - 1)) // VECTOR_BYTES)
        found["staged"] = found["staged"] + times * (resident * 1 + ~resident * axes.tiles(number - 1))
    return found


def _written_by_vectors(axes: BlockAxes) -> Parts:
    """Count the parts of copying the output from croutons, by vectors where these are whole."""
    chain, tensor, blocks = axes.chain, axes.extents[-1], axes.staged(axes.convs[-1])
    if chain.output_layout != PIXELS:
        return _written_by_bytes(axes)
    channels, runs = tensor.channels, _runs_written(axes)
    is_in_vectors = (blocks % VECTOR_BLOCKS == 0) & (channels % (blocks * CHANNEL_BLOCK) == 0)
    is_whole = (blocks == tensor.channel_blocks) | is_in_vectors
    is_near = is_whole & (channels == blocks * CHANNEL_BLOCK) & (blocks <= 2)
    tail = tensor.batch * tensor.logical_rows * _pixels_of_tail(tensor) * tensor.channel_blocks
    vectors = np.where(is_near, runs, runs - tail) / PIXELS_OF_VECTOR
    name = "written" if channels % (VECTOR_BLOCKS * CHANNEL_BLOCK) == 0 else "written_part"
    return Parts(
        **{"written_near": is_near * vectors, name: (is_whole & ~is_near) * vectors},
        written_byte=np.where(is_whole, tail * ~is_near, runs),
    )


def _pixels_of_tail(tensor: Extents) -> int:
    """Count the last pixels of a row behind which a vector of their channels would end."""
    vectors_bytes = ceil(tensor.channel_blocks / VECTOR_BLOCKS) * VECTOR_BYTES
    return min(tensor.logical_columns, ceil((vectors_bytes - tensor.channels) / tensor.channels))


def _written_by_bytes(axes: BlockAxes) -> Parts:
    """Count the parts of copying runs of bytes of the output, or its blocks."""
    if axes.chain.output_layout == IN_BLOCKS:
        return Parts(block=prod(axes.extents[-1].packed_shape) // VECTOR_BYTES)
    return Parts(written_byte=_runs_written(axes))


def _runs_written(axes: BlockAxes) -> int:
    tensor = axes.extents[-1]
    return tensor.batch * tensor.logical_rows * tensor.logical_columns * tensor.channel_blocks
