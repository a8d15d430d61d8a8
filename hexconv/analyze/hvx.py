"""How large every cache of the HVX kernels is, from the shapes and the plan alone: the closed form.

Rows are those of `hexconv.analyze.rolling`, of the whole output.

Intermediates. 128 channels of a pixel lie together, as many times as there are; of what is left, 32. Each such plane
has rows of whole vectors (128 bytes), as wide as the padded input of its reader, or as stores of four pixels reach.

Input cache. Only where the first conv can't read the argument in place: with padding, with channels that are no whole
words, int8 or int16. Pixels are widened to a word, or to doublewords above one.

int16. Input cache, intermediates and filters have every plane twice: high bytes, then low bytes.

Filters. All of them, one vector for 32 output and 4 input channels of a tap: as many words of 4 as the source's pixels
have. Offsets: an int32 per output channel, where there is a bias or the input has a zero point.

Zero point of the filter. An int32 per column of the source, and per pixel of the output rows of a stripe, in groups of
32; caches of such a conv have room for 32 pixels more, which is what is read at a time.
"""

from dataclasses import dataclass
from math import ceil, prod

from hexconv.analyze.footprint import PredictedCache
from hexconv.analyze.rolling import rolled_rows
from hexconv.spec import Chain, Conv2d, Plan
from hexconv.spec.bands import Band
from hexconv.spec.extents import CHANNEL_BLOCK, ROW_BLOCK

VECTOR_BYTES = 128
LANES = 32
MADE_UNSIGNED = {"int8": 128, "int16": 2**15}
"""What is added to the elements of a dtype."""


@dataclass(frozen=True)
class Source:
    """What a conv reads: bytes of a pixel in each of its planes, and the cache, if there is one."""

    pixels_bytes: tuple[int, ...]
    cache: PredictedCache | None


def hvx_footprints(chain: Chain, plan: Plan) -> tuple[PredictedCache, ...]:
    """Every cache of an integer chain with `kernel = "hvx"`, in the order in which they are allocated.

    >>> from hexconv.spec import Requantize
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3), requantize=Requantize(multiplier=1 << 20))
    >>> chain = Chain(input=(1, 64, 64, 128), dtype="uint8", conv=(conv, conv))
    >>> [(cache.name, cache.bytes) for cache in hvx_footprints(chain, Plan())]
    [('intermediate1', 81920), ('filter1_cache', 147456), ('filter2_cache', 147456)]
    """
    rows, new_rows = rolled_rows(chain, plan.h_split * ROW_BLOCK, Band(0, chain.shapes[-1][1]))
    sources = [source_of(chain, index, rows[index]) for index in range(len(chain.conv))]
    caches = [source.cache for source in sources if source.cache]
    for index, source in enumerate(sources):
        caches += _filter_caches(chain, index, source)
    for index, source in enumerate(sources):
        caches += _window_caches(chain, index, source, new_rows[index + 1])
    return tuple(caches)


def source_of(chain: Chain, index: int, rows: int) -> Source:
    """What conv `index` reads."""
    if index == 0:
        return _input(chain, rows)
    conv, (_, _, width, channels) = chain.conv[index], chain.shapes[index]
    columns = max(padded_columns(chain, index), conv.padding.left + ceil(width / 4) * 4)
    wide, narrow = divmod(ceil(channels / CHANNEL_BLOCK), VECTOR_BYTES // CHANNEL_BLOCK)
    pixels = (VECTOR_BYTES,) * wide + (CHANNEL_BLOCK,) * narrow
    plane_bytes = sum(rows * _vectors(columns * pixel) for pixel in pixels)
    size = plane_bytes * byte_planes(chain.dtype) + _slack(chain, index, max(pixels))
    return Source(pixels, PredictedCache(f"intermediate{index}", "intermediate", "uint8", (size,)))


def _input(chain: Chain, rows: int) -> Source:
    """The argument itself, or its cache."""
    conv, channels = chain.conv[0], chain.input[3]
    pad = conv.padding
    if chain.dtype == "uint8" and channels % 4 == 0 and not any((pad.top, pad.left, pad.bottom, pad.right)):
        return Source((channels,), None)
    pixel = 4 if channels <= 4 else ceil(channels / 8) * 8
    size = rows * _vectors(padded_columns(chain, 0) * pixel) * byte_planes(chain.dtype) + _vectors(
        _slack(chain, 0, pixel)
    )
    return Source((pixel,), PredictedCache("input_cache", "input", "uint8", (size,)))


def byte_planes(dtype: str) -> int:
    """Bytes of an element, each in a plane of its own."""
    return 2 if dtype == "int16" else 1


def padded_columns(chain: Chain, index: int) -> int:
    """Columns of the input of conv `index` with its padding."""
    pad = chain.conv[index].padding
    return pad.left + chain.shapes[index][2] + pad.right


def _vectors(size_bytes: int) -> int:
    """Bytes rounded up to whole vectors."""
    return ceil(size_bytes / VECTOR_BYTES) * VECTOR_BYTES


def filter_zero(chain: Chain, conv: Conv2d) -> int:
    """The filter's zero point, as unsigned."""
    return conv.filter_zero_point + MADE_UNSIGNED.get(chain.dtype_of_filters, 0)


def input_zero(chain: Chain, index: int) -> int:
    """The zero point of what conv `index` reads, as unsigned."""
    return chain.output_zero_point(index) + MADE_UNSIGNED.get(chain.dtype, 0)


def _slack(chain: Chain, index: int, pixel_bytes: int) -> int:
    """Room to read 32 pixels anywhere."""
    return LANES * pixel_bytes if filter_zero(chain, chain.conv[index]) else 0


def _filter_caches(chain: Chain, index: int, source: Source) -> list[PredictedCache]:
    """The filter, and what is added to the sums of a channel."""
    conv = chain.conv[index]
    blocks, words = ceil(conv.out_channels / CHANNEL_BLOCK), sum(ceil(pixel / 4) for pixel in source.pixels_bytes)
    size = blocks * prod(conv.kernel) * words * VECTOR_BYTES * byte_planes(chain.dtype_of_filters)
    caches = [PredictedCache(f"filter{index + 1}_cache", "filter", "uint8", (size,))]
    if conv.bias or input_zero(chain, index):
        caches.append(PredictedCache(f"offset{index + 1}", "offset", "int32", (blocks * CHANNEL_BLOCK,)))
    return caches


def sums_windows_ahead(chain: Chain, index: int, source: Source) -> bool:
    """Whether what the filter's zero point asks for is summed before the tiles, 32 pixels at a time."""
    fits = all(pixel % VECTOR_BYTES == 0 or VECTOR_BYTES % pixel == 0 for pixel in source.pixels_bytes)
    readable = source.cache is not None or chain.shapes[index][2] >= LANES
    return filter_zero(chain, chain.conv[index]) != 0 and fits and readable


def _window_caches(chain: Chain, index: int, source: Source, new_rows: int) -> list[PredictedCache]:
    """Sums of the source by column and by window, where the filter has a zero point and 32 pixels fit whole vectors."""
    if not sums_windows_ahead(chain, index, source):
        return []
    across = padded_columns(chain, index) + LANES + chain.conv[index].reach[1] - 1
    corrections = max(new_rows, 1) * ceil(chain.shapes[index + 1][2] / LANES) * LANES
    return [
        PredictedCache(f"columns{index + 1}", "window", "int32", (ceil(across / LANES) * LANES,)),
        PredictedCache(f"corrections{index + 1}", "window", "int32", (corrections,)),
    ]
