"""Every layout by the words of the command line: a system, a name, a shape, a type and where it is placed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hexconv.errors import InputError, Unsupported
from hexconv.layout import mace, okk
from hexconv.layout.layout import Layout
from hexconv.layout.onednn import MemoryDesc
from hexconv.layout.packed import packed

SYSTEMS = ("packed", "onednn", "mace", "okk")

OKK_NAMES = (*okk.NAMED, "continuous", "strided", "system-strided", "matrix", *okk.MODES)

ITEMSIZE_BYTES = {
    **{"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "bool": 1},
    **{"int64": 8, "int32": 4, "int16": 2, "int8": 1},
    **{"uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1},
}


@dataclass(frozen=True)
class Placement:
    """Where and how a tensor is placed, as far as a system asks; None where nothing was said.

    Attributes:
        chip: okk: `bm1684` (the default), `bm1684x`, `bm1688`.
        start_npu: okk: NPU of channel 0.
        offset_bytes: okk: offset in each NPU's memory, or in system memory.
        strides: okk `strided`, `system-strided` and storage modes, onednn `strided`; in elements or units.
        columns: okk `matrix`: columns per channel.
        logical: packed: order of the axes of the shape.
    """

    chip: str | None = None
    start_npu: int | None = None
    offset_bytes: int | None = None
    strides: tuple[int, ...] | None = None
    columns: int | None = None
    logical: str | None = None


@dataclass(frozen=True)
class Found:
    """A layout of the catalog.

    Attributes:
        system: one of `SYSTEMS`.
        name: as it was asked for.
        shape: as it was asked for.
        dtype: as it was asked for.
        bytes: to allocate; on okk, on all NPUs together.
        layout: None where nothing has a place: oneDNN's `any` and zero descriptors.
        note: what one should know before one relies on it; mostly empty.
    """

    system: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    layout: Layout | None
    note: str = ""

    @property
    def bytes_per_npu(self) -> int | None:
        """Bytes of one NPU's local memory, for tensors in local memory."""
        local = self.layout is not None and self.layout.outputs[0].name == "npu"
        return self.bytes // self.layout.outputs[0].extent if local and self.layout else None

    def address(self, index: Sequence[int]) -> dict[str, Any]:
        """Address of an element, in the system's own words.

        Raises:
            InputError: an index outside of the shape, or a descriptor without places.
        """
        layout = self._placed()
        if self.system == "packed":
            where = list(layout.address(index).values())
            return {"index": where, "offset_elements": layout.position(index)}
        if self.system == "mace" and self.name not in mace.CPU_BUFFERS:
            place = layout.address(mace.buffer_index(self.name, index))
            return {name: place[name] for name in ("x", "y", "lane")}
        return layout.address(index)

    def _placed(self) -> Layout:
        if self.layout is None:
            allowed = "a tag or strides: without a format no element has a place"
            raise InputError(f"{self.system} {self.name}: index", "one", allowed)
        return self.layout


def find(system: str, name: str, shape: Sequence[int], dtype: str, placement: Placement) -> Found:
    """The layout of that name.

    Raises:
        InputError: what the system refuses, and options that it doesn't have.
        Unsupported: what it can't do.
    """
    makers = {"packed": _packed, "onednn": _onednn, "mace": _mace, "okk": _okk}
    if system not in makers:
        raise InputError.no_such("layout system", system, SYSTEMS)
    return makers[system](name, tuple(shape), dtype, placement)


def _packed(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    _only(placement, "packed", "logical")
    if dtype not in ITEMSIZE_BYTES:
        raise InputError.no_such("packed: dtype", dtype, ITEMSIZE_BYTES)
    layout = packed(name, shape, logical=placement.logical, itemsize_bytes=ITEMSIZE_BYTES[dtype])
    return Found("packed", name, shape, dtype, layout.bytes, layout)


def _onednn(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    strided = name == "strided"
    _only(placement, f"onednn {name}", *(["strides"] if strided else []))
    desc = MemoryDesc.by_strides(shape, dtype, placement.strides) if strided else MemoryDesc.by_tag(shape, dtype, name)
    layout = replace(desc.layout(), name=name) if desc.format_kind == "blocked" else None
    return Found("onednn", name, shape, dtype, desc.get_size(), layout)


def _mace(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    _only(placement, "mace")
    if name in mace.CPU_BUFFERS:
        layout = mace.cpu_buffer(name, shape, dtype=dtype)
    else:
        layout = mace.image(name, shape, dtype=dtype)
    return Found("mace", name, shape, dtype, layout.bytes, layout)


def _okk(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    layout = _okk_layout(name.lower(), shape, dtype, placement)
    return Found("okk", name, shape, dtype, layout.bytes, layout, _note(layout, dtype, placement))


def _note(layout: Layout, dtype: str, placement: Placement) -> str:
    """The one place where a chip's own DMA doesn't write the layout of the document."""
    if layout.name != "matrix" or placement.columns is None:
        return ""
    try:
        chip, columns = okk.chip(placement.chip or "bm1684"), layout.shape[1]
        okk.check_matrix_dma(chip, columns, placement.columns, dtype, placement.start_npu or 0)
    except Unsupported as error:
        return str(error)
    return ""


def _okk_layout(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Layout:
    chip, strides = okk.chip(placement.chip or "bm1684"), placement.strides or ()
    if name in ("strided", "system-strided") and not strides:
        raise InputError(f"okk {name}: --strides", "none", "four strides: n,c,h,w")
    _only(placement, f"okk {name}", *_okk_options(name))
    start_npu, offset_bytes = placement.start_npu or 0, placement.offset_bytes or 0
    if name in ("continuous", "system-strided"):
        return okk.system(shape, dtype, offset_bytes=offset_bytes, strides=strides)
    place = _Start(start_npu, offset_bytes)
    if name == "matrix":
        return _matrix(chip, shape, dtype, placement.columns, place)
    make = okk.joined if name in okk.MODES else okk.local
    return make(chip, name, shape, dtype, strides=strides, **place._asdict())


class _Start(NamedTuple):
    """Where a tensor in local memory starts."""

    start_npu: int
    offset_bytes: int


def _okk_options(name: str) -> tuple[str, ...]:
    """Options that a layout of OKKernel has a use for."""
    if name not in OKK_NAMES:
        raise InputError.no_such("okk layout", name, OKK_NAMES)
    system = name in ("continuous", "system-strided")
    strided = ("strides",) if name in ("strided", "system-strided", *okk.MODES) else ()
    columns = ("columns",) if name == "matrix" else ()
    return ("chip", "offset_bytes", *(() if system else ("start_npu",)), *strided, *columns)


def _matrix(chip: okk.Chip, shape: tuple[int, ...], dtype: str, columns: int | None, place: _Start) -> Layout:
    if len(shape) != 2:
        raise InputError("okk matrix: shape", str(list(shape)), "two sizes: rows,columns")
    if columns is None:
        raise InputError("okk matrix: --columns", "none", f"columns per channel, 1 to {shape[1]}")
    return okk.matrix(chip, *shape, columns, dtype, **place._asdict())


def _only(placement: Placement, what: str, *allowed: str) -> None:
    """Refuse options that a layout has no use for: ignoring one would answer another question."""
    for option, value in vars(placement).items():
        if value is not None and option not in allowed:
            words = ", ".join(_flag(name) for name in allowed)
            wanted = words or "none but --shape, --dtype and --at"
            raise InputError(f"{what}: {_flag(option)}", str(value), wanted)


def _flag(option: str) -> str:
    return f"--{option.removesuffix('_bytes').replace('_', '-')}"
