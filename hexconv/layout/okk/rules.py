"""Check what the chip refuses: ranges, alignment and the end of local memory."""

from collections.abc import Sequence

from hexconv.errors import InputError
from hexconv.layout.okk.chips import Chip

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
