"""The part of a program that nothing counts: what the harness does for long while the kernel's counters stand still.

The harness puts it into a section of its own (`UNCOUNTED` in `counters.h`). To move a copy byte by byte, or to look at
poison, takes many times the blocks of the kernel itself, so QEMU isn't to say of each of them that it ran.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

SECTION = b"hexconv_uncounted\0"
LAST_ADDRESS = 0xFFFFFFFF
_HEADERS, _SIZES = 0x20, 0x2E
"""Places in a 32-bit ELF file of the section headers' offset, and of their size, their number and the names' header."""


def traced_addresses(program: Path) -> str:
    """All addresses but those of the section, as QEMU's `-dfilter` takes them: `0x0..0x20fff,0x21400..0xffffffff`."""
    first = 0
    ranges: list[str] = []
    for start, size in sorted(_uncounted(program.read_bytes())):
        ranges.append(f"{first:#x}..{start - 1:#x}")
        first = start + size
    return ",".join([*ranges, f"{first:#x}..{LAST_ADDRESS:#x}"])


def _uncounted(elf: bytes) -> Iterator[tuple[int, int]]:
    """Address and bytes of the section, if the program has it."""
    (headers,) = struct.unpack_from("<I", elf, _HEADERS)
    size, count, of_names = struct.unpack_from("<HHH", elf, _SIZES)
    sections = [struct.unpack_from("<6I", elf, headers + number * size) for number in range(count)]
    names = sections[of_names][4]
    for name, _kind, _flags, address, _offset, length in sections:
        if elf.startswith(SECTION, names + name) and length:
            yield address, length
