"""The kernel of a whole chain: stripes of the output, every conv rolling on through its rows.

    stage the filters, and what their zero points need
    for image: for stripe: for conv: move the rows that the stripe before left; compute the new ones

No row is computed twice: between stripes a cache keeps its last rows, moved to its top.
"""

import math
from dataclasses import dataclass

from tvm import tirx

from hexconv.schedule.arguments import Arguments
from hexconv.schedule.block import Block, Number, int32
from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.arguments import arguments_of, elements
from hexconv.schedule.hvx.caches import Cache, clear, roll, zero_fringe
from hexconv.schedule.hvx.conv import Address, Conv
from hexconv.schedule.hvx.convolve import convolve
from hexconv.schedule.hvx.filters import Filter, cache_bytes, stage_filter
from hexconv.schedule.hvx.input import fill_input, fills_by_vectors, input_plane, reads_in_place, whole_input
from hexconv.schedule.hvx.offsets import stage_offsets
from hexconv.schedule.hvx.stage import (
    CHANNELS,
    Group,
    Plane,
    Stage,
    intermediate_groups,
    intermediate_planes,
    output_groups,
    stages_of,
)
from hexconv.schedule.hvx.windows import Windows, column_words, row_words, served, slack_bytes
from hexconv.schedule.rows import Rows
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import ROW_BLOCK


@dataclass(frozen=True)
class Kernel:
    """What is known before the first stripe."""

    rows: Rows
    scope: str
    image: tirx.Buffer
    output: tirx.Buffer
    caches: tuple[Cache | None, ...]
    filters: tuple[Filter, ...]
    offsets: tuple[tirx.Buffer | None, ...]
    windows: tuple[Windows | None, ...]


def chain_function(chain: Chain, plan: Plan) -> tirx.PrimFunc:
    """`main(input, filter1, ..., bias1, ..., output)`, arguments as `hexconv.compute.chain_module` has them.

    Args:
        chain: an integer chain.
        plan: `h_split` blocks of 8 rows are a stripe; all output channels of a stripe are computed at once.
    """
    stages = stages_of(chain)
    arguments = arguments_of(chain, stages)
    body = Block()
    kernel = _prepare(body, Rows(stages, plan.h_split * ROW_BLOCK), plan.scope, arguments)
    zero_at = _packed_address(stages[-1], int32(0))
    images = chain.input[0]

    def image(block: Block, number: tirx.Expr) -> None:
        zero_fringe(block, stages[-1], kernel.output, _packed_address(stages[-1], number) if images > 1 else zero_at)
        for cache in kernel.caches:
            if cache and (any(cache.reader.padding) or cache is kernel.caches[0]):
                by_vectors = cache is not kernel.caches[0] or fills_by_vectors(stages[0])
                clear(block, cache, by_vectors)
        block.loop(
            "stripe",
            kernel.rows.stripes,
            lambda at, stripe: _stripe(at, kernel, number, stripe),
            part="stripe of the output",
        )

    body.loop("image", images, image)
    return tirx.PrimFunc(arguments.all, body.statement()).with_attr("global_symbol", "main")


def _prepare(block: Block, rows: Rows, scope: str, arguments: Arguments) -> Kernel:
    """Allocate the caches, stage filters and offsets."""
    stages = rows.stages
    caches = _caches(block, rows, scope)
    planes = [cache.planes if cache else (whole_input(stages[0]),) for cache in caches]
    groups = [intermediate_groups(stage.out_blocks) for stage in stages[:-1]] + [output_groups(stages[-1].out_blocks)]
    filters, offsets = [], []
    for number, stage in enumerate(stages):
        argument = arguments.filters[number]
        packed = block.view(argument, elements(argument) * len(stage.filter_zero_bytes), "uint8")
        size = cache_bytes(stage, planes[number])
        cache = _allocate(block, f"filter{number + 1}_cache", size, "uint8", scope)
        filters.append(Filter(stage, planes[number], groups[number], packed, cache))
        stage_filter(block, filters[-1])
        offset = None
        if stage.has_offsets:
            offset = _allocate(block, f"offset{number + 1}", stage.out_blocks * CHANNELS, "int32", scope)
            stage_offsets(block, filters[-1], arguments.biases[number], offset)
        offsets.append(offset)
    return Kernel(
        rows=rows,
        scope=scope,
        image=block.view(arguments.image, elements(arguments.image) * stages[0].result_bytes, "uint8"),
        output=_flat_output(block, arguments.output, stages[-1]),
        caches=caches,
        filters=tuple(filters),
        offsets=tuple(offsets),
        windows=tuple(
            _windows(block, rows, scope, number, caches[number], planes[number]) for number in range(len(stages))
        ),
    )


def _flat_output(block: Block, output: tirx.Buffer, stage: Stage) -> tirx.Buffer:
    """Bytes, or the sums as they are."""
    count = elements(output)
    return (
        block.view(output, count * stage.result_bytes, "uint8")
        if stage.narrowing
        else block.view(output, count, "int32")
    )


def _stripe(block: Block, kernel: Kernel, image: tirx.Expr, stripe: Number) -> None:
    """All convs of one stripe."""
    rows, last = kernel.rows, len(kernel.filters)
    stripe = stripe if rows.stripes > 1 else 0
    if kernel.caches[0]:
        roll(block, rows, 0, kernel.caches[0], stripe)
        fill_input(block, rows, kernel.image, kernel.caches[0], image, stripe)
    for number, filter in enumerate(kernel.filters):
        source, target = kernel.caches[number], kernel.caches[number + 1] if number + 1 < last else None
        # an image that is read in place begins at a row of its own in the argument
        base = block.bind("base", rows.base(number, stripe) if source else -image * filter.stage.in_size[0])
        if target:
            roll(block, rows, number + 1, target, stripe)
            address = _cache_address(target, block.bind("top", rows.base(number + 1, stripe)))
        else:
            address = _packed_address(filter.stage, image)
        conv = Conv(
            name=f"conv2d #{number + 1}",
            stage=filter.stage,
            source=source.buffer if source else kernel.image,
            planes=filter.planes,
            low_bytes=source.low_bytes if source else 0,
            source_base=base,
            filters=filter.cache,
            filter_low_bytes=filter.low_bytes,
            groups=filter.groups,
            offsets=kernel.offsets[number],
            windows=kernel.windows[number],
            target=target.buffer if target else kernel.output,
            target_low_bytes=target.low_bytes if target else 0,
            address=address,
            is_output=target is None,
        )
        begin = block.bind("begin", rows.begin(number + 1, stripe))
        end = block.bind("end", rows.end(number + 1, stripe))
        convolve(block, conv, begin, end)


def _caches(block: Block, rows: Rows, scope: str) -> tuple[Cache | None, ...]:
    """The cache that each conv reads; None where it reads the argument."""
    stages = rows.stages
    caches: list[Cache | None] = [None]
    if not reads_in_place(stages[0]):
        plane = input_plane(stages[0])
        caches = [_cache(block, rows, scope, 0, (plane,), rows.cache_rows(0) * plane.row_bytes)]
    for tensor in range(1, len(stages)):
        reader = stages[tensor]
        # as wide as the reader's padding and stores of four pixels need
        columns = max(reader.padded_columns, reader.padding[1] + -(-reader.in_size[1] // 4) * 4)
        planes, size = intermediate_planes(reader.in_blocks, columns, rows.cache_rows(tensor))
        caches.append(_cache(block, rows, scope, tensor, planes, size))
    return tuple(caches)


def _cache(block: Block, rows: Rows, scope: str, tensor: int, planes: tuple[Plane, ...], size_bytes: int) -> Cache:
    reader = rows.stages[tensor]
    low_bytes = size_bytes if reader.splits else 0
    size_bytes += low_bytes
    size_bytes += slack_bytes(planes) if reader.filter_zero else 0
    size_bytes = math.ceil(size_bytes / vector.BYTES) * vector.BYTES
    name = f"intermediate{tensor}" if tensor else "input_cache"
    buffer = _allocate(block, name, size_bytes, "uint8", scope)
    return Cache(buffer, planes, rows.cache_rows(tensor), size_bytes, low_bytes, reader)


def _windows(
    block: Block, rows: Rows, scope: str, number: int, cache: Cache | None, planes: tuple[Plane, ...]
) -> Windows | None:
    """Scratch for the zero point of a filter, where sums ahead of the tiles are possible."""
    stage = rows.stages[number]
    slack = number > 0 or not reads_in_place(stage)
    if stage.filter_zero == 0 or not served(stage, planes, slack):
        return None
    new = [rows.end(number + 1, stripe) - rows.begin(number + 1, stripe) for stripe in range(rows.stripes)]
    most = max(1, *new)  # a conv of which only the padding is read computes no row, and memory of none can't be had
    columns = _allocate(block, f"columns{number + 1}", column_words(stage), "int32", scope)
    corrections = _allocate(block, f"corrections{number + 1}", most * row_words(stage), "int32", scope)
    return Windows(columns, corrections, row_words(stage), slack, cache.low_bytes if cache else 0)


def _allocate(block: Block, name: str, elements: int, dtype: str, scope: str) -> tirx.Buffer:
    return block.allocate(tirx.decl_buffer((elements,), dtype, name, scope=scope, data_alignment=vector.BYTES))


def _cache_address(cache: Cache, base: Number) -> Address:
    """Bytes of the pixels of an intermediate whose first row is `base`."""
    wide = sum(plane.channels > CHANNELS for plane in cache.planes)

    def address(row: Number, column: Number, group: Group, number: Number, part: int) -> Number:
        plane = cache.planes[0 if group.wide else wide + part]
        first = number * (cache.rows * plane.row_bytes) + plane.first_byte if group.wide else plane.first_byte
        column = column + cache.reader.padding[1]
        return (row - base) * plane.row_bytes + column * plane.pixel_bytes + first

    return address


def _packed_address(stage: Stage, image: Number) -> Address:
    """Elements of the output, NHWC8h8w32c."""
    blocks, down, across = stage.out_blocks, -(-stage.out_size[0] // 8), -(-stage.out_size[1] // 8)

    def address(row: Number, column: Number, group: Group, number: Number, part: int) -> Number:
        block = number * group.blocks + (group.first_block + part)
        high, low = tirx.shift_right(row, int32(3)), tirx.bitwise_and(row, int32(7))
        right, inside = tirx.shift_right(column, int32(3)), tirx.bitwise_and(column, int32(7))
        tile = ((image * down + high) * across + right) * blocks + block
        return (tile * 64 + low * 8 + inside) * CHANNELS

    return address
