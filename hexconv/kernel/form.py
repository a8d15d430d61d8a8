"""Forms: the ways in which a conv of a nest of rows multiplies. Each has one file in this folder, found by being there.

A form says what it serves, how it wants filters, which scratch it takes, how its weights sum up, and what it costs. The
module of `hexconv.lower.hvx` that `code` names emits its rows. Of the forms that can compute a conv, the one of the
fewest packets by its own estimate does; of equals, the first by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from hexconv.kernel.addends import Addend
from hexconv.kernel.cost import Cost, Parts
from hexconv.kernel.layouts import Diagonal, Packing
from hexconv.kernel.tiles import VECTOR_BLOCKS, VECTOR_BYTES, filled_columns, tile_pixels, unsigned_zero
from hexconv.layout import Layout
from hexconv.spec import Chain
from hexconv.spec.activations import TABLE
from hexconv.spec.extents import CHANNEL_BLOCK, REMEMBERED
from hexconv.spec.kernels import Kernel
from hexconv.spec.names import source_cache, target_cache
from hexconv.spec.narrowing import MADE_UNSIGNED, SATURATING, FixedPoint
from hexconv.spec.vectors import Array

if TYPE_CHECKING:
    from hexconv.kernel.row_conv import RowConv

MADE_UNSIGNED_HALVES = 1 << 15


class Memory(NamedTuple):
    """Scratch of a conv: what it holds, its role among caches, the type and the number of its elements."""

    what: str
    role: str
    dtype: str
    elements: int


class RowsTogether(NamedTuple):
    """How a form groups the rows that it makes; `Cost.together` says what each way takes (`WAYS_TOGETHER`).

    Attributes:
        sizes: the numbers of rows that are made together, the largest first; none where each row stands alone.
        goes_down: whether tiles go down the image where stripes have `LEAST_ROWS_DOWN` rows.
    """

    sizes: tuple[int, ...] = ()
    goes_down: bool = False


@dataclass(frozen=True)
class Form(ABC):
    """One way in which a conv of a nest of rows multiplies; a subclass computes the conv, if it serves it.

    Attributes:
        conv: the conv.
    """

    conv: RowConv

    name: ClassVar[str]
    code: ClassVar[str] = ""
    """The module of `hexconv.lower.hvx` whose `emit_rows` emits its rows."""
    kernel: ClassVar[Kernel] = "hvx"
    products_of_packet: ClassVar[int | None] = 2
    """How many instructions that multiply a v67 issues in a packet: two `vrmpy` of a vector and a scalar, or one of two
    vectors (measured: "How dense the forms of multiply-accumulate are" on the page of data types)."""
    has_pixels: ClassVar[bool] = False
    """Whether lanes are pixels, not channels."""
    lays_source_out: ClassVar[bool] = False
    """Whether it multiplies rows that it lays out anew, as uint8."""

    @property
    def goes_down(self) -> bool:
        """Whether its tiles follow each other down the image: one loop over the rows of a stripe, of long trips."""
        return False

    @property
    def reads_fringe(self) -> bool:
        """Whether results use channels that fill up the pixels of its source: they hold the zero point then."""
        return True

    @property
    def sums_windows_ahead(self) -> bool:
        """Whether windows are summed before the tiles, for the filter's zero point."""
        return False

    @classmethod
    def keeps_groups(cls, chain: Chain, index: int) -> bool:
        """Whether conv `index` keeps its groups to be computed so; else they are filled up to one, with zeros."""
        return False

    @classmethod
    def tile_of_groups(cls, chain: Chain, index: int, k_split: int) -> int:
        """Blocks of output channels in a tile of a conv whose groups it keeps."""
        return 1

    @classmethod
    def columns_read(cls, chain: Chain, index: int, unit: int) -> int:
        """The stored columns that it loads of a tensor in blocks of `unit` channels, beyond those that a conv reads."""
        return 0

    @classmethod
    def rows_together(cls, chain: Chain, index: int) -> RowsTogether:
        """How rows of conv `index` are grouped."""
        return RowsTogether()

    @classmethod
    @abstractmethod
    def serves(cls, conv: RowConv) -> str:
        """Return nothing if it can compute a conv, or why it can't."""

    @property
    def lanes(self) -> str:
        """What the lanes of its vectors are, as tables say it."""
        return self.name

    @property
    def row_packets(self) -> float:
        """The packets of a row of outputs by its estimate, which forms are chosen by."""
        return 0.0

    @property
    @abstractmethod
    def filter_layout(self) -> tuple[Layout, Packing]:
        """The layout of the filter, and how its elements are packed."""

    @property
    def side_by_side(self) -> int:
        """Blocks of output channels that lie side by side in the filter."""
        return self.filter_layout[0].physical_shape[-3]

    @property
    def tile_blocks(self) -> int:
        """Blocks of output channels in a tile."""
        return 1

    def planes_ahead(self, block: Any, blocks: Any, least: Callable[[Any, int], Any]) -> Any | None:
        """The planes of the source from the first one of a block of channels to that of one `blocks` further on.

        None where all blocks multiply all planes. `least` returns the lesser of two numbers, or expressions.
        """
        return None

    @abstractmethod
    def summed_weights(self, filter: Array) -> Array:
        """Sum the weights of a packed filter by channel as they are multiplied, for the zero point of the source.

        What tiles take off for the zero point of the filter is taken off here, too.
        """

    def scratch(self) -> Iterator[Memory]:
        """Yield the scratch of the conv beside its constants."""
        return iter(())

    @property
    @abstractmethod
    def products(self) -> int:
        """The instructions that multiply for a row of outputs."""

    @property
    def row_macs(self) -> int:
        """The multiply-accumulates of a row of outputs: 4 in each of 32 lanes for each product."""
        return self.products * VECTOR_BYTES

    @property
    def once_macs(self) -> int:
        """The multiply-accumulates that sum the filter for the zero point of the source, once a thread.

        HVX kernels load offsets that are laid out before a run.
        """
        return 0

    @abstractmethod
    def packets(self) -> Cost:
        """Count the parts of packets (`hexconv.analyze.nest_packets`)."""

    @abstractmethod
    def traffic(self) -> Cost:
        """Count the bytes that are read and written in each cache."""


STORES_NEAR = 8
"""The most vectors in a row that stores reach from one address: those beyond take packets of their own, as padding."""


def fills(vectors: int) -> Parts:
    """Count the parts of so many neighbouring vectors of fringe.

    >>> dict(fills(3)), dict(fills(20))
    ({'fill': 3, 'blank': 0}, {'fill': 8, 'blank': 12})
    """
    near = min(vectors, STORES_NEAR)
    return Parts(fill=near, blank=vectors - near)


@dataclass(frozen=True)
class VectorForm(Form):
    """A form of HVX instructions: tiles of sums in registers, whose results are narrowed and stored by vectors."""

    blank_part: ClassVar[str] = "blank_row"
    """The name of the part that a row of tiles of the fringe is."""

    def packets(self) -> Cost:
        """Count the parts of rows of tiles, of the fringe around them, and of steps."""
        conv, units = self.conv, self.conv.units
        row, blank, step = self.row_parts(), Parts(), Parts(step=conv.channel_tiles)
        for blocks, times in conv.tiles.items():
            row.add(self.tile_parts(blocks), times)
            filled, all_vectors = (0, 0) if units.is_narrow else self._filled_vectors(blocks)
            row.add({**fills(filled), "row": 1}, times)
            blank.add({**fills(all_vectors), self.blank_part: 1}, times)
        if units.is_narrow:
            row.add(fills(units.count * len(filled_columns(conv.target, units.vector_pixels))))
            blank.add(fills(units.count * units.columns // units.vector_pixels))
        if conv.adds:
            addend = Addend(conv, conv.adds)
            row.add({"added": addend.row_vectors, "addend": addend.row_loads})
        row.add(self.parts_ahead())
        step.add(self.step_parts())
        return Cost(row, blank, step, together=self.parts_together())

    def row_parts(self) -> Parts:
        """Count the parts of a row, all of its channels, beside those of `tile_parts`."""
        return Parts()

    def tile_parts(self, blocks: int) -> Parts:
        """Count the parts of a row of tiles of `blocks` blocks of channels."""
        return Parts()

    def parts_ahead(self) -> Parts:
        """Count the parts of what a row does before its tiles, beside `row_parts`."""
        return Parts()

    def step_parts(self) -> Parts:
        """Count the parts of a step beside its rows."""
        return Parts()

    def parts_together(self) -> tuple[Parts, ...]:
        """Count what rows take beside their tiles, for each way in which they are made (`WAYS_TOGETHER`)."""
        return Cost().together

    def _filled_vectors(self, blocks: int) -> tuple[int, int]:
        """Count the vectors of fringe in a row with elements, and in a row without, of one tile of wide blocks."""
        conv = self.conv
        together = conv.narrowed_blocks
        pixels = VECTOR_BLOCKS // together if conv.spec.requantize else 1
        filled = len(self._fringe(pixels))
        return filled * blocks // together, conv.target_columns // pixels * blocks // together

    def _fringe(self, pixels: int) -> Sequence[int]:
        """The columns of a row at which vectors of `pixels` pixels begin that hold fringe."""
        conv, (first, end) = self.conv, self.conv.target.valid_columns
        if conv.makes_blocks:
            return range(ceil(end / pixels) * pixels, conv.target_columns, pixels)
        return [at for at in range(0, conv.target_columns, pixels) if at < first or at + pixels > end]

    def leaving(self, blocks: int, pixels: int) -> Parts:
        """Count the parts of the epilogue of a tile: its sums are stored whole, or requantised."""
        conv, sums = self.conv, blocks * pixels
        if conv.spec.requantize is None:
            return Parts(whole=sums)
        if conv.units.is_narrow:
            return self._leaving_narrow(blocks, pixels)
        together = conv.narrowed_blocks
        vectors = blocks // together * ceil(pixels * together / VECTOR_BLOCKS) * conv.source_bytes
        return self.ending(sums, vectors, blocks)

    def _leaving_narrow(self, blocks: int, pixels: int) -> Parts:
        """Count the parts of the epilogue of a tile that makes narrow blocks (`hexconv.lower.hvx.stores`).

        Where the last block of 32 channels fits a narrow one, pixels share vectors of its sums. Each tile counts its
        share.
        """
        conv, units = self.conv, self.conv.units
        last = blocks / conv.out_blocks * (0 < units.last_channels <= units.together)
        shared, stored = CHANNEL_BLOCK // units.together, ceil(pixels / units.vector_pixels)
        sums = last * ceil(pixels / shared) + (blocks - last) * pixels
        vectors = last * stored + (blocks - last) * ceil(pixels / VECTOR_BLOCKS)
        parts = self.ending(sums, vectors, blocks)
        parts["across"] = last * pixels * (1 - 1 / shared) + (blocks - last) * stored
        return parts

    def ending(self, sums: float, vectors: float, lanes: int) -> Parts:
        """Count the parts of requantising `sums` vectors of sums to `vectors` vectors of results.

        A tile loads `lanes` vectors for each value that differs by channel.
        """
        conv, sequence = self.conv, self.conv.narrowing
        assert sequence
        looked_up = vectors * (conv.spec.activation == TABLE)
        if not isinstance(sequence, FixedPoint):
            return Parts(narrow=vectors, even=sums * (sequence.halves is not None), table=looked_up)
        is_even = sequence.has_halves
        parts = Parts(narrow=vectors, scale=sums, even=sums * is_even, table=looked_up)
        saturated = SATURATING * (sequence.saturates_at is not None)
        parts["away"] = sums * (sequence.ties_away + (sequence.lift > 0) + sequence.doubles_saturating + saturated)
        parts["initial"] = lanes * len(sequence.vectors)
        return parts

    def traffic(self) -> Cost:
        """Count what is written of the target, vectors of the fringe included; a form adds what it reads."""
        conv, units = self.conv, self.conv.units
        cost, name = Cost(), target_cache(conv.number, len(conv.chain.conv))
        if conv.adds:
            addend = Addend(conv, conv.adds)
            cost.row[name] += 2 * addend.row_vectors * VECTOR_BYTES
            cost.row[source_cache(addend.number + 1)] += addend.row_loads * VECTOR_BYTES
        if units.is_narrow:
            stored = sum(
                ceil(size / units.vector_pixels) * times for size, times in self.row_tiles(max(conv.tiles))
            ) + len(filled_columns(conv.target, units.vector_pixels))
            cost.row[name] += units.count * stored * VECTOR_BYTES
            cost.blank_row[name] += units.count * units.columns // units.vector_pixels * VECTOR_BYTES
            return cost
        together = conv.narrowed_blocks
        pixels = VECTOR_BLOCKS // together // conv.result_bytes
        size, filled = VECTOR_BYTES * (2 if conv.target_low_bytes else 1), len(self._fringe(pixels))
        for blocks, times in conv.tiles.items():
            stored = sum(ceil(size / pixels) * count for size, count in self.cut(tile_pixels(blocks)))
            cost.row[name] += times * blocks // together * (stored + filled) * size
            cost.blank_row[name] += times * blocks // together * (conv.target_columns // pixels) * size
        return cost

    def row_tiles(self, blocks: int) -> Sequence[tuple[int, int]]:
        """Return (pixels of a tile, how many of these a row has) for tiles of `blocks` blocks of channels."""
        return self.cut(tile_pixels(blocks))

    def cut(self, pixels: int) -> Sequence[tuple[int, int]]:
        """Cut a row of outputs into tiles of so many pixels, and one of those that are left."""
        whole, rest = divmod(self.conv.columns, pixels)
        return [(size, times) for size, times in ((pixels, whole), (rest, 1)) if size and times]


def unsigned_packing(chain: Chain, pads_zeros: bool = False, diagonal: Diagonal | None = None) -> Packing:
    """Return the packing of elements as bytes without a sign."""
    shift = {"int8": MADE_UNSIGNED, "int16": MADE_UNSIGNED_HALVES}.get(chain.dtype_of_filters, 0)
    return Packing("uint8", shift, pads_zeros, diagonal=diagonal)


def signed_packing(chain: Chain, index: int, is_words: bool = False) -> Packing:
    """Return the packing of elements as bytes with a sign; without one where their zero point is 0 then."""
    unsigned = unsigned_packing(chain)
    if not unsigned_zero(chain, index):
        return Packing("uint8", unsigned.shift, True, is_words)
    return Packing("int8", unsigned.shift - MADE_UNSIGNED, True, is_words)


@lru_cache(1)
def all_forms() -> tuple[type[Form], ...]:
    """The forms that modules of this folder define, by name."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem != "__init__":
            import_module(f"{__package__}.{path.stem}")
    return tuple(sorted(_concrete(Form), key=lambda form: form.name))


@lru_cache(REMEMBERED)
def forms_of_kernel(kernel: Kernel) -> tuple[type[Form], ...]:
    """The forms of a kernel, by name."""
    return tuple(form for form in all_forms() if form.kernel == kernel)


def _concrete(kind: type[Form]) -> Iterator[type[Form]]:
    for inner in kind.__subclasses__():
        yield from _concrete(inner)
        if "name" in vars(inner):
            yield inner


@lru_cache(REMEMBERED)
def without_groups(chain: Chain) -> Chain:
    """The chain as HVX computes it: groups that no form keeps are filled up to one, with zeros."""
    convs = tuple(
        conv if conv.groups == 1 or _keeping(chain, index) else replace(conv, groups=1)
        for index, conv in enumerate(chain.conv)
    )
    # The same chain, not an equal one, so that caches find it without comparing all of its convs.
    return chain if convs == chain.conv else replace(chain, conv=convs)


def _keeping(chain: Chain, index: int) -> type[Form] | None:
    """The form that keeps the groups of conv `index`, if there is one."""
    return next((form for form in all_forms() if form.keeps_groups(chain, index)), None)


def tile_of_groups(chain: Chain, index: int, k_split: int) -> int:
    """Blocks of output channels in a tile of conv `index`, whose groups are kept."""
    form = _keeping(chain, index)
    assert form
    return form.tile_of_groups(chain, index, k_split)


def rows_together(chain: Chain, index: int) -> RowsTogether:
    """How rows of conv `index` are grouped by the form that keeps its groups, if there is one."""
    form = _keeping(chain, index)
    return form.rows_together(chain, index) if form else RowsTogether()


def columns_read(chain: Chain, index: int, unit: int) -> int:
    """The most stored columns that any form loads of what conv `index` reads, in blocks of `unit` channels."""
    return max(form.columns_read(chain, index, unit) for form in all_forms())
