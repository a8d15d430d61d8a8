"""Integer forms of operators on 8-bit codes as they lie in memory: headers, tables, multipliers of rows.

`hexconv_integers.h` says how each form lies. Codes of int8 count from 0 on: their first bit is turned.
"""

from dataclasses import replace

import numpy as np

from hexconv.network.program_steps import (
    Operand,
)
from hexconv.run.tensors import Array
from hexconv.spec.code_sums import CODES, LAST_SHIFT, Ends, Interval

VECTOR_BYTES = 128

HEADER_BYTES = 128
"""Of a form whose arrays begin at a vector."""

TABLE, REALS, QUANTISED, MOVED, SUM, CHANNELS, GATED, MEAN, VIEW, JOINED, PRODUCTS, MEANS, SOFTMAX, MEAN_OF_SUM = range(
    1, 15
)
"""The numbers of `enum hexconv_form`."""


MENDED_PAIRS, MENDED_LINES, MENDED_TIES = (0, 1, 2), (3, 4), 5
"""The numbers of `enum hexconv_mended`: for no pair, one, and more; for a code of the one operand, and of the other; of
sums half way between two codes."""
_PLACES_OF_WAYS = {SUM: 10, MOVED: 1, SOFTMAX: 8}
"""Of `way` in `struct hexconv_sum` and `turn` in `struct hexconv_moved`, in words."""


def way_of_sum(mended: int, is_bare: bool, is_less: bool) -> int:
    """Return HEXCONV_WAY_OF_SUM: the number of the loop that computes a sum."""
    return mended * 4 + is_bare * 2 + is_less


def kind_of_form(form: Array) -> int:
    """Return the number of `enum hexconv_form` of a form, bytes as they lie in memory."""
    return int(form[:4].view("<i4")[0])


def way_of_form(form: Array) -> int:
    """Return which code computes a form: of a sum (HEXCONV_WAY_OF_SUM), moved bytes (`turn`), a softmax (`fall`)."""
    place = _PLACES_OF_WAYS[kind_of_form(form)]
    return int(form[4 * place :][:4].view("<i4")[0])


def turned_bit(operand: Operand) -> int:
    """Return what turns codes to numbers from 0 on, or back: 0x80 for int8.

    >>> hex(turned_bit(Operand("x", (1, 1, 1, 1), "int8")))
    '0x80'
    """
    return 0x80 if operand.dtype == "int8" else 0


def all_codes(operand: Operand, flip: int = 0) -> Array:
    """All codes in the order of their numbers from 0 on, or turned further by `flip`."""
    return (np.arange(CODES, dtype=np.uint8) ^ np.uint8(turned_bit(operand) ^ flip)).view(operand.dtype)


def numbers_of(codes: Array, operand: Operand) -> Array:
    """Codes as numbers from 0 on, int64."""
    return (codes.view(np.uint8) ^ np.uint8(turned_bit(operand))).astype(np.int64)


def laid_table(table: Array) -> Array:
    """Bytes of a table, last axis 256, in the order that vlut32 reads them."""
    return np.swapaxes(table.reshape(*table.shape[:-1], 2, 2, 64), -1, -2).reshape(table.shape).astype(np.uint8)


def header(*numbers: int) -> bytes:
    """Numbers in front of arrays that begin at a vector."""
    return np.array(numbers, np.int32).tobytes().ljust(HEADER_BYTES, b"\0")


def grid(operand: Operand, extents: tuple[int, int, int, int], name: str) -> Operand:
    """The same codes or numbers as a tensor of other extents, NHWC."""
    return replace(operand, extents=extents, buffer=name, layout="NHWC")


def table_form(codes: Array, result: Operand) -> bytes:
    """The form of codes that are looked up by the code of a source, as a byte."""
    made = codes.astype(result.dtype).view(np.uint8)
    return header(TABLE) + laid_table(made).tobytes()


def reals_form(reals: Array) -> bytes:
    """The form of floats that are looked up by the code of a source, as a byte."""
    planes = reals.astype(np.float32).view(np.uint8).reshape(CODES, 4).T
    return header(REALS) + laid_table(planes).tobytes()


def every_byte(operand: Operand) -> Array:
    """All codes in the order of their bytes."""
    return np.arange(CODES, dtype=np.uint8).view(operand.dtype)


def zero_of(operand: Operand) -> int:
    """The number from 0 on that stands for 0."""
    return operand.zero_point + turned_bit(operand)


def _pixels(count: int, least: int = 1) -> tuple[Array, Array]:
    """Where the bytes of pixels of `count` lie in a vector: side by side, and each pixel at a power of two."""
    power = max(1 << (count - 1).bit_length(), least)
    pixel, byte = (each.reshape(-1) for each in np.divmod(np.arange(VECTOR_BYTES // power * count), count))
    return pixel * count + byte, pixel * power + byte


def spread(count: int, least: int = 1) -> Array:
    """The bytes that tell `vdelta` to move pixels of `count` bytes, side by side, to places at powers of two.

    Args:
        count: the bytes of a pixel.
        least: the least power of two.
    """
    side, apart = _pixels(count, least)
    return _surely(routed(side, apart, DOWN))


def gathered(count: int) -> Array:
    """The bytes that tell `vrdelta` the inverse of `spread`."""
    side, apart = _pixels(count)
    return _surely(routed(apart, side, UP))


def _surely(control: Array | None) -> Array:
    assert control is not None, "two bytes meet"
    return control


UP = (1, 2, 4, 8, 16, 32, 64)
"""The distances of the network `vrdelta`, by which bytes that keep their order come closer together."""
DOWN = UP[::-1]
"""Those of `vdelta`, by which they go apart."""


def routed(source: Array, target: Array, distances: tuple[int, ...]) -> Array | None:
    """The control of a network of exchanges: at each distance, a byte takes over that bit of where it goes.

    None where two bytes meet. A byte may go to several places.
    """
    control, at = np.zeros(VECTOR_BYTES, np.uint8), source
    for distance in distances:
        moved, held = (at & ~distance) | (target & distance), np.full(VECTOR_BYTES, -1)
        held[moved] = at
        if not np.array_equal(held[moved], at):
            return None
        control[moved[moved != at]] |= distance
        at = moved
    return control


def ends_of(codes: Array, result: Operand) -> Ends:
    """The least and the largest number that a result may be, where it is clamped."""
    return int(codes.min()) if result.low > -np.inf else 0, int(codes.max()) if result.high < np.inf else CODES - 1


NUMBER_SHIFT, NUMBER_REACH = 16, 40
"""The least shift of a number: HVX takes the upper halves of words; how far beside the nearest multiplier it is looked
for."""


def scaled_form(
    form: int, codes: Array, slopes: Array, source: Operand, result: Operand, rows: Array | None = None
) -> bytes | None:
    """Search a multiplier and a constant for each row of numbers from 0 on, [rows, 256] over codes of the source.

    Args:
        form: the form, of channels or of gates.
        codes: the results, by row.
        slopes: how steep each row is, in codes.
        source: the codes.
        result: the result.
        rows: the row of each channel, by default its own.
    """
    falls = slopes < 0
    codes, sizes = np.where(falls[:, None], codes[:, ::-1], codes), np.abs(slopes)
    ends = ends_of(codes, result)
    for shift in range(NUMBER_SHIFT + LAST_SHIFT, NUMBER_SHIFT - 1, -1):
        if sizes.max() * 2.0**shift * CODES >= 2**31:
            continue
        found = _numbers_of_rows(codes, np.round(sizes * 2.0**shift).astype(np.int64), shift, ends)
        if found is None:
            return None
        multipliers, constants = found
        last = constants + (CODES - 1) * multipliers
        if max(np.abs(constants).max(), np.abs(last).max()) < 2**31:
            break
    else:
        return None
    numbers = np.stack([np.where(falls, -multipliers, multipliers), np.where(falls, last, constants)])
    planes = np.concatenate([numbers >> bits & 0xFF for bits in (0, 8, 16, 24)]).reshape(4, 2, -1).swapaxes(0, 1)
    planes = planes.reshape(8, -1)[:, slice(None) if rows is None else rows]
    ordered = laid_table(planes) if form == GATED else planes.astype(np.uint8)
    numbers_of_all = (form, shift, turned_bit(source), turned_bit(result), *ends, planes.shape[1])
    return header(*numbers_of_all) + ordered.tobytes()


def _numbers_of_rows(codes: Array, nearest: Array, shift: int, ends: Ends) -> tuple[Array, Array] | None:
    axis, (multipliers, constants) = np.arange(CODES, dtype=np.int64), (nearest.copy(), np.zeros_like(nearest))
    left = np.arange(len(nearest))
    for apart in sorted(range(-NUMBER_REACH, NUMBER_REACH + 1), key=abs):
        tried = np.maximum(nearest[left] + apart, 0)
        interval = Interval.of(codes[left], axis * tried[:, None], shift, ends, axis=1)
        holds = interval.low <= interval.high
        multipliers[left[holds]] = tried[holds]
        constants[left[holds]] = interval.middle[holds]
        left = left[~holds]
        if not len(left):
            return multipliers, constants
    return None
