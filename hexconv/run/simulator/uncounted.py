"""Keep long functions of the harness out of the trace: they run only while the kernel's counters are paused.

The harness puts them into a section of their own (`UNCOUNTED` in `counters.h`). They move copies byte by byte and check
poison, which runs many times more blocks than the kernel itself, so QEMU is told to leave this section out.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

SECTION = b"hexconv_uncounted\0"
LAST_ADDRESS = 0xFFFFFFFF
_HEADERS, _SIZES = 0x20, 0x2E
"""Where a 32-bit ELF header holds the section headers' offset, their size, their number, and the header of names."""


def traced_addresses(program: Path) -> str:
    """Return all addresses outside of the section, for QEMU's `-dfilter`: `0x0..0x20fff,0x21400..0xffffffff`."""
    first = 0
    ranges: list[str] = []
    for start, size in sorted(_uncounted(program.read_bytes())):
        ranges.append(f"{first:#x}..{start - 1:#x}")
        first = start + size
    return ",".join([*ranges, f"{first:#x}..{LAST_ADDRESS:#x}"])


def _uncounted(elf: bytes) -> Iterator[tuple[int, int]]:
    """Yield the address and the size of every such section; nothing where the program has none."""
    (headers,) = struct.unpack_from("<I", elf, _HEADERS)
    size, count, of_names = struct.unpack_from("<HHH", elf, _SIZES)
    sections = [struct.unpack_from("<6I", elf, headers + number * size) for number in range(count)]
    names = sections[of_names][4]
    for name, _kind, _flags, address, _offset, length in sections:
        if elf.startswith(SECTION, names + name) and length:
            yield address, length
