"""A nest of rows, from the shapes and the plan alone: caches, steps, bytes moved, products. The closed form.

The output is made in stripes of `h_split` blocks of 8 rows. A conv that makes r rows of its output, from row a of the
stored tensor on, reads of its source

    rows a * stride .. a * stride + (r - 1) * stride + reach - 1          reach = (kernel - 1) * dilation + 1

or as many of these as there are. That is the stripe of the source; an intermediate's is made in one step, so that r of
the conv before is the whole of it. A cache holds its stripe, whole rows wide.

Rings (`halo = "roll"`). Where the rows of a tensor below M are there, of its source are there those below

    0 if M = 0, else M * stride + reach - stride

and a step makes the rest of its stripe alone. Double buffering gives a ring of the input as many rows more as one
stripe of the output adds, none where a stride steps over rows; a cache that is copied to or from more than once gets a
second slot.

Products. An instruction is 128 of them: 4 in each of 32 lanes. Every logical pixel of a step takes one for each block
of 32 output channels and each word of 4 channels under its window. Where the filter has a zero point (int8 filters have
128, as uint8) every tile of channels sums its windows: all vectors of the rows under a row of outputs, or, where rows
are no whole vectors, one instruction more for each word. Where the source has one, the filter is summed once. Where the
first words of a tile are multiplied during the tile before it, the last tile of a row starts once more.

Traffic. The input's logical elements of all rows that are read; a filter whenever a step of its conv makes anything, or
once where it is resident; the packed output once. Biases are left out.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, prod

from hexconv.analyze.footprint import DTYPE_BYTES, PredictedCache
from hexconv.analyze.needed import Work
from hexconv.kernel.forms import (
    FIRST_WORDS,
    Forms,
    has_vector_rows,
    overlaps_tiles,
    rows_forms,
    tile_blocks,
    tile_pixels,
)
from hexconv.spec import Chain, Extents, Plan, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED, ROW_BLOCK

MACS_OF_INSTRUCTION = 128
VECTOR_WORDS = 32


@dataclass(frozen=True)
class RowStep:
    """One step of whatever makes a tensor.

    Attributes:
        start: the row at which its stripe starts.
        end: one past the last row of that.
        there: rows of the tensor that have been made before, all below this one.
    """

    start: int
    end: int
    there: int = 0

    @property
    def rows(self) -> range:
        """The rows that it makes."""
        return range(max(self.start, self.there), max(self.end, self.start, self.there))


@dataclass(frozen=True)
class PlannedRows:
    """A chain under a plan whose nest is kept in rows; everything else is derived from it."""

    chain: Chain
    plan: Plan

    @cached_property
    def extents(self) -> tuple[Extents, ...]:
        """Stored extents of every tensor."""
        return tensor_extents(self.chain)

    @cached_property
    def forms(self) -> Forms:
        """The layouts."""
        return rows_forms(self.chain, self.plan.k_split)

    @cached_property
    def stripe_rows(self) -> tuple[int, ...]:
        """Rows of a stripe of every tensor, those that the output's blocks are rounded up to included.

        >>> from hexconv.spec import Conv2d, Requantize
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
        >>> PlannedRows(Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv)), Plan()).stripe_rows
        (12, 10, 8)
        """
        rows = [min(self.plan.h_split, self.extents[-1].row_blocks) * ROW_BLOCK]
        for conv, source in zip(reversed(self.chain.conv), reversed(self.extents[:-1]), strict=True):
            rows.insert(0, min((rows[0] - 1) * conv.stride[0] + conv.reach[0], source.rows))
        return tuple(rows)

    @property
    def stripes(self) -> int:
        """Of the output."""
        return ceil(self.extents[-1].row_blocks / self.plan.h_split)

    @property
    def ahead_rows(self) -> int:
        """Rows of the input that a ring holds beside a stripe, read ahead of it."""
        steps_over = any(conv.reach[0] < conv.stride[0] for conv in self.chain.conv)
        if self.plan.buffering == "single" or self.plan.halo != "roll" or steps_over:
            return 0
        added = self.stripe_rows[-1] * prod(conv.stride[0] for conv in self.chain.conv)
        return min(added, self.extents[0].rows - self.stripe_rows[0])

    def channel_tiles(self, index: int) -> int:
        """Of conv `index`."""
        return ceil(self.extents[index + 1].channel_blocks / self.plan.k_split)

    @cached_property
    def copy_times(self) -> dict[str, int]:
        """How often each cache is copied to or from: the iterations of all loops around the copy."""
        times, runs, last = {}, self.extents[-1].batch, len(self.chain.conv) - 1
        for index in reversed(range(last + 1)):
            stripes = self.stripes if index == last else 1
            tiles = runs * stripes * self.channel_tiles(index)
            if index == last:
                times["output_cache"] = tiles
            times[f"filter{index + 1}_cache"] = 1 if self.plan.filters == "resident" else tiles
            runs = tiles if self._makes_source_again(index) else runs * stripes
        return {**times, "input_cache": runs}

    def _makes_source_again(self, index: int) -> bool:
        """Whether what conv `index` reads is made for each of its channel tiles."""
        return self.plan.order == "k_outer" and index == len(self.chain.conv) - 1 and self.stripes > 1

    @cached_property
    def doubled(self) -> frozenset[str]:
        """The caches of two slots."""
        rolls = {"input_cache"} if self.plan.halo == "roll" else set()
        names = {name for name, times in self.copy_times.items() if times > 1} - rolls
        return frozenset(names if self.plan.buffering == "double" else ())

    @cached_property
    def steps(self) -> tuple[Counter[RowStep], ...]:
        """The steps that make every tensor, and how often each is run."""
        output, stripe = self.extents[-1], self.stripe_rows[-1]
        starts = range(0, output.row_blocks * ROW_BLOCK, stripe)
        end = output.row_blocks * ROW_BLOCK
        rolls = self.plan.halo == "roll"
        first = (RowStep(start, min(start + stripe, end), start if rolls else 0) for start in starts)
        steps = [Counter(dict.fromkeys(first, output.batch))]
        for index in reversed(range(len(self.chain.conv))):
            made: Counter[RowStep] = Counter()
            again = self.channel_tiles(index) if self._makes_source_again(index) else 1
            for step, times in steps[0].items():
                made[self._source_step(index, step)] += times * again
            steps.insert(0, made)
        return tuple(steps)

    def _source_step(self, index: int, step: RowStep) -> RowStep:
        """The step that makes what a step of conv `index` reads."""
        conv = self.chain.conv[index]
        stride, start = conv.stride[0], step.start * conv.stride[0]
        there = step.there * stride + conv.reach[0] - stride if step.there else 0
        return RowStep(start, min(start + self.stripe_rows[index], self.extents[index].rows), there)

    def logical_rows(self, tensor: int) -> int:
        """Logical rows that all steps make of a tensor, repetitions included."""
        first, end = self.extents[tensor].valid_rows
        return sum(
            times * max(0, min(step.rows.stop, end) - max(step.rows.start, first))
            for step, times in self.steps[tensor].items()
        )

    def filter_stagings(self, index: int) -> int:
        """How often all of the filter of conv `index` is staged."""
        if self.plan.filters == "resident":
            return 1
        steps = self.steps[index + 1].items()
        return sum(times for step, times in steps if len(step.rows) or self.plan.halo == "recompute")

    def filter_zero(self, index: int) -> int:
        """The zero point of the filter of conv `index`, of uint8."""
        return self.chain.conv[index].filter_zero_point + self.forms.filter_shift

    def source_columns(self, index: int) -> int:
        """Pixels of a row of what conv `index` reads."""
        _, _, *row = self.forms.activations[index].physical_shape
        return row[0] if index == 0 else prod(row[1:-1])

    def row_bytes(self, index: int) -> int:
        """Bytes of a row of what conv `index` reads, all channels."""
        return prod(self.forms.activations[index].physical_shape[2:])

    def sums_windows_ahead(self, index: int) -> bool:
        """Whether the windows of conv `index` are summed before its tiles."""
        pixel_bytes = self.forms.activations[index].physical_shape[-1]
        return self.filter_zero(index) != 0 and has_vector_rows(pixel_bytes, self.source_columns(index))

    def tiles(self, index: int) -> Counter[int]:
        """How many tiles of channels conv `index` has, by their blocks."""
        blocks = self.extents[index + 1].channel_blocks
        split = min(self.plan.k_split, blocks)
        most, (whole, rest) = tile_blocks(split), divmod(blocks, split)
        found: Counter[int] = Counter()
        for size, times in ((split, whole), (rest, 1)):
            found[most] += size // most * times
            found[size % most] += times
        return Counter({size: times for size, times in found.items() if size and times})

    def begun_again(self, index: int) -> int:
        """Instructions of each row that start a tile once more, where the first words of tiles overlap others."""
        conv, tensor = self.chain.conv[index], self.extents[index + 1]
        first, end = tensor.valid_columns
        planes = 1 if index == 0 else self.forms.activations[index].physical_shape[2]
        words = prod(self.forms.filters[index].physical_shape) // MACS_OF_INSTRUCTION // tensor.channel_blocks
        in_tiles = self.filter_zero(index) != 0 and not self.sums_windows_ahead(index)
        if in_tiles or (conv.dilation[1] > 1 and conv.kernel[1] > 1):
            return 0
        return sum(
            times * blocks * tile_pixels(blocks) * FIRST_WORDS
            for blocks, times in self.tiles(index).items()
            if overlaps_tiles(conv.kernel[0], planes, words, blocks, (end - first) // tile_pixels(blocks))
        )

    def instructions(self, index: int) -> int:
        """Instructions that multiply for conv `index`."""
        tensor, conv = self.extents[index + 1], self.chain.conv[index]
        first, end = tensor.valid_columns
        vectors = prod(self.forms.filters[index].physical_shape) // MACS_OF_INSTRUCTION
        rows, tiles = self.logical_rows(index + 1), self.tiles(index).total()
        words = vectors // tensor.channel_blocks
        products = rows * ((end - first) * vectors + self.begun_again(index))
        if self.sums_windows_ahead(index):
            products += rows * tiles * conv.kernel[0] * self.row_bytes(index) // MACS_OF_INSTRUCTION
        elif self.filter_zero(index):
            products += rows * (end - first) * words * tiles
        return products + (vectors if self.chain.output_zero_point(index) else 0)


@lru_cache(REMEMBERED)
def planned_rows(chain: Chain, plan: Plan) -> PlannedRows:
    """The closed forms of a chain under a plan, each computed once."""
    return PlannedRows(chain, plan)


def rows_footprints(chain: Chain, plan: Plan) -> tuple[PredictedCache, ...]:
    """Every cache of a nest of rows, then what its kernels need beside them.

    >>> from hexconv.spec import Conv2d, Requantize
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
    >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
    >>> plan = Plan(kernel="hvx", order="h_outer", halo="roll", buffering="double")
    >>> [(cache.name, cache.bytes) for cache in rows_footprints(chain, plan)][:3]
    [('input_cache', 163840), ('filter1_cache', 73728), ('intermediate1', 81920)]
    """
    planned = planned_rows(chain, plan)
    return (*_caches(planned), *_scratch(planned))


def _caches(planned: PlannedRows) -> Iterator[PredictedCache]:
    """The caches, in the order of the data."""
    chain, forms, rows = planned.chain, planned.forms, planned.stripe_rows
    image = (1, rows[0] + planned.ahead_rows, *forms.activations[0].physical_shape[2:])
    yield _slots(planned, PredictedCache("input_cache", "input", chain.dtype, image))
    for index, filter in enumerate(forms.filters):
        number, groups = index + 1, filter.physical_shape[0]
        blocks = planned.extents[index + 1].channel_blocks
        side_by_side = blocks // groups
        some = groups if planned.plan.filters == "resident" else min(planned.plan.k_split, blocks) // side_by_side
        shape = (some, *filter.physical_shape[1:])
        yield _slots(planned, PredictedCache(f"filter{number}_cache", "filter", forms.filter_dtype, shape))
        if number < len(chain.conv):
            shape = (1, rows[number], *forms.activations[number].physical_shape[2:])
            yield PredictedCache(f"intermediate{number}", "intermediate", chain.dtype, shape)
    _, _, columns, blocks, *block = forms.activations[-1].physical_shape
    shape = (1, rows[-1] // ROW_BLOCK, columns, min(planned.plan.k_split, blocks), *block)
    dtype = chain.output_dtype(len(chain.conv) - 1)
    yield _slots(planned, PredictedCache("output_cache", "output", dtype, shape))


def _slots(planned: PlannedRows, cache: PredictedCache) -> PredictedCache:
    """A cache with its second slot, if it has one."""
    shape = (2, *cache.shape) if cache.name in planned.doubled else cache.shape
    return PredictedCache(cache.name, cache.role, cache.dtype, shape)


def _scratch(planned: PlannedRows) -> Iterator[PredictedCache]:
    """What is added to the sums of every channel, where that differs, and the sums of windows."""
    chain = planned.chain
    for index, conv in enumerate(chain.conv):
        if conv.bias or chain.output_zero_point(index):
            channels = ceil(conv.out_channels / CHANNEL_BLOCK) * CHANNEL_BLOCK
            yield PredictedCache(f"offset{index + 1}", "offset", "int32", (channels,))
        if planned.sums_windows_ahead(index):
            first, end = planned.extents[index + 1].valid_columns
            pixels = _vectors(end - first)
            read = first * conv.stride[1] + pixels + conv.reach[1] - 1
            columns = _vectors(max(planned.source_columns(index), read))
            yield PredictedCache(f"columns{index + 1}", "window", "int32", (columns,))
            yield PredictedCache(f"corrections{index + 1}", "window", "int32", (pixels,))


def _vectors(words: int) -> int:
    """Words rounded up to whole vectors."""
    return ceil(words / VECTOR_WORDS) * VECTOR_WORDS


def rows_work(chain: Chain, plan: Plan) -> Work:
    """What a nest of rows moves and multiplies."""
    planned, last = planned_rows(chain, plan), len(chain.conv) - 1
    first, end = planned.extents[0].valid_columns
    traffic = {"input": planned.logical_rows(0) * (end - first) * chain.input[3] * DTYPE_BYTES[chain.dtype]}
    for index, filter in enumerate(planned.forms.filters):
        traffic[f"filter{index + 1}"] = planned.filter_stagings(index) * prod(filter.physical_shape)
    traffic["output"] = prod(planned.extents[-1].packed_shape) * DTYPE_BYTES[chain.output_dtype(last)]
    macs = {f"conv{index + 1}": planned.instructions(index) * MACS_OF_INSTRUCTION for index in range(last + 1)}
    return Work(traffic, macs)


def rows_in_flight(chain: Chain, plan: Plan) -> dict[str, int]:
    """The most copies of each tensor that are under way: a row is a copy where a ring is read ahead."""
    planned = planned_rows(chain, plan)
    tensors = ["input", *(f"filter{index + 1}" for index in range(len(chain.conv))), "output"]
    if plan.buffering == "single":
        return dict.fromkeys(tensors, 0)
    in_flight = {name: 2 if f"{name}_cache" in planned.doubled else 1 for name in tensors}
    ahead = planned.ahead_rows
    return {**in_flight, "input": planned.stripe_rows[0] + ahead} if ahead else in_flight
