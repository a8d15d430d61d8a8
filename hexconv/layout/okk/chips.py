"""Sophgo's chips as far as layouts depend on them, and what a chip refuses.

Measured on the vendor's functional simulators (`tpu_mlir` 1.6.1). OKKernel's document describes the BM1684
alone: its "128-byte" alignment is 64 bytes on the BM1684X and 16 on the BM1688.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hexconv.errors import InputError


@dataclass(frozen=True)
class Chip:
    """The local memory of one chip.

    Attributes:
        name: its name in lower case.
        npus: how many NPUs it has, each with local memory of its own.
        local_bytes: the size of one NPU's local memory.
        banks: how many banks of equal size one NPU's local memory has.
        eu_bytes: how many bytes its execution units take at once; aligned layouts align to this.
        max_channels: the most channels that a compute instruction takes; other sizes go to 65535.
    """

    name: str
    npus: int
    local_bytes: int
    banks: int
    eu_bytes: int
    max_channels: int

    def eu_elements(self, itemsize_bytes: int) -> int:
        """Elements that the execution units take at once."""
        return self.eu_bytes // itemsize_bytes

    def split(self, address: int) -> tuple[int, int]:
        """Split a local address A into NPU Q and offset R: A = Q * S + R, where S is `local_bytes`.

        Raises:
            InputError: the address lies past the last NPU.
        """
        if not 0 <= address < self.npus * self.local_bytes:
            raise InputError(f"{self.name}: local address", str(address), f"0 to {self.npus * self.local_bytes - 1}")
        return divmod(address, self.local_bytes)

    def join(self, start_npu: int, offset_bytes: int) -> int:
        """The local address of an offset on an NPU."""
        return start_npu * self.local_bytes + offset_bytes


MAX_NPUS = 256
"""The most NPUs that one may ask for; no chip has more than 64."""

CHIPS = {
    chip.name: chip
    for chip in (
        Chip("bm1684", npus=64, local_bytes=524288, banks=8, eu_bytes=128, max_channels=4095),
        Chip("bm1684x", npus=64, local_bytes=262144, banks=16, eu_bytes=64, max_channels=65535),
        Chip("bm1688", npus=32, local_bytes=131072, banks=16, eu_bytes=16, max_channels=65535),
    )
}


def chip(name: str, npus: int | None = None) -> Chip:
    """Find a chip by name, with another number of NPUs if one is given, such as the four of the document's pictures.

    Raises:
        InputError: there is no such chip, or the number of NPUs is not in range.
    """
    if name.lower() not in CHIPS:
        raise InputError.no_such("okk: chip", name, CHIPS)
    found = CHIPS[name.lower()]
    if npus is not None and not 1 <= npus <= MAX_NPUS:
        raise InputError(f"okk: NPUs of {found.name}", str(npus), f"1 to {MAX_NPUS}; the chip itself has {found.npus}")
    return replace(found, npus=npus or found.npus)


MAX_SIZE = 65535
"""The largest n, h or w that an instruction takes."""

COMPACT_BYTES = 4
"""The addresses of compact and strided tensors are multiples of this."""

ITEMSIZE_BYTES = {
    **{"float32": 4, "int32": 4, "uint32": 4},
    **{"float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2},
    **{"int8": 1, "uint8": 1},
}


def itemsize(dtype: str) -> int:
    """The bytes of an element.

    Raises:
        InputError: the chips don't have the type.
    """
    if dtype not in ITEMSIZE_BYTES:
        raise InputError.no_such("okk: dtype", dtype, ITEMSIZE_BYTES)
    return ITEMSIZE_BYTES[dtype]


def check_shape(chip: Chip, shape: Sequence[int]) -> tuple[int, int, int, int]:
    """Check that a tensor has four dimensions of sizes that the chip's instructions take."""
    if len(shape) != 4:
        raise InputError("okk: shape", str(list(shape)), "four sizes: n,c,h,w")
    n, c, h, w = shape
    for name, size, most in (
        ("n", n, MAX_SIZE),
        ("c", c, chip.max_channels),
        ("h", h, MAX_SIZE),
        ("w", w, MAX_SIZE),
    ):
        if not 1 <= size <= most:
            raise InputError(f"okk: {name} on {chip.name}", str(size), f"1 to {most}")
    return n, c, h, w


def check_start(chip: Chip, start_npu: int, offset_bytes: int, multiple_bytes: int) -> None:
    """Check that a start lies inside of local memory, aligned as the layout needs it."""
    if not 0 <= start_npu < chip.npus:
        raise InputError(f"okk: start NPU on {chip.name}", str(start_npu), f"0 to {chip.npus - 1}")
    if not 0 <= offset_bytes < chip.local_bytes:
        raise InputError(f"okk: offset on {chip.name}", str(offset_bytes), f"0 to {chip.local_bytes - 1} bytes")
    if offset_bytes % multiple_bytes:
        lower = offset_bytes - offset_bytes % multiple_bytes
        allowed = f"multiples of {multiple_bytes} bytes, such as {lower} or {lower + multiple_bytes}"
        raise InputError(f"okk: offset on {chip.name}", str(offset_bytes), allowed)


def check_end(chip: Chip, offset_bytes: int, used_bytes: int) -> None:
    """Check that a tensor's last byte still lies in the local memory of its NPU."""
    end = offset_bytes + used_bytes
    if end > chip.local_bytes:
        over = f"{end - chip.local_bytes} bytes past the end"
        where = f"okk: tensor of {used_bytes} bytes per NPU at offset {offset_bytes}"
        raise InputError(where, over, f"up to {chip.local_bytes} bytes of local memory per NPU on {chip.name}")


def check_strides(strides: Sequence[int]) -> tuple[int, int, int, int]:
    """Check that there are four strides, none of them negative."""
    if len(strides) != 4 or any(step < 0 for step in strides):
        raise InputError("okk: strides", str(list(strides)), "four strides from 0 on: n,c,h,w")
    n, c, h, w = strides
    return n, c, h, w


def check_dma_strides(strides: Sequence[int]) -> None:
    """Check what the DMA needs besides: rows must be dense, in local and in system memory."""
    if strides[3] != 1:
        raise InputError("okk: w stride of a DMA", str(strides[3]), "1")
