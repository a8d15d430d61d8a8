"""The words of the matrix engine's packets: functions of packets, as assembly, and words read back.

No assembler knows them. A function sets the registers of its packet up and holds its words:

    hexconv_hmx_multiply(tile, tap, below, weights, last):        hexconv_hmx_store_after(tile, split):
        { r0 = or(r0,r1); r2 = add(r2,#1823) }                        { r0 = or(r0,r1); r1 = #1823 }
        { activation.ub(r0,r2):cm; weight.b(r3,r4) }                  { mxmem(r0,r1):after:cm.ub = acc }
        { jumpr r31 }                                                 { jumpr r31 }

One that stores the bytes of sums has eight packets: for each byte that which loads its bias table, and the store.

1823 is 0x700 | 31: bits 3 to 5 of a position count rows, and all 32 channels are taken. The words are those of public
tables (Qualcomm's `encode_ext.def`, an IDA processor module), which agree; no device executed them here. All of them
are there from v68 on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from hexconv.kernel.engine import CROUTON_BYTES, EXPONENTS, TABLE_BYTES

PREFIX = "hexconv_hmx_"
"""How the functions of packets begin."""
LOCK, UNLOCK = "hexconv_engine_lock", "hexconv_engine_unlock"
"""The functions between which a thread alone issues packets, where several threads do."""
RANGE = 0x700 | 31
ACTIVATIONS, WEIGHTS = 0x92004000, 0x9200E000
STORE, CLEAR, LOAD_TABLE = 0xA6E0C000, 0xA6E0C011, 0x9200C3FE
ROWS = {"": 0xEC, ":above": 0xEE, ":single": 0xF0, ":dilate": 0xE8}
COLUMNS = {"": 0xE0, ":single": 0xE6, ":drop": 0xE7, ":deep": 0xE8, ":after": 0xE9, ":dilate": 0xEB}
CHANNEL_MINOR, WRAPS, AFTER, RETAINS = 1, 2, 4, 8
"""Bits of words: croutons of pixels of 32 channels, NHWC8h8w32c; of a store, what it does."""
SOURCE, TARGET, FREE = 16, 8, 13
"""Where the numbers of the two registers stand, and a bit that Qualcomm's table leaves open in the word of a load.

QEMU has a load of its own in the place of that word; with the bit it has none.
"""
REGISTERS = 31 << SOURCE | 31 << TARGET


Packet = str | tuple[int, ...]
"""A packet: as assembly, or as the words of one of the engine's."""


@dataclass(frozen=True)
class Leaf:
    """A function of packets of the engine.

    Attributes:
        packets: its packets but for the return.
    """

    packets: tuple[Packet, ...]

    @property
    def words(self) -> tuple[int, ...]:
        """The words of the engine's packets."""
        return tuple(chain.from_iterable(packet for packet in self.packets if not isinstance(packet, str)))

    def assembly(self, traps: bool = False) -> str:
        """Return the body of the function; if it is to trap, with words for which QEMU has no packet of its own."""
        lines = [packet if isinstance(packet, str) else _in_words(packet, traps) for packet in self.packets]
        return "\n".join([*lines, "{ jumpr r31 }", ""])


def _in_words(packet: Sequence[int], traps: bool) -> str:
    is_free = [traps and word & ~(31 << SOURCE) == LOAD_TABLE for word in packet]
    return "\n".join(f".word {word | free << FREE:#010x}" for word, free in zip(packet, is_free, strict=True))


def multiply(rows: str = "", columns: str = "") -> tuple[int, int]:
    """Return the packet of some modes whose operands are r0, r2 and r3, r4."""
    first = ACTIVATIONS | 0 << SOURCE | 2 << TARGET | (ROWS[rows] + CHANNEL_MINOR)
    return first, WEIGHTS | 3 << SOURCE | 4 << TARGET | COLUMNS[columns]


def stores_of_bytes(is_after: bool, retains: bool) -> Leaf:
    """Return the function that stores bytes 0 to 3 of sums to planes from r0 on, by the bias tables from r2 on."""
    found: list[Packet] = [STORING]
    for byte in range(len(EXPONENTS)):
        is_last = byte + 1 == len(EXPONENTS)
        found += [(LOAD_TABLE | 2 << SOURCE,), (store(is_after, retains or not is_last, False),)]
        found += [] if is_last else [f"{{ r0 = add(r0,#{CROUTON_BYTES}); r2 = add(r2,#{TABLE_BYTES}) }}"]
    return Leaf(tuple(found))


def store(is_after: bool, retains: bool, saturates: bool) -> int:
    """Return the store to r0, r1."""
    kind = AFTER * is_after | RETAINS * retains | WRAPS * (not saturates)
    return STORE | 0 << SOURCE | 1 << TARGET | kind | CHANNEL_MINOR


MULTIPLYING = f"{{ r0 = or(r0,r1); r2 = add(r2,#{RANGE}) }}"
STORING = f"{{ r0 = or(r0,r1); r1 = #{RANGE} }}"
LEAVES = {
    "clear": Leaf(((CLEAR,),)),
    "bias": Leaf(((LOAD_TABLE,),)),
    "multiply": Leaf((MULTIPLYING, multiply())),
    "multiply_above_all": Leaf((MULTIPLYING, multiply(":above", ""))),
    "multiply_above_dilate": Leaf((MULTIPLYING, multiply(":above", ":dilate"))),
    "multiply_above_single": Leaf((MULTIPLYING, multiply(":above", ":single"))),
    "multiply_all_dilate": Leaf((MULTIPLYING, multiply("", ":dilate"))),
    "multiply_all_single": Leaf((MULTIPLYING, multiply("", ":single"))),
    "multiply_dilate_single": Leaf((MULTIPLYING, multiply(":dilate", ":single"))),
    "multiply_dilate_all": Leaf((MULTIPLYING, multiply(":dilate", ""))),
    "multiply_dilate_dilate": Leaf((MULTIPLYING, multiply(":dilate", ":dilate"))),
    "multiply_single_all": Leaf((MULTIPLYING, multiply(":single", ""))),
    "multiply_single_dilate": Leaf((MULTIPLYING, multiply(":single", ":dilate"))),
    "multiply_single_single": Leaf((MULTIPLYING, multiply(":single", ":single"))),
    "store_bytes_before": stores_of_bytes(False, False),
    "store_bytes_after": stores_of_bytes(True, False),
    "store_bytes_after_retain": stores_of_bytes(True, True),
    "store_before_sat": Leaf((STORING, (store(False, False, True),))),
    "store_after_sat": Leaf((STORING, (store(True, False, True),))),
    "store_after_retain_sat": Leaf((STORING, (store(True, True, True),))),
}
"""The functions that kernels call, by their names behind `PREFIX`."""

_FUNCTION = """__asm__(".section .text.{0},\\"ax\\",@progbits\\n.p2align 4\\n.globl {0}\\n.hidden {0}\\n"
        ".type {0},@function\\n{0}:\\n{1}\\n.size {0},.-{0}\\n");
"""


def in_c(name: str, body: str) -> str:
    """Return C that defines a function by the lines of its assembly."""
    return _FUNCTION.format(name, body.strip().replace("\n", "\\n"))


def trapping_functions() -> str:
    """Return C of the functions of all packets, by words that trap: those of a device but for one bit."""
    return "".join(in_c(PREFIX + name, leaf.assembly(traps=True)) for name, leaf in LEAVES.items())


def packets(words: Sequence[int]) -> Iterator[str]:
    """Read the engine's packets among words of code, as text; all other words are passed over.

    >>> list(packets([*multiply(), 0x7F00C000, store(True, True, False)]))
    ['{ activation.ub(r0,r2):cm; weight.b(r3,r4) }', '{ mxmem(r0,r1):after:retain:cm.ub = acc }']
    """
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else 0
        if text := _packet(word, following):
            yield f"{{ {text} }}"


def _packet(word: int, following: int) -> str:
    kind, last = word & 0xFF, following & 0xFF
    rows = {byte + CHANNEL_MINOR: mode for mode, byte in ROWS.items()}.get(kind)
    columns = {byte: mode for mode, byte in COLUMNS.items()}.get(last)
    is_pair = (_bare(word), _bare(following)) == (ACTIVATIONS | kind, WEIGHTS | last)
    if is_pair and rows is not None and columns is not None:
        return f"activation.ub({_operands(word)}){rows}:cm; weight.b({_operands(following)}){columns}"
    if word == CLEAR:
        return "mxclracc"
    if word & ~(31 << SOURCE) == LOAD_TABLE:
        return f"bias = mxmem2(r{word >> SOURCE & 31})"
    if _bare(word) & ~15 == STORE and word & CHANNEL_MINOR:
        side = ":after" if word & AFTER else ":before"
        kept, saturated = ":retain" if word & RETAINS else "", "" if word & WRAPS else ":sat"
        return f"mxmem({_operands(word)}){side}{kept}:cm{saturated}.ub = acc"
    return ""


def _bare(word: int) -> int:
    return word & ~REGISTERS


def _operands(word: int) -> str:
    return f"r{word >> SOURCE & 31},r{word >> TARGET & 31}"
