"""The kernel of a whole chain: stripes of the output, every conv rolling on through its rows.

    stage the filters
    for stripe: for conv: move the rows that the stripe before left; compute the new ones

No row is computed twice: between stripes a cache keeps its last rows, moved to its top.
"""

from collections.abc import Sequence
from tvm import tirx

from hexconv.schedule.hvx import vector
from hexconv.schedule.hvx.block import Block, int32
from hexconv.schedule.hvx.convolve import Address, Conv, convolve
from hexconv.schedule.hvx.caches import Cache, clear, fill_input, fills_by_vectors, roll, zero_fringe
from hexconv.schedule.hvx.filters import cache_bytes, stage_filter
from hexconv.schedule.hvx.rows import Rows
from hexconv.schedule.hvx.stage import CHANNELS, Group, Plane, Stage, intermediate_groups, intermediate_planes, output_groups
from hexconv.schedule.hvx.windows import Windows, allocate, served, slack_bytes


def chain_function(stages: Sequence[Stage], stripe_rows: int) -> tirx.PrimFunc:
    """`main(input, filter1, ..., output)`: logical NHWC uint8, packed filters, packed NHWC8h8w32c uint8."""
    rows = Rows(tuple(stages), stripe_rows)
    first = stages[0]
    source = tirx.decl_buffer((1, *first.in_size, first.in_channels), "uint8", "input", data_alignment=vector.BYTES)
    packed = [_packed_filter(number, stage) for number, stage in enumerate(stages, 1)]
    height, width, blocks = (*(-(-size // 8) for size in stages[-1].out_size), stages[-1].out_blocks)
    output = tirx.decl_buffer((1, height, width, blocks, 8, 8, CHANNELS), "uint8", "output", data_alignment=vector.BYTES)
    body = Block()
    _body(body, rows, source, packed, output)
    return tirx.PrimFunc([source, *packed, output], body.statement()).with_attr("global_symbol", "main")


def _packed_filter(number: int, stage: Stage) -> tirx.Buffer:
    shape = (stage.out_blocks, -(-stage.in_channels // CHANNELS), *stage.kernel, 8, CHANNELS, 4)
    return tirx.decl_buffer(shape, "int8" if stage.signed_filter else "uint8", f"filter{number}", data_alignment=vector.BYTES)


def _body(block: Block, rows: Rows, source: tirx.Buffer, packed: Sequence[tirx.Buffer], output: tirx.Buffer) -> None:
    stages = rows.stages
    input_cache = _input_cache(block, rows)
    intermediates = [_intermediate(block, rows, tensor) for tensor in range(1, len(stages))]
    caches: list[Cache | None] = [input_cache, *intermediates]
    flat_input = block.view(source, _elements(source), "uint8")
    flat_output = block.view(output, _elements(output), "uint8")
    planes = [cache.planes if cache else (_whole(stages[0]),) for cache in caches]
    groups = [intermediate_groups(stage.out_blocks) for stage in stages[:-1]] + [output_groups(stages[-1].out_blocks)]
    filters: list[tirx.Buffer] = []
    for number, stage in enumerate(stages):
        size = cache_bytes(stage, planes[number])
        filters.append(block.allocate(tirx.decl_buffer((size,), "uint8", f"filter{number + 1}_cache", data_alignment=vector.BYTES)))
        flat = block.view(packed[number], _elements(packed[number]), "uint8")
        stage_filter(block, stage, planes[number], groups[number], flat, filters[number])
    for cache, reader in zip(caches, stages, strict=True):
        if cache and (any(reader.padding) or cache is input_cache):
            clear(block, cache, by_vectors=cache is not input_cache or fills_by_vectors(stages[0]))
    zero_fringe(block, stages[-1], flat_output, _packed_address(stages[-1]))

    windows = [_windows(block, rows, number, planes[number], caches[number] is not None) for number in range(len(stages))]

    def stripe(inner: Block, number: tirx.Expr) -> None:
        if input_cache:
            roll(inner, rows, 0, input_cache, number)
            fill_input(inner, rows, flat_input, input_cache, number)
        for tensor, stage in enumerate(stages):
            cache, following = caches[tensor], caches[tensor + 1] if tensor + 1 < len(caches) else None
            base = inner.bind("base", rows.base(tensor, number)) if cache else int32(0)
            if following:
                roll(inner, rows, tensor + 1, following, number)
                address = _cache_address(following, stages[tensor + 1], inner.bind("top", rows.base(tensor + 1, number)))
            else:
                address = _packed_address(stage)
            begin = inner.bind("begin", rows.begin(tensor + 1, number))
            end = inner.bind("end", rows.end(tensor + 1, number))
            conv = Conv(
                stage,
                source=cache.buffer if cache else flat_input,
                planes=planes[tensor],
                source_base=base,
                filters=filters[tensor],
                groups=groups[tensor],
                target=following.buffer if following else flat_output,
                address=address,
                slack=cache is not None,
                windows=windows[tensor],
            )
            convolve(inner, conv, begin, end)

    block.loop("stripe", rows.stripes, stripe)


def _windows(block: Block, rows: Rows, number: int, planes: Sequence[Plane], slack: bool) -> Windows | None:
    """Scratch for the zero point of a conv with signed filters, where sums ahead of the tiles are possible."""
    stage = rows.stages[number]
    if not stage.signed_filter or not served(stage, planes, slack):
        return None
    most = max(rows.end(number + 1, stripe) - rows.begin(number + 1, stripe) for stripe in range(rows.stripes))
    return allocate(block, stage, most, f"window{number + 1}")


def _whole(stage: Stage) -> Plane:
    """The input, read in place."""
    return Plane(0, stage.in_channels, stage.in_channels, stage.in_size[1] * stage.in_channels)


def reads_in_place(stage: Stage) -> bool:
    """Whether the first conv reads the argument itself: no padding to add, pixels of whole words."""
    return not any(stage.padding) and stage.in_channels % 4 == 0


def _input_cache(block: Block, rows: Rows) -> Cache | None:
    stage = rows.stages[0]
    if reads_in_place(stage):
        return None
    channels = stage.in_channels
    pixel_bytes = -(-channels // 4) * 4 if channels <= 4 else -(-channels // 8) * 8
    columns = stage.in_size[1] + stage.padding[1] + stage.padding[3]
    row_bytes = -(-columns * pixel_bytes // vector.BYTES) * vector.BYTES
    plane = Plane(0, pixel_bytes, pixel_bytes, row_bytes)
    return _cache(block, "input_cache", (plane,), rows.cache_rows(0), rows.cache_rows(0) * row_bytes, stage.signed_filter)


def _intermediate(block: Block, rows: Rows, tensor: int) -> Cache:
    """The cache of what conv `tensor` makes, as wide as four-pixel stores and the reader's padding need."""
    reader = rows.stages[tensor]
    left, right = reader.padding[1], reader.padding[3]
    columns = left + max(reader.in_size[1] + right, -(-reader.in_size[1] // 4) * 4)
    planes, size = intermediate_planes(rows.stages[tensor - 1].out_blocks, columns, rows.cache_rows(tensor))
    return _cache(block, f"intermediate{tensor}", planes, rows.cache_rows(tensor), size, reader.signed_filter)


def _cache(block: Block, name: str, planes: tuple[Plane, ...], rows: int, size: int, signed: bool) -> Cache:
    size += slack_bytes(planes) if signed else 0
    return Cache(block.allocate(tirx.decl_buffer((size,), "uint8", name, data_alignment=vector.BYTES)), planes, rows, size)


def _cache_address(cache: Cache, reader: Stage, base: "int | tirx.Expr") -> Address:
    """Bytes of the pixels of an intermediate."""

    def address(row: tirx.Expr, column: tirx.Expr, group: Group, number: tirx.Expr, part: int) -> tirx.Expr:
        wide = sum(plane.channels > CHANNELS for plane in cache.planes)
        plane = cache.planes[0 if group.wide else wide + part]
        first = number * (cache.rows * plane.row_bytes) + plane.first_byte if group.wide else plane.first_byte
        return (row - base) * plane.row_bytes + (column + reader.padding[1]) * plane.pixel_bytes + first

    return address


def _packed_address(stage: Stage) -> Address:
    """Bytes of the output: NHWC8h8w32c."""
    blocks, across = stage.out_blocks, -(-stage.out_size[1] // 8)

    def address(row: tirx.Expr, column: tirx.Expr, group: Group, number: tirx.Expr, part: int) -> tirx.Expr:
        block = number * group.blocks + (group.first_block + part)
        high, low = tirx.shift_right(row, int32(3)), tirx.bitwise_and(row, int32(7))
        right, inside = tirx.shift_right(column, int32(3)), tirx.bitwise_and(column, int32(7))
        return (((high * across + right) * blocks + block) * 64 + low * 8 + inside) * CHANNELS

    return address


def _elements(buffer: tirx.Buffer) -> int:
    count = 1
    for extent in buffer.shape:
        count *= int(extent)
    return count
