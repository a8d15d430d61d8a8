"""Find one layout of one of the four systems."""

from collections.abc import Sequence
from typing import Any

from hexconv.errors import InputError
from hexconv.layout import mace
from hexconv.layout.catalog.found import Found
from hexconv.layout.catalog.okk import find_okk
from hexconv.layout.catalog.okk import letters_of as okk_letters
from hexconv.layout.catalog.okk import options_of as okk_options
from hexconv.layout.catalog.onednn import find_onednn
from hexconv.layout.catalog.onednn import letters_of as onednn_letters
from hexconv.layout.catalog.onednn import options_of as onednn_options
from hexconv.layout.catalog.placement import Placement
from hexconv.layout.packed import PackedTag, packed

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


def options_of(system: str, name: str) -> tuple[str, ...]:
    """The names of the options of `Placement` that a layout uses.

    Raises:
        InputError: there is no such system, or no such layout of OKKernel.
    """
    if system == "okk":
        return okk_options(name)
    return onednn_options(name) if system == "onednn" else {"packed": ("logical",)}.get(system, ())


def letters_of(system: str, name: str, rank: int) -> str:
    """The letters of a layout's axes in the order of its shape, capitals.

    >>> letters_of("mace", "cpu-in-out", 4), letters_of("onednn", "nhwc", 4), letters_of("okk", "2ic", 4)
    ('NCHW', 'NCHW', 'IOHW')
    """
    if system == "okk":
        return okk_letters(name)
    if system == "onednn":
        return onednn_letters(name, rank).upper()
    if system == "mace":
        return mace.CPU_BUFFERS.get(name) or mace.kind(name).axes
    return PackedTag.parse(name).letters


def _packed(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    placement.check_only("packed", "logical")
    if dtype not in ITEMSIZE_BYTES:
        raise InputError.no_such("packed: dtype", dtype, ITEMSIZE_BYTES)
    layout = packed(name, shape, logical=placement.logical, itemsize_bytes=ITEMSIZE_BYTES[dtype])
    return Found("packed", name, shape, dtype, layout.bytes, layout, {"packed_shape": list(layout.physical_shape)})


def _mace(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    placement.check_only("mace")
    facts: dict[str, Any] = {"purpose": mace.purpose(name)}
    if name in mace.CPU_BUFFERS:
        layout = mace.cpu_buffer(name, shape, dtype=dtype)
    else:
        layout = mace.image(name, shape, dtype=dtype)
        height, width, _ = layout.physical_shape
        facts |= {"image_size": {"width": width, "height": height}}
    return Found("mace", name, shape, dtype, layout.bytes, layout, facts)
