"""The kernel of a whole float32 chain for the host: bands of rows side by side, every conv rolling through its band.

    stage the filters and biases
    in parallel, for image, for band of its rows:
        for stripe: for conv: move the rows that the stripe before left; compute the new ones

A stripe of every intermediate stays in the cache of its core. Within a band no row is computed twice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.arguments import Arguments
from hexconv.schedule.block import Block, Number, int32
from hexconv.schedule.host import vector
from hexconv.schedule.host.bands import Bands, Progress
from hexconv.schedule.host.caches import Cache, clear, fill_input, roll
from hexconv.schedule.host.convolve import Conv, convolve
from hexconv.schedule.host.filters import Filter, cache_elements, stage_filter
from hexconv.schedule.host.output import cache_address, packed_address, zero_fringe
from hexconv.schedule.host.stage import Lines, Stage, stages_of
from hexconv.spec import Chain, Plan, tensor_extents
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
from hexconv.spec.registers import ELEMENT_BYTES, Registers, registers_of, tile_shape

ALONE_BYTES = 256 * 1024
"""Filters up to this size are staged by one thread: some microseconds, no more than waking another takes."""


@dataclass(frozen=True)
class Kernel:
    """What is known before the first band."""

    bands: Bands
    image: tirx.Buffer
    output: tirx.Buffer
    filters: tuple[Filter, ...]
    biases: tuple[tirx.Buffer | None, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Of all convs."""
        return tuple(filter.stage for filter in self.filters)

    @property
    def lanes(self) -> int:
        """Of a vector."""
        return self.filters[0].registers.lanes


def chain_function(chain: Chain, plan: Plan) -> tirx.PrimFunc:
    """`main(input, filter1, ..., bias1, ..., output)`, arguments as `hexconv.compute.chain_module` has them.

    Args:
        chain: of float32.
        plan: `h_split` blocks of 8 rows are a stripe, `threads` bands of stripes run side by side, `simd` says for
            which registers.
    """
    stages = stages_of(chain)
    arguments = _arguments(chain, stages)
    bands = Bands(stages, plan.h_split * ROW_BLOCK, min(plan.threads, stages[-1].out_size[0]))
    body = Block()
    kernel = _prepare(body, bands, stages, arguments, registers_of(plan.simd))

    def fringe(at: Block, image: tirx.Expr) -> None:
        zero_fringe(at, stages[-1], kernel.output, image, kernel.lanes)

    def band(at: Block, index: tirx.Expr) -> None:
        image = at.bind("image", tirx.floordiv(index, int32(bands.count)))
        _band(at, kernel, image, at.bind("number", tirx.floormod(index, int32(bands.count))))

    body.loop("image", chain.input[0], fringe)
    kind = tirx.ForKind.PARALLEL if bands.count > 1 else tirx.ForKind.SERIAL
    body.loop("band", chain.input[0] * bands.count, band, part="band of the output's rows", kind=kind)
    return tirx.PrimFunc(arguments.all, body.statement()).with_attrs({"global_symbol": "main", "tirx.noalias": True})


def _arguments(chain: Chain, stages: tuple[Stage, ...]) -> Arguments:
    def argument(name: str, shape: tuple[int, ...]) -> tirx.Buffer:
        return tirx.decl_buffer(shape, "float32", name, data_alignment=vector.ALIGNMENT_BYTES)

    return Arguments(
        image=argument("input", chain.input),
        filters=tuple(
            argument(f"filter{number}", (stage.out_blocks, stage.in_blocks, *stage.kernel, 8, CHANNEL_BLOCK, 4))
            for number, stage in enumerate(stages, 1)
        ),
        biases=tuple(
            argument(f"bias{number}", (stage.out_channels,)) if stage.has_bias else None
            for number, stage in enumerate(stages, 1)
        ),
        output=argument("output", tensor_extents(chain)[-1].packed_shape),
    )


def _prepare(
    block: Block, bands: Bands, stages: tuple[Stage, ...], arguments: Arguments, registers: Registers
) -> Kernel:
    """Allocate and fill what all bands share."""
    filters, biases = [], []
    for number, stage in enumerate(stages, 1):
        packed = block.view(arguments.filters[number - 1], _elements(arguments.filters[number - 1]), "float32")
        cache = _allocate(block, f"filter{number}_cache", cache_elements(stage))
        vectors = math.ceil(stage.out_channels / registers.lanes)
        shape = tile_shape(registers, stage.out_size[1], vectors, stage.taps * stage.in_channels)
        filters.append(Filter(stage, registers, shape, packed, cache))
        biases.append(_stage_bias(block, stage, arguments.biases[number - 1], number))

    _stage_filters(block, filters, bands.count)
    image = block.view(arguments.image, _elements(arguments.image), "float32")
    output = block.view(arguments.output, _elements(arguments.output), "float32")
    return Kernel(bands, image, output, tuple(filters), tuple(biases))


def _stage_filters(block: Block, filters: Sequence[Filter], threads: int) -> None:
    """All filters, by all threads where they are so large that it pays to wake these."""
    size_bytes = sum(cache_elements(filter.stage) for filter in filters) * ELEMENT_BYTES
    shares = threads if size_bytes > ALONE_BYTES else 1

    def share(at: Block, index: tirx.Expr) -> None:
        for filter in filters:
            stage_filter(at, filter, index, shares)

    kind = tirx.ForKind.PARALLEL if shares > 1 else tirx.ForKind.SERIAL
    block.loop("share", shares, share, part="filter cache read, all convs", kind=kind)


def _stage_bias(block: Block, stage: Stage, bias: tirx.Buffer | None, number: int) -> tirx.Buffer | None:
    """The bias with as many channels as whole blocks have."""
    if bias is None:
        return None
    cache = _allocate(block, f"bias{number}_cache", stage.out_blocks * CHANNEL_BLOCK)
    rest = stage.out_blocks * CHANNEL_BLOCK - stage.out_channels
    block.loop("channel", stage.out_channels, lambda at, k: at.store(cache, k, tirx.BufferLoad(bias, [k])))
    block.loop("channel", rest, lambda at, k: at.store(cache, k + stage.out_channels, tirx.const(0, "float32")))
    return cache


def _band(block: Block, kernel: Kernel, image: Number, band: Number) -> None:
    """All stripes of one band."""
    caches = _caches(block, kernel)
    for cache in caches:
        if cache:
            clear(block, cache)
    progress, bands = Progress.start(block, kernel.bands, band), kernel.bands
    stripes = tirx.floordiv(progress.last - bands.first(band) + (bands.stripe_rows - 1), int32(bands.stripe_rows))
    block.loop(
        "stripe",
        stripes if bands.most_stripes > 1 else 1,
        lambda at, stripe: _stripe(at, kernel, caches, progress, image, stripe if bands.most_stripes > 1 else 0),
        part="stripe of the output",
    )


def _caches(block: Block, kernel: Kernel) -> tuple[Cache | None, ...]:
    """The cache that each conv reads; None where it reads the argument."""
    first, *readers = kernel.stages
    caches: list[Cache | None] = [None]
    if not first.reads_in_place:
        caches = [_cache(block, kernel, "input_cache", 0, Lines.of_input(first))]
    for tensor, reader in enumerate(readers, 1):
        caches.append(_cache(block, kernel, f"intermediate{tensor}", tensor, Lines.of_intermediate(reader)))
    return tuple(caches)


def _cache(block: Block, kernel: Kernel, name: str, tensor: int, lines: Lines) -> Cache:
    elements = kernel.bands.cache_rows(tensor) * lines.row
    buffer = _allocate(block, name, elements)
    has_bottom_padding = kernel.bands.has_bottom_padding(tensor)
    return Cache(buffer, lines, kernel.stages[tensor], elements, kernel.lanes, has_bottom_padding)


def _stripe(
    block: Block, kernel: Kernel, caches: tuple[Cache | None, ...], progress: Progress, image: Number, stripe: Number
) -> None:
    """All convs of one stripe."""
    rows = progress.advance(block)
    for tensor, cache in enumerate(caches):
        if cache:
            roll(block, rows[tensor], cache, stripe)
    if caches[0]:
        fill_input(block, rows[0], kernel.image, caches[0], image)
    for number, filter in enumerate(kernel.filters):
        source, target = caches[number], caches[number + 1] if number + 1 < len(caches) else None
        conv = Conv(
            name=f"conv2d #{number + 1}",
            source=source.buffer if source else kernel.image,
            lines=source.lines if source else Lines.of_input(filter.stage),
            # an image that is read in place begins at a row of its own in the argument
            source_base=rows[number].base if source else -image * filter.stage.in_size[0],
            filter=filter,
            bias=kernel.biases[number],
            target=target.buffer if target else kernel.output,
            address=(
                cache_address(target, rows[number + 1].base)
                if target
                else packed_address(filter.stage, image, kernel.lanes)
            ),
            is_output=target is None,
        )
        convolve(block, conv, rows[number + 1].begin, rows[number + 1].end)


def _allocate(block: Block, name: str, elements: int) -> tirx.Buffer:
    return block.allocate(tirx.decl_buffer((elements,), "float32", name, data_alignment=vector.ALIGNMENT_BYTES))


def _elements(buffer: tirx.Buffer) -> int:
    return math.prod(int(extent) for extent in buffer.shape)
