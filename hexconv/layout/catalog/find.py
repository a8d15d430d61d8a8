"""Find one layout of one of the four systems."""

from collections.abc import Sequence

from hexconv.errors import InputError
from hexconv.layout import mace
from hexconv.layout.catalog.found import Found
from hexconv.layout.catalog.okk import find_okk
from hexconv.layout.catalog.onednn import find_onednn
from hexconv.layout.catalog.placement import Placement
from hexconv.layout.packed import packed

SYSTEMS = ("packed", "onednn", "mace", "okk")

ITEMSIZE_BYTES = {
    **{"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "bool": 1},
    **{"int64": 8, "int32": 4, "int16": 2, "int8": 1},
    **{"uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1},
}


def find(system: str, name: str, shape: Sequence[int], dtype: str, placement: Placement) -> Found:
    """Find the layout of a system by its name.

    Raises:
        InputError: the system refuses the tensor, or it doesn't have one of the options.
        Unsupported: the system can't do what is asked.
    """
    makers = {"packed": _packed, "onednn": find_onednn, "mace": _mace, "okk": find_okk}
    if system not in makers:
        raise InputError.no_such("layout system", system, SYSTEMS)
    return makers[system](name, tuple(shape), dtype, placement)


def _packed(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    placement.check_only("packed", "logical")
    if dtype not in ITEMSIZE_BYTES:
        raise InputError.no_such("packed: dtype", dtype, ITEMSIZE_BYTES)
    layout = packed(name, shape, logical=placement.logical, itemsize_bytes=ITEMSIZE_BYTES[dtype])
    return Found("packed", name, shape, dtype, layout.bytes, layout)


def _mace(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    placement.check_only("mace")
    make = mace.cpu_buffer if name in mace.CPU_BUFFERS else mace.image
    layout = make(name, shape, dtype=dtype)
    return Found("mace", name, shape, dtype, layout.bytes, layout, {"purpose": mace.purpose(name)})
