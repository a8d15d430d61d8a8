"""Find OKKernel's layouts by name, with a note where a chip differs from the document."""

from dataclasses import replace
from typing import Any, NamedTuple

from hexconv.errors import InputError, Unsupported
from hexconv.layout import okk
from hexconv.layout.catalog.found import Found
from hexconv.layout.catalog.placement import Beside, Placement
from hexconv.layout.layout import Layout

SYSTEM_NAMES = ("continuous", "system-strided")
OKK_NAMES = (*okk.NAMED, "continuous", "strided", "system-strided", "matrix", *okk.MODES)


class _Start(NamedTuple):
    """The place where a tensor in local memory starts."""

    start_npu: int
    offset_bytes: int


def find_okk(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    """Find the layout of a tensor in local or system memory.

    Raises:
        InputError: what the chip refuses, options that the layout doesn't have, and a tensor beside it that
            would lie in its room.
    """
    kind = name.lower()
    placement.check_only(f"okk {kind}", *options_of(kind))
    chip = okk.chip(placement.chip or "bm1684", placement.npus)
    placement = _started(chip, placement)
    own = letters_of(kind)
    order = _order(kind, own, placement.logical or own)
    native = tuple(shape[order.index(letter)] for letter in own) if len(shape) == len(order) else shape
    layout = _layout(chip, kind, native, dtype, placement)
    if placement.beside:
        okk.check_apart(layout, _beside(chip, placement.beside))
    facts, remarks = _facts(chip, layout, dtype, placement), _remarks(chip, kind, layout, dtype, placement)
    return Found("okk", name, shape, dtype, layout.bytes, layout.in_order(order), facts, remarks)


def options_of(name: str) -> tuple[str, ...]:
    """The names of the options that a layout of OKKernel uses."""
    if name.lower() not in OKK_NAMES:
        raise InputError.no_such("okk layout", name, OKK_NAMES)
    local = () if name in SYSTEM_NAMES else ("npus", "address", "start_npu", "beside")
    strided = ("strides",) if name in ("strided", "system-strided", *okk.MODES) else ()
    columns = ("columns",) if name == "matrix" else ()
    logical = ("logical",) if letters_of(name) == "IOHW" else ()
    return ("chip", "offset_bytes", *local, *strided, *columns, *logical)


def letters_of(name: str) -> str:
    """The letters of a layout's axes in the order of its shape: R rows and M columns of a matrix."""
    if name.lower() == "matrix":
        return "RM"
    return okk.MODES[name.lower()].axes if name.lower() in okk.MODES else "NCHW"


def _order(name: str, own: str, order: str) -> str:
    """Check the order of a shape's axes."""
    if sorted(order.upper()) != sorted(own):
        raise InputError(f"okk {name}: --logical", order, f"each of {own} once")
    return order.upper()


def _started(chip: okk.Chip, placement: Placement) -> Placement:
    """Split an address A = Q * S + R into the NPU and the offset that it stands for."""
    if placement.address is None:
        return placement
    if placement.start_npu is not None or placement.offset_bytes is not None:
        what = "okk: --address beside --start-npu or --offset, which an address has in it"
        raise InputError.because(what, "leave the others out")
    start_npu, offset_bytes = chip.split(placement.address)
    return replace(placement, start_npu=start_npu, offset_bytes=offset_bytes)


def _layout(chip: okk.Chip, name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Layout:
    strides = placement.strides or ()
    if name in ("strided", "system-strided") and not strides:
        raise InputError.because(f"okk {name}: no --strides given", "give four: --strides n,c,h,w")
    place = _start(placement)
    if name in SYSTEM_NAMES:
        return okk.system(shape, dtype, offset_bytes=place.offset_bytes, strides=strides)
    if name == "matrix":
        return _matrix(chip, shape, dtype, placement)
    make = okk.joined if name in okk.MODES else okk.local
    return make(chip, name, shape, dtype, strides=strides, **place._asdict())


def _matrix(chip: okk.Chip, shape: tuple[int, ...], dtype: str, placement: Placement) -> Layout:
    if len(shape) != 2:
        raise InputError("okk matrix: shape", str(list(shape)), "two sizes: rows,columns")
    if placement.columns is None:
        raise InputError.because("okk matrix: no --columns given", f"say how many a channel has, 1 to {shape[1]}")
    return okk.matrix(chip, *shape, placement.columns, dtype, **_start(placement)._asdict())


def _beside(chip: okk.Chip, other: Beside) -> Layout:
    """Find the layout of another tensor in the same local memory."""
    if other.name not in (*okk.NAMED, *okk.MODES):
        raise InputError.no_such("okk: --beside", other.name, (*okk.NAMED, *okk.MODES))
    make = okk.joined if other.name in okk.MODES else okk.local
    place = _Start(other.start_npu, other.offset_bytes)
    return make(chip, other.name, other.shape, other.dtype, **place._asdict())


def _facts(chip: okk.Chip, layout: Layout, dtype: str, placement: Placement) -> dict[str, Any]:
    if layout.outputs[0].name != "npu":
        return {"strides": list(okk.strides_of(layout))}
    start_npu, offset_bytes = _start(placement)
    seen = _view(layout, dtype, placement)
    channels = seen.shape[1]
    matrix = layout.name == "matrix"
    strides = okk.aligned_strides(chip, start_npu, seen.shape, layout.itemsize_bytes) if matrix else None
    facts: dict[str, Any] = {
        "npus": chip.npus,
        "address": chip.join(start_npu, offset_bytes),
        "start_npu": start_npu,
        "offset": offset_bytes,
        "local_size": chip.local_bytes,
        "strides": list(strides or okk.strides_of(layout)),
        "channels_per_npu": okk.channels_per_npu(chip, start_npu, channels),
        "empty_blocks": okk.empty_blocks(chip, start_npu, channels),
    }
    if matrix or layout.name in okk.MODES:
        facts["view"] = {"shape": list(seen.shape), "dtype": seen.dtype}
    if matrix:
        best = okk.best_width(chip, layout.shape[1], dtype, start_npu)
        facts["advised_columns"] = best.columns_per_channel
    return facts


def _view(layout: Layout, dtype: str, placement: Placement) -> okk.View:
    """The view of the tensor with four sizes; strides are counted in its elements."""
    if layout.name in okk.MODES:
        return okk.unit_view(layout.name, layout.shape, dtype)
    if placement.columns is None:
        n, c, h, w = layout.shape
        return okk.View((n, c, h, w), dtype)
    rows, columns = layout.shape
    return okk.View((rows, -(-columns // placement.columns), 1, placement.columns), dtype)


def _remarks(chip: okk.Chip, name: str, layout: Layout, dtype: str, placement: Placement) -> tuple[str, ...]:
    """Which axis of filters comes first; a warning where the chip's own DMA doesn't write the document's layout."""
    if letters_of(name) == "IOHW" and not placement.logical:
        return (f"the sizes of {name} are I,O,H,W, input channels first; --logical OIHW takes them as O,I,H,W",)
    if name != "matrix":
        return ()
    try:
        okk.check_matrix_dma(chip, layout.shape[1], placement.columns or 1, dtype, placement.start_npu or 0)
    except Unsupported as error:
        return (str(error),)
    return ()


def _start(placement: Placement) -> _Start:
    return _Start(placement.start_npu or 0, placement.offset_bytes or 0)
