"""Values of every plan of a nest of blocks at once: caches, slots, traffic, MACs; one plan is a grid of one.

One outer step computes `k_split` blocks of 32 output channels by `h_split` blocks of 8 rows, over the full width. The
tensors that it needs are found backwards, from the output to the input.

Output cache. It holds one step of the last conv: h_split block rows (all of them if there are fewer), full width,
k_split channel blocks.

Filter caches. Each conv has one, which holds the k_split output-channel blocks of one step, with all input channels and
the whole kernel; a 3x3 kernel makes it 9 times as large as 1x1. Resident filters are staged whole.

Groups. A filter has the input channels of one group. If their number is no multiple of 32, the filter is stored without
blocks of input channels: [32-channel blocks out, channels in, rows, columns, 32]. Everything else is as without groups.

Input cache. It holds the stripe that the first conv reads in one of its steps (`hexconv.analyze.block_nest`).

Intermediates. Each holds the stripe that the next conv reads, with all channels: a conv sums over all input channels,
so all output channels of the conv before it must be there.

Accumulators. Where a conv has an epilogue, its sums live in one block of 8 x 8 x 32 until they are written out.

Double buffering. A cache that is copied to or from more than once has two slots. A ring of the input has as many slabs
more as one step of the first conv adds to its stripe, `step * stride`: they are read ahead. (There are none where a
stride steps over slabs, since the next slabs to read then aren't those that follow.) A cache that is copied once has
one slot.

Knob by knob: `h_split` scales everything that has rows, and each slab of halo is paid once a step, so larger steps
waste less on it. `k_split` scales filter caches and the output cache; intermediates hold all channels whatever it is.
Kernel rows, times dilation, are the halo; kernel columns cost filter elements only, since the width is whole. Stride
multiplies the rows read. Padding makes a tensor longer and wider (`hexconv.spec.extents`), so it counts where a
stripe is the whole tensor, and in the width. Batch costs nothing: one image at a time is cached. The dtype changes
bytes, and integers and float16 add accumulators, as do bias and activation.

Traffic and MACs follow from the steps of every conv (`hexconv.analyze.block_nest`).

Input. Each step of the input read copies the logical elements of its slabs: padding and fringe are written, not read.

Filters. Each step of a conv stages all of its packed filter, one channel tile after the other, fringe included. A step
past the end of the tensor stages it too, though it computes nothing, as in the listings of the source document.
Resident filters are staged once. With ring buffers only steps that make something stage a filter, and where stripes
roll inside of channel tiles, a tile of the filter is staged once for all of them; of the last conv, for all images too.

Output. Every element of the packed output is written once, its fringe included.

MACs. Each step computes the logical outputs of its slabs; padding that they read is multiplied like anything else.

Outside of VTCM, what the kernel does in a cache is traffic, too. It reads an element of the source and of the filter
for each multiply-accumulate, and writes all of each block that it makes; where its sums are its results, it reads and
writes one for each multiply-accumulate, too.

Source: the Hexagon document, its nests and "Cache Usage" of each section; where its prose and its TIR differ, its TIR.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod
from typing import Any

import numpy as np

from hexconv.analyze.block_nest import BlockStripes, Made
from hexconv.analyze.caches import BLOCK, DTYPE_BYTES, PredictedCache, has_accumulator, packed_filter
from hexconv.analyze.exact import Integers, ceil_divide, integer_type
from hexconv.analyze.needed import macs_per_output
from hexconv.analyze.plan_axes import Plans, Way
from hexconv.kernel import output_layout
from hexconv.kernel.engine import (
    LINE_BYTES,
    TABLES_WORDS,
    TAP_BYTES,
    EnginePackets,
    TileRow,
    engine_diagonal,
    engine_filter,
    filter_argument,
    is_converted,
    kernel_copies,
    read_blocks,
    row_packets,
    tap_bytes,
)
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.extents import ROW_BLOCK
from hexconv.spec.names import (
    INPUT_CACHE,
    accumulator,
    conv_name,
    filter_cache,
    filter_name,
    source_cache,
    target_cache,
)
from hexconv.spec.phases import in_phases
from hexconv.spec.vectors import CONVERTS


@dataclass(frozen=True)
class BlockAxes:
    """A chain over a grid of plans whose nest is kept in blocks.

    Arrays have the shape [words, H, K], or broadcast to it: H counts heights of stripes, K counts values of k_split.

    Attributes:
        chain: the chain.
        plans: the plans.
        kind: the type of figures that may be large, traffic and MACs: Python's integers, unless fewer bits do.
    """

    chain: Chain
    plans: Plans
    kind: Any = object

    @cached_property
    def stripes(self) -> dict[Way, BlockStripes]:
        """The stripes of all heights in each way: whether they roll, and whether copies overlap compute."""
        h_splits = tuple(height // ROW_BLOCK for height in self.plans.heights)
        return {way: BlockStripes(self.chain, h_splits, *way) for way in self.plans.ways}

    def rows(self, of: Callable[[BlockStripes], Any]) -> Integers:
        """Return figures [words, H, 1] that depend on stripes."""
        return self.plans.of_words({way: of(stripes) for way, stripes in self.stripes.items()})[..., None]

    def steps(self, index: int) -> Integers:
        """Return whether conv `index` takes several steps over rows: [words, H, 1]."""
        return self.rows(lambda stripes: stripes.row_steps[index] > 1)

    def tiles(self, index: int) -> Integers:
        """Return the tiles of output channels of conv `index`: [1, 1, K]."""
        return ceil_divide(self.extents[index + 1].channel_blocks, np.array(self.plans.k_splits))[None, None]

    def staged(self, index: int) -> Integers:
        """Return the blocks of output channels in a tile of conv `index`: [1, 1, K]."""
        return np.minimum(np.array(self.plans.k_splits), self.extents[index + 1].channel_blocks)[None, None]

    @property
    def convs(self) -> range:
        """The convs, counted from 0."""
        return range(len(self.chain.conv))

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """The stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def passes(self) -> list[Integers]:
        """How often all steps of each tensor are run, over images and over channel tiles of its readers."""
        times = [np.full((1, 1, 1), self.extents[-1].batch, self.kind)]
        anew = self.plans.flags("order", "k_outer") & self.plans.flags("halo", "recompute")
        for index in reversed(self.convs):
            repeats = (anew | self.rolls_in_tiles(index)) & self.steps(index)
            times.insert(0, times[0] * np.where(repeats, self.tiles(index).astype(self.kind), 1))
        return times

    def rolls_in_tiles(self, index: int) -> Integers:
        """Return whether stripes that roll inside of channel tiles are the steps of conv `index`: [words, H, 1]."""
        return self.plans.rolls_in_tiles & (self.rows(lambda stripes: stripes.rings) == index + 1)

    @cached_property
    def rows_made(self) -> list[Integers]:
        """The logical rows that all steps make of each tensor, repetitions included; of the input, rows in memory."""
        return self._made(lambda made: made.rows)

    @cached_property
    def slabs_made(self) -> list[Integers]:
        """The slabs that all steps make of each tensor, repetitions included."""
        return self._made(lambda made: made.slabs)

    @cached_property
    def tiles_made(self) -> list[Integers]:
        """The rows of tiles of 8 by 8 by 32 that all steps make of each tensor, where they have logical elements."""
        made = self._made(lambda made: made.slabs_with_rows)
        return [slabs * tensor.channel_blocks for slabs, tensor in zip(made, self.extents, strict=True)]

    @cached_property
    def steps_made(self) -> list[Integers]:
        """How many steps make each tensor, those of all channel tiles counted once, repetitions included."""
        return self._made(lambda made: made.stagings)

    @cached_property
    def stagings(self) -> list[Integers]:
        """How often all of a filter is staged by the conv that makes each tensor, unless it is resident."""
        staged = [*self.steps_made]
        for index in self.convs:
            # The tiles of the last conv stand around all images.
            passes = self.passes[index + 1] if index < self.convs[-1] else 1
            staged[index + 1] = np.where(self.rolls_in_tiles(index), passes, staged[index + 1])
        return staged

    def _made(self, of: Callable[[Made], Integers]) -> list[Integers]:
        once = self.rows(lambda stripes: of(stripes.made)).astype(self.kind)
        return [once[:, tensor] * passes for tensor, passes in enumerate(self.passes)]

    @cached_property
    def doubled(self) -> dict[str, Integers]:
        """Whether each cache has two slots, one for compute and one for copies (`Plans.two_slots`)."""
        steps, tiles = [self.steps(index) for index in self.convs], [self.tiles(index) for index in self.convs]
        rings = self.rows(lambda stripes: stripes.rings > 0)
        # Tiles repeat a source only where there are several steps, which repeat it too.
        in_tiles = [self.rolls_in_tiles(index) for index in self.convs]
        return self.plans.two_slots(self.extents[-1].batch > 1, steps, steps, tiles, rings, in_tiles)

    @cached_property
    def caches(self) -> list[PredictedCache]:
        """Every cache with one slot, in the order in which they are first written; its shape has arrays for sizes."""
        chain, resident = self.chain, self.plans.flags("filters", "resident")
        found = [PredictedCache(INPUT_CACHE, "input", 0, chain.dtype, self._stripe(0))]
        for index in self.convs:
            number, (blocks, *block) = index + 1, self.packed_filter(index)
            shape: tuple[Any, ...] = (np.where(resident, blocks, self.staged(index)), *block)
            if not chain.conv[index].pool:
                found.append(PredictedCache(filter_cache(number), "filter", number, self.filter_dtype, shape))
            if self.has_accumulator(index):
                known = (accumulator(number), "accumulator", number)
                found.append(PredictedCache(*known, chain.sum_dtype(index), self._sums(number)))
            role = "output" if index == self.convs[-1] else "intermediate"
            name = target_cache(number, len(chain.conv))
            found.append(PredictedCache(name, role, number, chain.output_dtype(index), self._stripe(number)))
        return found

    @property
    def filter_dtype(self) -> str:
        """The type of packed weights: the matrix engine's have a sign."""
        return "int8" if self.is_of_engine else self.chain.dtype_of_filters

    def packed_filter(self, index: int) -> tuple[int, ...]:
        """Return the shape of the packed filter of conv `index`."""
        return (
            engine_filter(self.chain, index).physical_shape if self.is_of_engine else packed_filter(self.chain, index)
        )

    def filter_argument_elements(self, index: int) -> int:
        """Count the weights that the filter of conv `index` has in memory, with what fills them up."""
        return filter_argument(self.chain, index).elements if self.is_of_engine else prod(self.packed_filter(index))

    @property
    def is_of_engine(self) -> bool:
        """Whether the matrix engine multiplies."""
        return self.plans.sample.kernel == "hmx"

    def has_accumulator(self, index: int) -> bool:
        """Whether the sums of conv `index` have a cache: those that the matrix engine converts never leave it."""
        stays = self.is_of_engine and is_converted(self.chain.conv[index])
        return has_accumulator(self.chain, index) and not stays

    @property
    def scratch(self) -> tuple[PredictedCache, ...]:
        """What the kernel has beside the caches of the nest, for the whole run: the matrix engine's bias tables."""
        if not self.is_of_engine:
            return ()
        return (PredictedCache(CONVERTS, "scale", 0, "int32", (TABLES_WORDS,)),)

    @property
    def threads(self) -> int:
        """The number of threads, which is the same for every plan."""
        return self.plans.sample.threads

    @property
    def sums_in_rows(self) -> bool:
        """Whether threads share the rows of tiles of a step: each has the sums of one of its own."""
        return self.threads > 1

    def _sums(self, number: int) -> tuple[int, ...]:
        """Return the shape of the sums of conv `number`: a block, or for each thread those of a row of tiles."""
        columns = self.extents[number].column_blocks if self.sums_in_rows else 1
        return (self.threads, 1, columns, 1, *BLOCK)

    def _stripe(self, tensor: int) -> tuple[Any, ...]:
        """Return the packed shape of what is held of a tensor: slabs, full width, all channels or those of a tile."""
        extents, is_output = self.extents[tensor], tensor == len(self.chain.conv)
        slabs = self.rows(lambda stripes: stripes.slabs[tensor] + (0 if tensor else stripes.ahead))
        blocks = self.staged(tensor - 1) if is_output else extents.channel_blocks
        return (1, slabs, extents.column_blocks, blocks, *BLOCK)


def blocks_of_plan(chain: Chain, plan: Plan) -> BlockAxes:
    """Return a plan of a nest of blocks as a grid of one."""
    return BlockAxes(in_phases(chain, plan.kernel, plan.padding_rows), Plans.of(plan))


def blocks_footprints(axes: BlockAxes) -> tuple[PredictedCache, ...]:
    """Predict every cache of one plan, in the order in which they are first written.

    >>> from hexconv.spec import Conv2d, Plan
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> caches = blocks_footprints(blocks_of_plan(chain, Plan(k_split=2, h_split=2)))
    >>> [(cache.name, cache.elements) for cache in caches][:3]
    [('input_cache', 196608), ('filter1_cache', 73728), ('intermediate1', 196608)]
    """
    two = blocks_doubled(axes)
    shapes = [tuple(int(np.asarray(size).item()) for size in cache.shape) for cache in axes.caches]
    whole = [(2, *shape) if each.name in two else shape for each, shape in zip(axes.caches, shapes, strict=True)]
    caches = (replace(cache, shape=shape) for cache, shape in zip(axes.caches, whole, strict=True))
    return (*axes.scratch, *caches)


def blocks_doubled(axes: BlockAxes, number: int = 0) -> frozenset[str]:
    """Return the names of the caches of plan `number` that have two slots.

    >>> from hexconv.spec import Conv2d, Plan
    >>> conv = Conv2d(out_channels=64)
    >>> chain = Chain(input=(1, 8, 8, 4), conv=(conv, conv))
    >>> sorted(blocks_doubled(blocks_of_plan(chain, Plan(buffering="double"))))
    ['filter1_cache', 'filter2_cache', 'output_cache']
    """
    at, shape = np.unravel_index(number, axes.plans.shape), axes.plans.shape
    names = (cache.name for cache in axes.caches)
    return frozenset(name for name in names if np.broadcast_to(axes.doubled.get(name, False), shape)[at])


def blocks_in_flight(axes: BlockAxes) -> int:
    """How many copies of the input are under way at once in one plan, with double buffering."""
    (stripes,) = axes.stripes.values()
    if stripes.rings[0]:
        return stripes.reads_in_flight(0)
    return 2 if INPUT_CACHE in blocks_doubled(axes) else 1


def with_kind(axes: BlockAxes) -> BlockAxes:
    """Return axes whose figures have the integer type that holds all of them; an estimate in floats decides which."""
    floats = replace(axes, kind=np.float64)
    figures = (*blocks_traffic(floats).values(), *blocks_macs(floats).values())
    return replace(axes, kind=integer_type(int(2 * sum(float(each.max()) for each in figures))))


def blocks_macs(axes: BlockAxes) -> dict[str, Integers]:
    """Compute the multiply-accumulates of each conv.

    >>> from hexconv.spec import Conv2d, Plan
    >>> conv = Conv2d(out_channels=128)
    >>> macs = blocks_macs(blocks_of_plan(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan()))
    >>> {name: each.item() // (64 * 64 * 128 * 128) for name, each in macs.items()}
    {'conv1': 4, 'conv2': 1}
    """
    of_rows = [_row_elements(axes, i + 1) * _macs_per_output(axes, i) for i in axes.convs]
    return {conv_name(i + 1): axes.rows_made[i + 1] * of_rows[i] for i in axes.convs}


def _macs_per_output(axes: BlockAxes, index: int) -> int:
    """How many products an output of conv `index` sums; on the matrix engine groups have zeros beside their own."""
    diagonal = engine_diagonal(axes.chain, index) if axes.is_of_engine else None
    return diagonal.channels * prod(axes.chain.conv[index].kernel) if diagonal else macs_per_output(axes.chain, index)


def blocks_traffic(axes: BlockAxes) -> dict[str, Integers]:
    """Compute the bytes that plans move between memory and the caches, by argument, and by cache outside of VTCM."""
    chain, resident = axes.chain, axes.plans.flags("filters", "resident")
    traffic = {"input": axes.rows_made[0] * (_row_elements(axes, 0) * DTYPE_BYTES[chain.dtype])}
    for number in chain.filters:
        filter_bytes = axes.filter_argument_elements(number - 1) * DTYPE_BYTES[chain.dtype_of_filters]
        traffic[filter_name(number)] = np.where(resident, 1, axes.stagings[number]) * filter_bytes
    written = prod(output_layout(chain).physical_shape) * DTYPE_BYTES[chain.output_dtype(axes.convs[-1])]
    traffic["output"] = np.full((1, 1, 1), written, axes.kind)
    if axes.plans.is_mixed:
        outside = {cache.name: 1 - axes.plans.counts(cache) for cache in axes.caches}
        for name, size in _touched(axes):
            if outside[name].any():
                traffic[name] = traffic.get(name, 0) + outside[name] * size
    return traffic


def _touched(axes: BlockAxes) -> Iterator[tuple[str, Integers]]:
    """Yield the bytes that the plain kernel reads and writes in caches, wherever these lie, by their names."""
    chain = axes.chain
    for index, tensor in enumerate(axes.extents[1:]):
        products = axes.rows_made[index + 1] * (_row_elements(axes, index + 1) * chain.elements_per_output(index))
        target = target_cache(index + 1, len(chain.conv))
        elements = axes.slabs_made[index + 1] * (tensor.column_blocks * tensor.channel_blocks * prod(BLOCK))
        yield source_cache(index + 1), products * DTYPE_BYTES[chain.dtype]
        if not chain.conv[index].pool:
            yield filter_cache(index + 1), products * DTYPE_BYTES[chain.dtype_of_filters]
        if add := chain.conv[index].add:
            added = axes.rows_made[index + 1] * (_row_elements(axes, index + 1) * DTYPE_BYTES[chain.dtype])
            yield source_cache(add.tensor + 1), added
        if axes.has_accumulator(index):
            yield target, elements * DTYPE_BYTES[chain.output_dtype(index)]
        else:
            # A pool takes the fringe for the elements that its windows lack, tap by tap.
            summed = elements * chain.elements_per_output(index) if chain.conv[index].pool else products
            yield target, (2 * summed + elements) * DTYPE_BYTES[chain.sum_dtype(index)]


def engine_packets(axes: BlockAxes) -> EnginePackets:
    """Count the packets of the matrix engine that every plan takes, [words, H, K] or less, by kind.

    >>> from hexconv.spec import Conv2d, Plan, Requantize
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 30, shift=-9))
    >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", filter_dtype="int8", conv=(conv, conv))
    >>> plan = Plan(kernel="hmx", k_split=4, order="h_outer", halo="roll", storage="vtcm")
    >>> packets = engine_packets(blocks_of_plan(chain, plan))
    >>> packets.multiplies.item(), packets.taps.item()
    (2048, 18432)
    """
    return sum((engine_packets_of(axes, index) for index in axes.convs), EnginePackets())


def engine_packets_of(axes: BlockAxes, index: int) -> EnginePackets:
    """Count the packets of conv `index` (from 0) alone."""
    source, target = axes.extents[index], axes.extents[index + 1]
    own = row_packets(axes.chain, index, source, target).times(axes.tiles_made[index + 1])
    more: Any = axes.tiles_made[index + 1] // target.channel_blocks * _one_by_one(axes, index)
    return own + EnginePackets(multiplies=more)


def _one_by_one(axes: BlockAxes, index: int) -> Integers:
    """Count the packets that a row of tiles of all blocks of channels takes more since taps at lines go one by one."""
    resident, blocks = axes.plans.flags("filters", "resident"), axes.extents[index + 1].channel_blocks
    per_tile = [_more_packets(axes, index, min(held, blocks)) for held in axes.plans.k_splits]
    return np.where(resident, _more_packets(axes, index, blocks), np.array(per_tile)[None, None])


def _more_packets(axes: BlockAxes, index: int, held: int) -> int:
    """Count the packets that kernels across a line take more, of a cache that holds so many blocks of outputs."""
    chain, source, target = axes.chain, axes.extents[index], axes.extents[index + 1]
    kernels, taps = read_blocks(chain, index) * kernel_copies(chain, index), prod(chain.conv[index].kernel)
    if held * kernels * taps * tap_bytes(chain, index) <= LINE_BYTES:
        return 0
    first = np.arange(target.channel_blocks)[:, None] % held * kernels
    begins = (first + np.arange(kernels)) * (taps * TAP_BYTES)
    rows = TileRow.rows_of(chain, index, source, target)
    packets = [each for row in rows for each in row.multiplied]
    return sum(int(packet.crosses(begins).sum()) * (packet.taps - 1) * times for packet, times in packets)


def crosses_lines(axes: BlockAxes) -> Any:
    """Say of every plan whether an operand of the matrix engine would lie on both sides of a line of VTCM.

    A cache that fits into a line lies in one, a larger one begins with a line. If that has several slabs, a conv of
    several rows reads croutons above each other from both sides. Of weights whose packet would cross a line, taps go
    one by one; those of two slots would have to in one slot, and not in the other, so that such a plan is refused.
    """
    crosses: Any = np.zeros((1, 1, 1), bool)
    for cache in axes.caches:
        elements = prod(np.asarray(size, axes.kind) for size in cache.shape)
        size = elements * (1 + axes.doubled.get(cache.name, 0)) * DTYPE_BYTES[cache.dtype]
        is_larger = size > LINE_BYTES
        if cache.role == "filter":
            in_two_slots = axes.doubled.get(cache.name, np.zeros((1, 1, 1), bool))
            crosses = crosses | (in_two_slots & (size > _first_cut(axes, cache.number - 1)))
        elif cache.role in ("input", "intermediate") and _reads_below(axes, cache.number):
            crosses = crosses | (is_larger & (np.asarray(cache.shape[1]) > 1))
    return crosses


def _first_cut(axes: BlockAxes, index: int) -> float:
    """Return where the first line ends inside of the weights of one packet of conv `index`; infinity where none does.

    Kernels lie one behind the other, so that ends of lines are in the same places again after as many as it has taps.
    """
    conv, source, target = axes.chain.conv[index], axes.extents[index], axes.extents[index + 1]
    packets = {
        (each.first, each.first + each.taps)
        for row in TileRow.rows_of(axes.chain, index, source, target)
        for is_beyond in (False, True)
        for each in row.packets(is_beyond)
    }
    taps, of_line = prod(conv.kernel), LINE_BYTES // TAP_BYTES
    ends = (line for line in range(1, taps) if any(a < line * of_line % taps < b for a, b in packets))
    return next((line * LINE_BYTES for line in ends), inf)


def _reads_below(axes: BlockAxes, index: int) -> bool:
    """Whether a packet of conv `index` reads the crouton below, too: in phase images few taps reach it."""
    rows = TileRow.rows_of(axes.chain, index, *axes.extents[index : index + 2])
    return any(each.row for row in rows for each in row.packets())


def _row_elements(axes: BlockAxes, tensor: int) -> int:
    """Return the logical elements of one row of a tensor, of all phases that are stored."""
    return axes.extents[tensor].elements_of_row
