"""The least packets that an operator's instructions fit in, by the units that a packet of HVX has.

    operation  ->  instructions for each vector (`Issued`)  x  vectors  ->  packets

The instructions are those of the shortest way known to compute an operator exactly, without loops, addresses and
fringes. A kernel that takes 1.5 times as many packets loses a third of its slots to these.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from hexconv.network.integer_form import SUM, kind_of_form, way_of_form
from hexconv.network.operator_table import form_of
from hexconv.network.program_steps import NCHW, NHWC, Along, Constants, Filters, Map, Operand, Operation, View, Window
from hexconv.run.tensors import Array

VECTOR_BYTES = 128


@dataclass(frozen=True)
class Issued:
    """Instructions that an operator needs at least, and in how many packets they fit.

    A packet has four slots, and what it needs of each unit once: a load, a store (both in slots 0 and 1), two
    multipliers (slots 2 and 3), a shifter, a permuter. Simple arithmetic takes any of these four units. An unaligned
    access takes slots 0 and 1 and the permuter; a table of 32 bytes that is added to others, or an exchange of two
    vectors, the permuter and the shifter; arithmetic on two vectors, or products of twice as many bytes, two units.

    Attributes:
        loads: aligned loads.
        stores: aligned stores.
        unaligned_loads: loads at any address.
        unaligned_stores: stores at any address.
        simple: arithmetic on a vector.
        doubles: arithmetic on two vectors.
        shifts: shifts, and what narrows by one.
        permutes: moves in a vector.
        exchanges: tables, and moves between two vectors.
        products: products of a vector with a scalar of four bytes.
        double_products: all other products.
    """

    loads: float = 0
    stores: float = 0
    unaligned_loads: float = 0
    unaligned_stores: float = 0
    simple: float = 0
    doubles: float = 0
    shifts: float = 0
    permutes: float = 0
    exchanges: float = 0
    products: float = 0
    double_products: float = 0

    @property
    def by_unit(self) -> dict[str, float]:
        """The packets that the instructions of each unit take; the most of them is the least of all together."""
        unaligned = self.unaligned_loads + self.unaligned_stores
        one = self.simple + self.shifts + self.permutes + self.products
        two = self.doubles + self.exchanges + self.double_products
        return {
            "loads": self.loads + self.unaligned_loads,
            "stores": self.stores + self.unaligned_stores,
            "unaligned accesses": unaligned + (self.loads + self.stores) / 2,
            "permutes": self.permutes + self.exchanges + unaligned,
            "shifts": self.shifts + self.exchanges,
            "products": self.products / 2 + self.double_products,
            "units": (one + 2 * two + unaligned) / 4,
            "slots": (self.loads + self.stores + 2 * unaligned + one + two) / 4,
        }

    @property
    def packets(self) -> float:
        """The least packets that they all fit in."""
        return max(self.by_unit.values())

    @property
    def fullest(self) -> str:
        """The unit that takes the most packets."""
        return max(self.by_unit, key=lambda unit: self.by_unit[unit])

    def times(self, count: float) -> "Issued":
        """Return so many times the instructions."""
        return Issued(**{name: count * each for name, each in vars(self).items()})

    def __add__(self, other: "Issued") -> "Issued":
        """Return the instructions of both."""
        return Issued(**{name: each + getattr(other, name) for name, each in vars(self).items()})


SCALED = Issued(simple=4, doubles=1, shifts=5, double_products=3)
"""Multiplied by numbers of three limbs: carries of two limbs and a shift to narrow."""
BY_WORDS = Issued(simple=2, doubles=1, shifts=1, permutes=2, double_products=4)
"""Multiplied by one number a channel: a product and a narrowing for each of four words."""
LOOKED_UP = Issued(permutes=1, exchanges=7)
"""A table of 256 codes: eight parts of 32, the first of which is added to nothing."""
OF_A_PAIR = Issued(simple=3)
"""Both codes of a sum are compared, and another result is chosen."""
OF_A_CODE = Issued(simple=6, shifts=1, permutes=2)
"""Sums that differ where one code is a certain one, for some codes of the other: a bit of 256, looked up as a byte of
32 and a bit of it, each in one part of a table."""
OF_TIES = LOOKED_UP.times(4) + Issued(simple=8, doubles=2, shifts=1)
"""What float32 errs in both codes, and by how much it has to for the next code: four tables, a sum and a choice."""
MENDED = {1: OF_A_PAIR, 2: OF_A_PAIR.times(4), 3: OF_A_CODE, 4: OF_A_CODE, 5: OF_TIES}
"""What is mended in sums of which no multipliers give all pairs of codes, by enum hexconv_mended."""
ON_A_LINE = Issued(simple=3, shifts=2, double_products=2)
"""Codes that change along a line of 16-bit integers: two products, the first of which is shifted, and a sum for each
half; bytes of neighbours are put together again by any unit. Codes of int8 would be turned as well, and where something
is taken off, there would be another two sums."""
QUANTISED = Issued(loads=4, stores=1, simple=49, shifts=13, permutes=2, double_products=8)
"""Of each of four words three shifts, a product of 32 bits, which is two of 16, and eleven more, two of which see
whether it is near the middle between two codes; then all are narrowed, and held within two ends."""
DEQUANTISED = Issued(loads=1, stores=4, permutes=4, exchanges=4 * 7 + 4)
"""A table for each byte of a float."""
POWERS = Issued(loads=1, stores=1, shifts=4 * 2 + 2, permutes=3, exchanges=3 * 7, double_products=4 * 4)
"""Powers of three bytes are looked up once; two products of 32 bits for each of four words."""
WORD_SUMS = Issued(loads=2, simple=4 * 3, doubles=2, shifts=4, double_products=4 * 2)
"""Sums of two codes as words of 32 bits: products with both, and three to hold each within ends and to add it up."""
MEAN_OF_ALL = Issued(loads=1, double_products=0.5)
"""Bytes are added up by products with ones, four to a word."""


def least_of(operation: Operation, constants: Constants) -> Issued | None:
    """Return the instructions that an operator needs at least, for all its vectors; None where no way is known."""
    operands = (*operation.sources, operation.result)
    if any(each.layout not in (NHWC, NCHW) for each in operands) or operation.operator not in _LEAST:
        return None
    return _LEAST[operation.operator](operation, constants)


def _vectors(operand: Operand) -> float:
    return prod(operand.extents) / VECTOR_BYTES


def _pair(step: Operation, constants: Constants) -> Issued | None:
    """Sums and products of two tensors; an operand that is broadcast is loaded once for many vectors."""
    if any(each.is_float and each.buffer not in constants for each in (*step.sources, step.result)):
        return None
    loads = sum(each.extents == step.result.extents for each in step.sources)
    found = (SCALED if loads > 1 else BY_WORDS) + Issued(loads=loads, stores=1)
    form = np.frombuffer(form_of(step, constants) or b"", np.uint8)
    mended = way_of_form(form) >> 2 if len(form) and kind_of_form(form) == SUM else 0
    return (found + MENDED[mended] if mended else found).times(_vectors(step.result))


def _max_pool(step: Operation, _: Constants) -> Issued:
    """Maxima along rows, then along columns, of twice as many places each time; some are shared by neighbours."""
    [source], window = step.sources, step.told(Window)
    stored = _vectors(step.result)
    maxima = stored * sum((taps - 1).bit_length() for taps in window.kernel)
    if _is_aligned(step):
        return Issued(loads=_vectors(source), stores=stored, simple=maxima)
    return Issued(unaligned_loads=_vectors(source), unaligned_stores=stored, simple=maxima)


def _average_pool(step: Operation, _: Constants) -> Issued | None:
    [source], window = step.sources, step.told(Window)
    if source.is_float or step.result.is_float:
        return None
    if step.result.extents[1:3] == (1, 1):
        return MEAN_OF_ALL.times(_vectors(source))
    stored = _vectors(step.result)
    doubles = sum((taps - 1).bit_length() for taps in window.kernel)
    loads = Issued(loads=_vectors(source)) if _is_aligned(step) else Issued(unaligned_loads=_vectors(source))
    return loads + Issued(unaligned_stores=1, doubles=doubles, shifts=3, double_products=4).times(stored)


def _is_aligned(step: Operation) -> bool:
    """Whether a window moves by whole vectors."""
    channels, stride = step.result.extents[3], step.told(Window).stride[1]
    return channels % VECTOR_BYTES == 0 or (channels * stride % VECTOR_BYTES == 0 and channels % 64 == 0)


def _mean_of_sums(step: Operation, _: Constants) -> Issued:
    return WORD_SUMS.times(_vectors(step.sources[0]))


def _mean_of_all(step: Operation, _: Constants) -> Issued:
    return MEAN_OF_ALL.times(_vectors(step.sources[0]))


def _converted(step: Operation, _: Constants) -> Issued:
    """Codes from real numbers, real numbers from codes, or other codes; in another layout, too."""
    [source], result, vectors = step.sources, step.result, _vectors(step.result)
    turned = Issued()
    if source.layout != result.layout and not (source.is_one_order or result.is_one_order):
        rows, columns, channels = source.extents[1:]
        turned = _turned(channels, rows * columns).times(vectors)
    if source.is_float:
        return QUANTISED.times(vectors) + turned
    if result.is_float:
        return DEQUANTISED.times(vectors) + turned
    if source.same_codes(result):
        return turned if turned.packets else Issued(loads=vectors, stores=vectors)
    moved = Issued() if turned.packets else Issued(loads=1, stores=1)
    return (ON_A_LINE + moved).times(vectors) + turned


def _turned(channels: int, pixels: int) -> Issued:
    """For each vector of a matrix that is turned: exchanges, and what makes a power of two of its rows."""
    small = min(channels, pixels, 128)
    power = 1 << (small - 1).bit_length()
    stages = power.bit_length() - 1
    if small < 128:
        moved = power / small if power > small else 0  # and an unaligned access of as many
        return Issued(loads=1, permutes=moved, unaligned_stores=moved, exchanges=power * stages / 2 / small)
    apart = int(channels % 128 > 0) + int(pixels % 128 > 0)
    return Issued(exchanges=stages / 2, unaligned_loads=apart)


def _looked_up(step: Operation, _: Constants) -> Issued | None:
    """A function of codes, by a table; or a linear one for each channel."""
    if step.sources[0].is_float or step.result.is_float:
        return None
    found = LOOKED_UP if step.told(Map).count == 1 else BY_WORDS
    return (found + Issued(loads=1, stores=1)).times(_vectors(step.result))


def _softmax(step: Operation, _: Constants) -> Issued:
    return POWERS.times(_vectors(step.result))


def _product(step: Operation, _: Constants) -> Issued:
    """Products with filters, each of which is loaded at least once."""
    filters = step.told(Filters)
    weights, pixels = prod(filters.shape), prod((step.sources[0]).extents[:3])
    return Issued(loads=weights / VECTOR_BYTES, products=weights * pixels / VECTOR_BYTES)


def _concat(step: Operation, _: Constants) -> Issued:
    """Sources side by side; the codes of some change along a line."""
    axis, first, places = step.told(Along).axis, 0, []
    for source in step.sources:
        places.append(_in_memory(first + np.arange(prod(source.extents)), source))
        first += -(-prod(source.extents) // VECTOR_BYTES) * VECTOR_BYTES
    joined = np.concatenate(places, axis)
    flat = joined if step.result.layout == NHWC else joined.transpose(0, 3, 1, 2)
    changed = sum(_vectors(each) for each in step.sources if not each.same_codes(step.result))
    return _moved(flat.reshape(-1)) + ON_A_LINE.times(changed)


def _in_memory(flat: Array, operand: Operand) -> Array:
    """Return NHWC of elements that lie flat in an operand's layout."""
    batch, rows, columns, channels = operand.extents
    if operand.layout == NHWC:
        return flat.reshape(operand.extents)
    return flat.reshape(batch, channels, rows, columns).transpose(0, 2, 3, 1)


def _viewed(step: Operation, constants: Constants) -> Issued:
    view = step.told(View)
    sources, results = np.array([view.source_first]), np.array([view.result_first])
    for each in view.dimensions:
        turns = np.arange(each.size)
        read = constants[each.places] if each.places else turns * each.source_step
        sources = (sources[:, None] + read).reshape(-1)
        results = (results[:, None] + turns * each.result_step).reshape(-1)
    return _moved(sources[np.argsort(results, kind="stable")])


def _moved(places: Array) -> Issued:
    """Instructions that fill a result in order from these places of its sources.

    Vectors that are alike are made once.
    """
    whole = places[: len(places) // VECTOR_BYTES * VECTOR_BYTES].reshape(-1, VECTOR_BYTES)
    if not len(whole):
        whole = np.pad(places, (0, VECTOR_BYTES - len(places)), mode="edge").reshape(1, -1)
    vectors, made, known = len(places) / VECTOR_BYTES, np.unique(whole, axis=0), dict[bytes, Issued]()
    found = Issued(loads=len(np.unique(places // VECTOR_BYTES)), stores=vectors)
    for vector in made - made.min(axis=1, keepdims=True) // VECTOR_BYTES * VECTOR_BYTES:
        if (order := vector.tobytes()) not in known:
            known[order] = _made(vector)
        found += known[order].times(vectors / len(whole))
    return found


def _made(places: Array) -> Issued:
    """Instructions that make a vector of bytes of others, in the way of the fewest.

    Each run is turned and chosen; or the bytes of each source vector are moved by a network, where they rise, or by
    two, which make any order, and chosen; or, where no two are in the same lane, they are chosen first and moved then.
    """
    lanes, windows = np.arange(VECTOR_BYTES), places // VECTOR_BYTES
    starts = np.concatenate([[True], np.diff(places) != 1])
    is_turned = (places - lanes) % VECTOR_BYTES != 0
    read = np.unique(windows)
    ways = [
        (int((is_turned & starts).sum()), int(starts.sum()) - 1),
        (sum(_networks(places[windows == each], lanes[windows == each]) for each in read), len(read) - 1),
    ]
    if all(len(np.unique(windows[places % VECTOR_BYTES == lane])) == 1 for lane in np.unique(places % VECTOR_BYTES)):
        ways.append((_networks(places % VECTOR_BYTES, lanes), len(read) - 1))
    permutes, simple = min(ways, key=lambda way: (max(way[0], sum(way) / 4), sum(way)))
    return Issued(permutes=permutes, simple=simple)


def _networks(places: Array, lanes: Array) -> int:
    """How many networks move bytes of a vector to their lanes: none, one if their order stays, or two."""
    if np.array_equal(places % VECTOR_BYTES, lanes):
        return 0
    return 1 if np.all(np.diff(places) > 0) else 2


Least = Callable[[Operation, Constants], Issued | None]
_LEAST: dict[str, Least] = {
    "add": _pair,
    "subtract": _pair,
    "multiply": _pair,
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "global_average_pool": _mean_of_all,
    "average_of_sum": _mean_of_sums,
    "convert": _converted,
    "map": _looked_up,
    "softmax": _softmax,
    "matmul": _product,
    "conv_transpose": _product,
    "concat": _concat,
    "view": _viewed,
}
