"""Sophgo's chips as far as layouts depend on them.

Measured on the vendor's functional simulators (`tpu_mlir` 1.6.1). OKKernel's document describes the BM1684
alone: its "128-byte" alignment is 64 bytes on the BM1684X and 16 on the BM1688.
"""

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
