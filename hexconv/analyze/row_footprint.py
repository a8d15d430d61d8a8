"""Caches of a nest of rows from shapes and plan alone: what each row or filter of a thread takes, and scratch.

A cache is given with one slot, for one thread, and as one row high, or one block of rows, where it holds rows
(`hexconv.analyze.row_grid` says how many of each there are).
"""

from collections.abc import Iterator
from dataclasses import replace

from hexconv.analyze.caches import PredictedCache
from hexconv.analyze.row_nest import PlannedRows
from hexconv.kernel.layouts import has_bytes_apart
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.names import (
    INPUT_CACHE,
    OUTPUT_CACHE,
    constant_cache,
    filter_cache,
    intermediate,
    kept_cache,
    numbered,
    words_cache,
)
from hexconv.spec.narrowing import FixedPoint, narrowing_of
from hexconv.spec.vectors import OFFSET, SCALES


def caches_of(planned: PlannedRows, tensor: int, is_resident: bool) -> Iterator[PredictedCache]:
    """Yield the caches of the input, or those of a filter and of what its conv makes.

    Args:
        planned: the nest.
        tensor: the number of the tensor; the input is 0.
        is_resident: whether the whole filter is staged at once.
    """
    chain, layouts, layout = planned.chain, planned.layouts, planned.layouts.activations[tensor]
    if not tensor:
        yield PredictedCache(INPUT_CACHE, "input", 0, chain.dtype, (1, 1, *layout.physical_shape[2:]))
        yield from _kept(planned, 0, chain.dtype)
        return
    filter, packing = layouts.filters[tensor - 1], layouts.packings[tensor - 1]
    blocks, groups = planned.extents[tensor].channel_blocks, filter.physical_shape[0]
    some = groups if is_resident else min(planned.plan.k_split, blocks) // (blocks // groups)
    cache = PredictedCache(filter_cache(tensor), "filter", tensor, packing.dtype, (some, *filter.physical_shape[1:]))
    yield replace(cache, name=words_cache(tensor), role="words") if packing.is_words else cache
    if tensor == len(chain.conv):
        yield PredictedCache(OUTPUT_CACHE, "output", tensor, chain.output_dtype(tensor - 1), _output_cache(planned))
        return
    dtype = "uint8" if has_bytes_apart(layout) else chain.dtype
    yield PredictedCache(intermediate(tensor), "intermediate", tensor, dtype, (1, 1, *layout.physical_shape[2:]))
    yield from _kept(planned, tensor, dtype)


def _kept(planned: PlannedRows, tensor: int, dtype: str) -> Iterator[PredictedCache]:
    """Yield the cache of the columns that strips keep of a tensor: each channel that is stored."""
    strips = planned.strips
    if strips and (kept := strips.tensors[tensor].kept):
        layout = planned.layouts.activations[tensor]
        _, _, *of_row = layout.physical_shape
        has_blocks = len(of_row) > len("WC")
        blocks = of_row[: has_blocks + has_bytes_apart(layout)]
        shape = (1, 1, *blocks, kept, of_row[-1])
        yield PredictedCache(kept_cache(tensor), "kept", tensor, dtype, shape)


def _output_cache(planned: PlannedRows) -> tuple[int, ...]:
    """Return the shape of one step's channels: of a block of 8 rows, or of a row with blocks of channels first."""
    layout = planned.layouts.activations[-1]
    blocks = min(planned.plan.k_split, planned.extents[-1].channel_blocks)
    if planned.layouts.has_output_rows:
        return (1, 1, blocks * CHANNEL_BLOCK // planned.layouts.channel_units[-1], *layout.physical_shape[3:])
    _, _, columns, _, *block = layout.physical_shape
    return (1, 1, columns, blocks, *block)


def scratch_of(planned: PlannedRows, index: int) -> Iterator[PredictedCache]:
    """Yield the scratch of the kernel of conv `index`: what each channel has of its own, then that of its form."""
    conv = planned.convs[index]
    if conv.kernel == "hvx" and not planned.layouts.packings[index].is_words:
        yield from _constants(planned, index)
    for what, role, dtype, elements in conv.form.scratch():
        yield PredictedCache(numbered(what, conv.number), role, conv.number, dtype, (elements,))


def _constants(planned: PlannedRows, index: int) -> Iterator[PredictedCache]:
    """Yield the caches of what each channel has of its own; where filters lie outside of VTCM, arguments serve."""
    how, number = planned.chain.conv[index].requantize, index + 1
    channels = planned.extents[number].channel_blocks * CHANNEL_BLOCK
    sequence, _offset = narrowing_of(how, planned.chain.dtype) if how else (None, 0)
    words = len(sequence.vectors) if isinstance(sequence, FixedPoint) else 0
    for what, role, there in ((OFFSET, "offset", planned.convs[index].has_offsets), (SCALES, "scale", words)):
        if there:
            name = constant_cache(numbered(what, number))
            elements = (channels * int(there),)
            yield PredictedCache(name, role, number, "int32", elements, is_vtcm_only=True)
