"""oneDNN's format tags: `acdb`, `aBcd16b`, `ABcd4b16a4b`, and the domain names that stand for them.

Letters in outer order, one per logical dimension, a capital where the dimension is blocked; then the inner
blocks, outermost first, each a size and a letter. A dimension may have several blocks: in `ABcd4b16a4b` the
block of b is 4 * 4 = 16. (oneapi/dnnl/dnnl_types.h, `dnnl_format_tag_t`.)
"""

import re
from dataclasses import dataclass
from math import prod

from hexconv.errors import did_you_mean
from hexconv.layout.onednn.onednn_types import DescriptorError

LETTERS = "abcdefghijkl"
MAX_RANK = len(LETTERS)

DOMAINS = (
    *("x", "nc", "ncw", "nchw", "ncdhw"),
    *("oi", "oiw", "oihw", "oidhw", "goiw", "goihw", "goidhw"),
    *("tn", "tnc", "ldnc", "ldigo", "ldio", "ldgo"),
)
"""The logical order of the letters of every domain: activations, weights without and with groups, RNN tensors."""

COMMON = (
    *DOMAINS,
    *("nwc", "nhwc", "ndhwc", "wio", "hwio", "dhwio", "ntc"),
    *("nCw8c", "nCw16c", "nChw4c", "nChw8c", "nChw16c", "nCdhw8c", "nCdhw16c"),
    *("OIhw8i8o", "OIhw16i16o", "OIhw4i16o4i", "gOIhw16i16o", "gOIhw4i16o4i", "any", "undef"),
)
"""Common tags, one of which a misspelt tag most likely was meant to be."""

MISNAMED = {
    **{"gIOhw2i8o16i2o": "aBCde2c8b16c2b", "gIOdhw2i8o16i2o": "aBCdef2c8b16c2b"},
    **{"OhwI24o": "Acdb24a", "OhwI32o": "Acdb32a", "gOhwI24o": "aBdec24b", "gOhwI32o": "aBdec32b"},
}
"""Names of version 3.2 that don't spell their tag: outer letters swapped, a capital without a block."""

_TAG = re.compile(r"([A-Za-z]+)((?:\d+[a-z])*)")
_BLOCK = re.compile(r"(\d+)([a-z])")


@dataclass(frozen=True)
class FormatTag:
    """A parsed tag.

    Attributes:
        order: dimensions from the outermost to the innermost.
        inner_blks: sizes of the inner blocks, outermost first.
        inner_idxs: the dimension of each inner block.

    >>> FormatTag.parse("OIhw4i16o4i")
    FormatTag(order=(0, 1, 2, 3), inner_blks=(4, 16, 4), inner_idxs=(1, 0, 1))
    """

    order: tuple[int, ...]
    inner_blks: tuple[int, ...] = ()
    inner_idxs: tuple[int, ...] = ()

    @classmethod
    def parse(cls, name: str) -> "FormatTag":
        """Read a tag by its letters or by any domain name.

        Raises:
            DescriptorError: the name is no tag: letters are missing or twice, a capital has no block, a block
            without a
                capital, a block of 0.
        """
        tag = canonical(name)
        outer, blocks = split(tag)
        order = tuple(LETTERS.index(letter) for letter in outer.lower())
        pairs = [(int(size), LETTERS.index(letter)) for size, letter in _BLOCK.findall(blocks)]
        parsed = cls(order, tuple(size for size, _ in pairs), tuple(dim for _, dim in pairs))
        _check(name, outer, parsed)
        return parsed

    @property
    def rank(self) -> int:
        """The number of logical dimensions."""
        return len(self.order)

    def block(self, dim: int) -> int:
        """How many elements of a dimension its inner blocks hold together."""
        return block_of(dim, self.inner_blks, self.inner_idxs)

    def __str__(self) -> str:
        outer = "".join(LETTERS[d].upper() if d in self.inner_idxs else LETTERS[d] for d in self.order)
        inner = zip(self.inner_blks, self.inner_idxs, strict=True)
        return outer + "".join(f"{size}{LETTERS[dim]}" for size, dim in inner)


def block_of(dim: int, inner_blks: tuple[int, ...], inner_idxs: tuple[int, ...]) -> int:
    """The product of the inner blocks of one dimension."""
    return prod(size for size, of in zip(inner_blks, inner_idxs, strict=True) if of == dim)


def canonical(name: str) -> str:
    """The tag in letters from a on that a domain name stands for; a tag in letters stays what it is.

    >>> canonical("nChw16c"), canonical("gOIhw4i16o4i"), canonical("ldgoi"), canonical("acdb")
    ('aBcd16b', 'aBCde4c16b4c', 'abdec', 'acdb')
    """
    if name in MISNAMED:
        return MISNAMED[name]
    outer, blocks = split(name)
    used = sorted(outer.lower())
    if strange := [letter for _, letter in _BLOCK.findall(blocks) if letter not in used]:
        raise _no_tag(name, f"a block of {strange[0]}, which is none of its letters {outer}")
    if used == list(LETTERS[: len(used)]):
        return name
    return name.translate(_letters(dimensions(name)))


def dimensions(name: str) -> str:
    """The letters of a tag's dimensions in their logical order: those of its domain, or from a on.

    Raises:
        DescriptorError: the letters are neither.

    >>> dimensions("nhwc"), dimensions("gOIhw4i16o4i"), dimensions("aBcd16b")
    ('nchw', 'goihw', 'abcd')
    """
    outer, _ = split(name)
    used = sorted(outer.lower())
    plain = LETTERS[: len(used)]
    found = next((letters for letters in (plain, *DOMAINS) if sorted(letters) == used), None)
    if found is None:
        raise _no_tag(name, f"letters {''.join(used)} are neither {plain} nor those of a domain")
    return found


def split(name: str) -> tuple[str, str]:
    """Split a tag into its outer letters and its inner blocks."""
    match = _TAG.fullmatch(name)
    if not match:
        raise _no_tag(name, "letters in outer order, then blocks such as 16c")
    return match[1], match[2]


def _letters(domain: str) -> dict[int, int]:
    """The table that translates the letters of a domain to letters from a on, small and capital."""
    small = LETTERS[: len(domain)]
    return str.maketrans(domain + domain.upper(), small + small.upper())


def _check(name: str, outer: str, tag: FormatTag) -> None:
    blocked = {LETTERS.index(letter.lower()) for letter in outer if letter.isupper()}
    if blocked != set(tag.inner_idxs):
        raise _no_tag(name, "capital letters must be those that have blocks")
    if 0 in tag.inner_blks:
        raise _no_tag(name, "a block of 0; blocks are 1 and more")
    if max(tag.inner_idxs, default=0) >= tag.rank:
        raise _no_tag(name, "a block of a dimension that isn't there")


def _no_tag(name: str, reason: str) -> DescriptorError:
    return DescriptorError(
        "construct a memory descriptor using a format tag", f"{did_you_mean(name, COMMON)}{name!r} is no tag: {reason}"
    )
