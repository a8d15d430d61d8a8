"""The words of the matrix engine's packets: functions of a packet each, as assembly, and words read back.

No assembler knows them. A function sets the registers of its packet up and holds its words:

    hexconv_hmx_multiply(tile, tap, below, weights, last):        hexconv_hmx_store_after(tile, split):
        { r0 = or(r0,r1); r2 = add(r2,#1823) }                        { r0 = or(r0,r1); r1 = #1823 }
        { activation.ub(r0,r2):cm; weight.b(r3,r4) }                  { mxmem(r0,r1):after:cm.ub = acc }
        { jumpr r31 }                                                 { jumpr r31 }

1823 is 0x700 | 31: bits 3 to 5 of a position count rows, and all 32 channels are taken. The words are those of public
tables (Qualcomm's `encode_ext.def`, an IDA processor module), which agree; no device executed them here. All of them
are there from v68 on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

PREFIX = "hexconv_hmx_"
"""How the functions of packets begin."""
RANGE = 0x700 | 31
ACTIVATIONS, WEIGHTS = 0x92004000, 0x9200E000
STORE, CLEAR, LOAD_TABLE = 0xA6E0C000, 0xA6E0C011, 0x9200C3FE
ROWS = {"": 0xEC, ":above": 0xEE, ":single": 0xF0, ":dilate": 0xE8}
COLUMNS = {"": 0xE0, ":single": 0xE6, ":drop": 0xE7, ":deep": 0xE8, ":after": 0xE9, ":dilate": 0xEB}
CHANNEL_MINOR, WRAPS, AFTER, RETAINS = 1, 2, 4, 8
"""Bits of words: croutons of pixels of 32 channels, NHWC8h8w32c; of a store, what it does."""
SOURCE, TARGET = 16, 8
"""Where the numbers of the two registers stand."""
REGISTERS = 31 << SOURCE | 31 << TARGET


@dataclass(frozen=True)
class Leaf:
    """A function of one packet.

    Attributes:
        registers: the packet that makes the registers of arguments; empty where they are arguments.
        words: the words of the engine's packet.
    """

    registers: str
    words: tuple[int, ...]

    def assembly(self) -> str:
        """Return the body of the function."""
        words = "\n".join(f".word {word:#010x}" for word in self.words)
        return f"{self.registers}\n{words}\n{{ jumpr r31 }}\n".lstrip()


def multiply(rows: str = "", columns: str = "") -> tuple[int, int]:
    """Return the packet of some modes whose operands are r0, r2 and r3, r4."""
    first = ACTIVATIONS | 0 << SOURCE | 2 << TARGET | (ROWS[rows] + CHANNEL_MINOR)
    return first, WEIGHTS | 3 << SOURCE | 4 << TARGET | COLUMNS[columns]


def store(is_after: bool, retains: bool, saturates: bool) -> int:
    """Return the store to r0, r1."""
    kind = AFTER * is_after | RETAINS * retains | WRAPS * (not saturates)
    return STORE | 0 << SOURCE | 1 << TARGET | kind | CHANNEL_MINOR


MULTIPLYING = f"{{ r0 = or(r0,r1); r2 = add(r2,#{RANGE}) }}"
STORING = f"{{ r0 = or(r0,r1); r1 = #{RANGE} }}"
LEAVES = {
    "clear": Leaf("", (CLEAR,)),
    "bias": Leaf("", (LOAD_TABLE,)),
    "multiply": Leaf(MULTIPLYING, multiply()),
    "multiply_above_all": Leaf(MULTIPLYING, multiply(":above", "")),
    "multiply_above_dilate": Leaf(MULTIPLYING, multiply(":above", ":dilate")),
    "multiply_above_single": Leaf(MULTIPLYING, multiply(":above", ":single")),
    "multiply_all_dilate": Leaf(MULTIPLYING, multiply("", ":dilate")),
    "multiply_all_single": Leaf(MULTIPLYING, multiply("", ":single")),
    "multiply_dilate_single": Leaf(MULTIPLYING, multiply(":dilate", ":single")),
    "multiply_dilate_all": Leaf(MULTIPLYING, multiply(":dilate", "")),
    "multiply_dilate_dilate": Leaf(MULTIPLYING, multiply(":dilate", ":dilate")),
    "multiply_single_all": Leaf(MULTIPLYING, multiply(":single", "")),
    "multiply_single_dilate": Leaf(MULTIPLYING, multiply(":single", ":dilate")),
    "multiply_single_single": Leaf(MULTIPLYING, multiply(":single", ":single")),
    "store_before": Leaf(STORING, (store(False, False, False),)),
    "store_before_retain": Leaf(STORING, (store(False, True, False),)),
    "store_after": Leaf(STORING, (store(True, False, False),)),
    "store_after_retain": Leaf(STORING, (store(True, True, False),)),
    "store_before_sat": Leaf(STORING, (store(False, False, True),)),
    "store_after_sat": Leaf(STORING, (store(True, False, True),)),
    "store_after_retain_sat": Leaf(STORING, (store(True, True, True),)),
}
"""The functions that kernels call, by their names behind `PREFIX`."""

_TRAPS = {LOAD_TABLE: LOAD_TABLE | 1 << 13}
"""QEMU has a load of its own in the place of a word; with a bit that Qualcomm's table leaves open it has none."""
_FUNCTION = """__asm__(".section .text.{0},\\"ax\\",@progbits\\n.p2align 4\\n.globl {0}\\n.hidden {0}\\n"
        ".type {0},@function\\n{0}:\\n{1}\\n.size {0},.-{0}\\n");
"""


def in_c(name: str, body: str) -> str:
    """Return C that defines a function by the lines of its assembly."""
    return _FUNCTION.format(name, body.strip().replace("\n", "\\n"))


def trapping_functions() -> str:
    """Return C of the functions of all packets, by words that trap: those of a device but for one bit."""
    leaves = {
        name: replace(leaf, words=tuple(_TRAPS.get(word, word) for word in leaf.words)) for name, leaf in LEAVES.items()
    }
    return "".join(in_c(PREFIX + name, leaf.assembly()) for name, leaf in leaves.items())


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
