"""The kernel of a whole float32 chain for the host: bands of rows side by side, every conv rolling through its band.

    stage the filters and biases, zero the fringe of the output
    for image: the bands of its rows, in parallel (`hexconv.host.loops.band`)

A stripe of every intermediate stays in the cache of its core.
"""

import math
from collections.abc import Callable

from tvm import tirx

from hexconv.host.loops.arguments import Arguments
from hexconv.host.loops.band import Kernel, compute
from hexconv.host.loops.bands import Bands
from hexconv.host.loops.caches import allocate
from hexconv.host.loops.filters import Filter, cache_elements, stage_filter
from hexconv.host.loops.output import zero_fringe
from hexconv.host.loops.panels import Panels
from hexconv.host.loops.stage import Stage, stages_of
from hexconv.host.panels import rows_of_panel
from hexconv.host.registers import ELEMENT_BYTES, Registers, registers_of
from hexconv.host.tiles import Tiling, tiling
from hexconv.schedule.block import Block
from hexconv.spec import Chain, Plan
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
from hexconv.spec.names import filter_cache

Cut = Callable[[Registers, int, int, int], Tiling]
"""The rule that cuts an output into tiles, from the registers and the output's rows, columns and vectors."""

ALONE_BYTES = 64 * 1024
"""Filters up to this size are staged by one thread: this takes microseconds, no more than waking another thread."""


def chain_function(
    chain: Chain, plan: Plan, cut: Cut = tiling, panels: Panels = rows_of_panel, staged: bool = False
) -> tirx.PrimFunc:
    """`main(input, filter1, ..., bias1, ..., output)`, arguments as `hexconv.compute.chain_module` has them.

    Args:
        chain: a chain of float32.
        plan: `h_split` blocks of 8 rows are a stripe, `threads` bands of stripes run side by side, `simd` says for
            which registers.
        cut: how the outputs are cut into tiles.
        panels: how many rows all groups of channels go over before the next rows.
        staged: whether stripes of the input and of the output pass through caches, and bands compute all rows that they
            read, as in the planned nest. No plan asks for that: `hexconv.bench.in_nest` measures what it costs.
    """
    stages = stages_of(chain)
    arguments = Arguments.of(chain, stages)
    bands_of = Bands.even if staged else Bands.of
    bands = bands_of(chain, stages, plan.h_split * ROW_BLOCK, min(plan.threads, stages[-1].out_size[0]))
    body = Block()
    kernel = _prepare(body, bands, stages, arguments, registers_of(plan.simd), cut, panels, staged)
    _fill(body, kernel, chain.input[0])
    compute(body, kernel, chain.input[0])
    return tirx.PrimFunc(arguments.all, body.statement()).with_attrs({"global_symbol": "main", "tirx.noalias": True})


def _prepare(
    block: Block,
    bands: Bands,
    stages: tuple[Stage, ...],
    arguments: Arguments,
    registers: Registers,
    cut: Cut,
    panels: Panels,
    staged: bool,
) -> Kernel:
    """Allocate the buffers that all bands share, and fill the biases and slopes."""
    filters, biases, slopes = [], [], []
    for number, stage in enumerate(stages, 1):
        packed = block.view(arguments.filters[number - 1], _elements(arguments.filters[number - 1]), "float32")
        cache = allocate(block, filter_cache(number), cache_elements(stage))
        vectors = math.ceil(stage.conv.out_channels / registers.lanes)
        filters.append(Filter(stage, registers, cut(registers, *stage.out_size, vectors), packed, cache))
        biases.append(_stage_vector(block, stage, arguments.biases[number - 1], f"bias{number}_cache"))
        slopes.append(_stage_vector(block, stage, arguments.slopes[number - 1], f"slope{number}_cache"))

    image = block.view(arguments.image, _elements(arguments.image), "float32")
    output = block.view(arguments.output, _elements(arguments.output), "float32")
    return Kernel(bands, image, output, tuple(filters), tuple(biases), tuple(slopes), panels, staged)


def _fill(block: Block, kernel: Kernel, images: int) -> None:
    """Stage the filters, and zero the fringe of all images.

    All threads do it if the filters are so large that waking them pays.
    """
    size_bytes = sum(cache_elements(stage) for stage in kernel.stages) * ELEMENT_BYTES
    shares = kernel.bands.count if size_bytes > ALONE_BYTES else 1

    def share(at: Block, index: tirx.Expr) -> None:
        for filter in kernel.filters:
            stage_filter(at, filter, index, shares)
        at.loop("image", images, lambda inner, image: fringe(inner, image, index))

    def fringe(at: Block, image: tirx.Expr, index: tirx.Expr) -> None:
        zero_fringe(at, kernel.stages[-1], kernel.output, image, kernel.lanes, index, shares)

    kind = tirx.ForKind.PARALLEL if shares > 1 else tirx.ForKind.SERIAL
    block.loop("share", shares, share, part="filter cache read, all convs", kind=kind)


def _stage_vector(block: Block, stage: Stage, given: tirx.Buffer | None, name: str) -> tirx.Buffer | None:
    """Stage a bias or slopes, extended to whole blocks of channels."""
    if given is None:
        return None
    cache = allocate(block, name, stage.out_blocks * CHANNEL_BLOCK)
    rest = stage.out_blocks * CHANNEL_BLOCK - stage.conv.out_channels
    block.loop("channel", stage.conv.out_channels, lambda at, k: at.store(cache, k, tirx.BufferLoad(given, [k])))
    block.loop("channel", rest, lambda at, k: at.store(cache, k + stage.conv.out_channels, tirx.const(0, "float32")))
    return cache


def _elements(buffer: tirx.Buffer) -> int:
    return math.prod(int(extent) for extent in buffer.shape)
