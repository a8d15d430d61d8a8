"""Layouts of packed tensors, `NHWC8h8w32c`, `OIHW8i32o4i`, `NCHW16c`, in TVM's notation, and plain dense buffers.

A capital letter is a logical axis, counted in blocks where it has any; a number with a small letter is a
block of that axis. Blocks of one letter nest in the order in which they stand: the first is the outermost,
and a letter may repeat (TVM's own layout objects refuse that). `[4c4h]` puts blocks together into one
physical axis, as in TVM.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from math import prod
from operator import mul

from hexconv.errors import InputError
from hexconv.layout.digits import Axis, Digit, Output
from hexconv.layout.mapping import Layout

REMEMBERED = 4096
"""The number of layouts that are kept."""

_AXIS = re.compile(r"([A-Z])|(\d+)([a-z])|\[((?:\d+[a-z])+)\]")
_BLOCK = re.compile(r"(\d+)([a-z])")


@dataclass(frozen=True)
class Block:
    """One part of a physical axis.

    Attributes:
        letter: the logical axis, a capital letter.
        factor: how many elements the block has; None for the axis itself, whose extent is what its blocks leave.
    """

    letter: str
    factor: int | None = None

    def __str__(self) -> str:
        return self.letter if self.factor is None else f"{self.factor}{self.letter.lower()}"


@dataclass(frozen=True)
class PackedTag:
    """A parsed tag: per physical axis, outermost first, its blocks (one, or several for a bracket).

    >>> str(PackedTag.parse("OIHW8i32o4i")), PackedTag.parse("OIHW8i32o4i").letters
    ('OIHW8i32o4i', 'OIHW')
    """

    physical: tuple[tuple[Block, ...], ...]

    @classmethod
    @lru_cache(REMEMBERED)
    def parse(cls, tag: str) -> "PackedTag":
        """Read a tag.

        Raises:
            InputError: what doesn't read as a tag, a letter that isn't there or is there twice, a block of 0.
        """
        parts = list(_AXIS.finditer(tag))
        if not tag or "".join(part.group() for part in parts) != tag:
            raise InputError("packed layout", repr(tag), "capital letters and blocks such as NHWC8h8w32c")
        parsed = cls(tuple(_blocks(part) for part in parts))
        parsed._check(tag)
        return parsed

    def __str__(self) -> str:
        return "".join(
            "".join(map(str, blocks)) if len(blocks) == 1 else f"[{''.join(map(str, blocks))}]"
            for blocks in self.physical
        )

    @cached_property
    def letters(self) -> str:
        """Logical axes in the order of the tag."""
        return "".join(block.letter for block in chain(*self.physical) if block.factor is None)

    @cached_property
    def block_sizes(self) -> dict[str, int]:
        """For each logical axis, how many of its elements one step along the axis itself stands for."""
        return {letter: prod(self.factors(letter)) for letter in self.letters}

    @cached_property
    def names(self) -> list[str]:
        """The names of the physical axes; the second `4i` of a tag becomes `4i'`."""
        seen: list[str] = []
        for blocks in self.physical:
            name = "".join(map(str, blocks))
            seen.append(name + "'" * sum(other.rstrip("'") == name for other in seen))
        return seen

    @cached_property
    def digits(self) -> tuple[Digit, ...]:
        """One digit per block; inside of a bracket the last block is the fastest."""
        seen = dict.fromkeys(self.letters, 0)
        digits = []
        for name, blocks in zip(self.names, self.physical, strict=True):
            strides = list(accumulate([1, *(b.factor or 1 for b in blocks[:0:-1])], mul))[::-1]
            for block, stride in zip(blocks, strides, strict=True):
                inner = self.factors(block.letter)
                if block.factor is not None:
                    seen[block.letter] += 1
                    inner = inner[seen[block.letter] :]
                digits.append(Digit(block.letter, name, prod(inner), block.factor, stride))
        return tuple(digits)

    def extent(self, block: Block, sizes: dict[str, int]) -> int:
        """Return the extent of a block: its factor, or, for the axis itself, how many blocks the axis takes."""
        return block.factor if block.factor is not None else -(-sizes[block.letter] // self.block_sizes[block.letter])

    def factors(self, letter: str) -> list[int]:
        """The sizes of the blocks of a letter, outermost first."""
        return [block.factor for block in chain(*self.physical) if block.letter == letter and block.factor]

    def _check(self, tag: str) -> None:
        letters = self.letters
        for block in chain(*self.physical):
            if letters.count(block.letter) != 1:
                given = f"no axis {block.letter}" if block.letter not in letters else f"axis {block.letter} twice"
                raise InputError(f"packed layout {tag}", given, "a capital letter for each axis, once: NHWC8h8w32c")
            if block.factor == 0:
                raise InputError(f"packed layout {tag}", f"a block of 0 {block.letter.lower()}", "blocks of 1 and more")


def packed(tag: str, shape: Sequence[int], *, logical: str | None = None, itemsize_bytes: int = 4) -> Layout:
    """The layout of a packed tensor.

    Args:
        tag: for example `NHWC8h8w32c`.
        shape: logical sizes; sizes that their blocks don't divide are rounded up.
        logical: order of the logical axes, by default the tag's own: `NHWC` for an NHWC tensor in `NCHW16c`.
        itemsize_bytes: bytes of an element.

    Returns:
        A layout with one output per physical axis, named as in the tag: `N`, `H`, `8h`; a second `4i` is
        `4i'`.

    Raises:
        InputError: the tag doesn't read, or the shape or the order doesn't fit it.

    >>> packed("NHWC8h8w32c", (1, 64, 64, 128)).physical_shape
    (1, 8, 8, 4, 8, 8, 32)
    >>> packed("OIHW8i32o4i", (128, 64, 3, 3)).address((33, 21, 2, 0))
    {'O': 1, 'I': 0, 'H': 2, 'W': 0, '8i': 5, '32o': 1, '4i': 1}
    """
    sizes = tuple(shape)
    # 1, 1.0 and True are equal, so they would be one key: what is no plain integer is refused by the layout itself.
    of_sizes = _packed if all(type(size) is int for size in sizes) else _packed.__wrapped__
    return of_sizes(tag, sizes, logical, itemsize_bytes)


@lru_cache(REMEMBERED)
def _packed(tag: str, shape: tuple[int, ...], logical: str | None, itemsize_bytes: int) -> Layout:
    """Return `packed`; a search asks for the same layouts for many plans."""
    parsed = PackedTag.parse(tag)
    order = logical or parsed.letters
    if sorted(order) != sorted(parsed.letters):
        raise InputError(f"packed layout {tag}: logical axes", order, f"the letters {parsed.letters} in any order")
    if len(shape) != len(order):
        raise InputError(f"packed layout {tag}: shape", f"{len(shape)} sizes", f"{len(order)} sizes: {','.join(order)}")
    sizes = dict(zip(order, shape, strict=True))
    return Layout(
        name=tag,
        axes=tuple(Axis(letter, sizes[letter]) for letter in order),
        outputs=tuple(
            Output(name, prod(parsed.extent(block, sizes) for block in blocks))
            for name, blocks in zip(parsed.names, parsed.physical, strict=True)
        ),
        digits=parsed.digits,
        itemsize_bytes=itemsize_bytes,
    )


def _blocks(part: re.Match[str]) -> tuple[Block, ...]:
    """The blocks of one physical axis."""
    capital, factor, letter, bracket = part.groups()
    if capital:
        return (Block(capital),)
    pairs = _BLOCK.findall(bracket) if bracket else [(factor, letter)]
    return tuple(Block(small.upper(), int(count)) for count, small in pairs)


def dense(order: str, shape: Sequence[int], *, itemsize_bytes: int = 4) -> Layout:
    """Row-major buffer of the axes in `order`, which is the logical order too; one output, `offset_elements`.

    Raises:
        InputError: the shape doesn't have as many sizes as the order has axes.

    >>> dense("NCHW", (1, 2, 3, 4)).address((0, 1, 2, 3))
    {'offset_elements': 23}
    """
    if len(shape) != len(order):
        raise InputError(f"buffer {order}: shape", f"{len(shape)} sizes", f"{len(order)} sizes: {','.join(order)}")
    return Layout(
        name=order,
        axes=tuple(Axis(letter, size) for letter, size in zip(order, shape, strict=True)),
        outputs=(Output("offset_elements", prod(shape)),),
        digits=tuple(Digit(letter, "offset_elements", stride=prod(shape[k + 1 :])) for k, letter in enumerate(order)),
        itemsize_bytes=itemsize_bytes,
    )
