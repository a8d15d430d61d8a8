"""Caches of a nest of rows from shapes and plan alone: sizes, the scratch of kernels, and who shares memory."""

from collections.abc import Iterator
from dataclasses import replace

from hexconv.analyze.caches import PredictedCache
from hexconv.analyze.liveness import PredictedAllocation
from hexconv.analyze.row_nest import PlannedRows
from hexconv.kernel.forms import has_bytes_apart
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK
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


def rows_footprints(planned: PlannedRows) -> tuple[PredictedCache, ...]:
    """Predict every cache of a nest of rows, then the scratch of its kernels.

    >>> from hexconv.analyze.row_nest import planned_rows
    >>> from hexconv.spec import Chain, Conv2d, Plan, Requantize
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
    >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
    >>> plan = Plan(kernel="hvx", order="h_outer", halo="roll", buffering="double")
    >>> [(cache.name, cache.bytes) for cache in rows_footprints(planned_rows(chain, plan))][:3]
    [('input_cache', 147456), ('filter1_cache', 73728), ('intermediate1', 81920)]
    """
    convs = range(len(planned.chain.conv))
    caches = [*_caches_of_input(planned), *(cache for index in convs for cache in _caches_of_conv(planned, index))]
    scratch = (cache for index in convs for cache in _scratch(planned, index))
    return tuple(_of_bands(planned, cache) for cache in (*caches, *scratch))


def rows_allocations(planned: PlannedRows) -> Iterator[PredictedAllocation]:
    """Yield every memory of a nest of rows, in the order of the first cache in each: caches that take turns share one.

    >>> from hexconv.analyze.row_nest import planned_rows
    >>> from hexconv.spec import Chain, Conv2d, Plan, Requantize
    >>> conv = Conv2d(out_channels=128, requantize=Requantize(multiplier=1 << 20))
    >>> chain = Chain(input=(1, 8, 8, 128), dtype="uint8", conv=(conv, conv, conv))
    >>> [(memory.holds, memory.bytes) for memory in rows_allocations(planned_rows(chain, Plan(kernel="hvx")))][:2]
    [(('input_cache', 'intermediate2'), 8192), (('filter1_cache', 'filter2_cache', 'filter3_cache'), 4096)]
    """
    shared: dict[tuple[object, ...], list[PredictedCache]] = {}
    for cache in rows_footprints(planned):
        key = (planned.turns.get(cache.name, cache.name), cache.dtype, cache.is_in_vtcm(planned.plan))
        shared.setdefault(key, []).append(cache)
    for first, *others in shared.values():
        names, most = (first.name, *(cache.name for cache in others)), max(cache.bytes for cache in (first, *others))
        yield PredictedAllocation(names, first.dtype, most, first.is_in_vtcm(planned.plan), first.copies)


def footprints_of_input(planned: PlannedRows) -> tuple[PredictedCache, ...]:
    """Predict the caches of the input."""
    return tuple(_of_bands(planned, cache) for cache in _caches_of_input(planned))


def footprint_of_filter(planned: PlannedRows, index: int) -> PredictedCache:
    """Predict the cache of the filter of conv `index`."""
    return _of_bands(planned, next(_caches_of_conv(planned, index)))


def footprints_of_conv(planned: PlannedRows, index: int) -> tuple[PredictedCache, ...]:
    """Predict the caches of the filter of conv `index` and of what it makes, then the scratch of its kernel."""
    caches = (*_caches_of_conv(planned, index), *_scratch(planned, index))
    return tuple(_of_bands(planned, cache) for cache in caches)


def _of_bands(planned: PlannedRows, cache: PredictedCache) -> PredictedCache:
    """Return a cache for all threads: each has one of its own, except of filters that are staged once for all."""
    is_shared = cache.role in ("filter", "words") and planned.plan.filters == "resident"
    count = planned.bands.count
    return cache if is_shared or count == 1 else replace(cache, shape=(count, *cache.shape), copies=count)


def _caches_of_input(planned: PlannedRows) -> Iterator[PredictedCache]:
    """Yield the caches of the input."""
    dtype, layout = planned.chain.dtype, planned.forms.activations[0]
    image = (1, planned.cache_rows[0], *layout.physical_shape[2:])
    yield _slots(planned, PredictedCache(INPUT_CACHE, "input", 0, dtype, image))
    yield from _kept(planned, 0, dtype)


def _caches_of_conv(planned: PlannedRows, index: int) -> Iterator[PredictedCache]:
    """Yield the cache of a filter, then those of what its conv makes."""
    chain, forms, number = planned.chain, planned.forms, index + 1
    filter, packing = forms.filters[index], forms.packings[index]
    blocks, groups = planned.extents[number].channel_blocks, filter.physical_shape[0]
    side_by_side = blocks // groups
    some = groups if planned.plan.filters == "resident" else min(planned.plan.k_split, blocks) // side_by_side
    shape = (some, *filter.physical_shape[1:])
    cache = _slots(planned, PredictedCache(filter_cache(number), "filter", number, packing.dtype, shape))
    yield replace(cache, name=words_cache(number), role="words") if packing.is_words else cache
    if number == len(chain.conv):
        output = PredictedCache(OUTPUT_CACHE, "output", number, chain.output_dtype(index), _output_cache(planned))
        yield _slots(planned, output)
        return
    layout = forms.activations[number]
    dtype = "uint8" if has_bytes_apart(layout) else chain.dtype
    shape = (1, planned.cache_rows[number], *layout.physical_shape[2:])
    yield PredictedCache(intermediate(number), "intermediate", number, dtype, shape)
    yield from _kept(planned, number, dtype)


def _kept(planned: PlannedRows, tensor: int, dtype: str) -> Iterator[PredictedCache]:
    """Yield the cache of the columns that strips keep of a tensor: all of its rows, each channel that is stored."""
    strips = planned.strips
    if strips and (kept := strips.tensors[tensor].kept):
        layout = planned.forms.activations[tensor]
        _, _, *of_row = layout.physical_shape
        has_blocks = len(of_row) > len("WC")
        blocks = of_row[: has_blocks + has_bytes_apart(layout)]
        shape = (1, planned.extents[tensor].rows, *blocks, kept, of_row[-1])
        yield PredictedCache(kept_cache(tensor), "kept", tensor, dtype, shape)


def _output_cache(planned: PlannedRows) -> tuple[int, ...]:
    """Return the shape of a stripe of one step's channels: blocks of 8 rows, or rows with blocks of channels first."""
    layout, rows = planned.forms.activations[-1], planned.cache_rows[-1]
    blocks = min(planned.plan.k_split, planned.extents[-1].channel_blocks)
    if planned.forms.has_output_rows:
        return (1, rows, blocks * CHANNEL_BLOCK // planned.forms.channel_units[-1], *layout.physical_shape[3:])
    _, _, columns, _, *block = layout.physical_shape
    return (1, rows // ROW_BLOCK, columns, blocks, *block)


def _slots(planned: PlannedRows, cache: PredictedCache) -> PredictedCache:
    """Return a cache with twice as many elements if it has two slots."""
    return replace(cache, shape=(2, *cache.shape)) if cache.name in planned.doubled else cache


def _scratch(planned: PlannedRows, index: int) -> Iterator[PredictedCache]:
    """Yield the scratch of the kernel of conv `index`: what each channel has of its own, then that of its form."""
    conv = planned.convs[index]
    if conv.kernel == "hvx" and planned.plan.is_in_vtcm("filters") and not planned.forms.packings[index].is_words:
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
