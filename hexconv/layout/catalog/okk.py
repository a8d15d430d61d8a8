"""Find OKKernel's layouts by name, with a note where a chip differs from the document."""

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
    placement.check_only(f"okk {kind}", *_options(kind))
    chip = okk.chip(placement.chip or "bm1684", placement.npus)
    layout = _layout(chip, kind, shape, dtype, placement)
    if placement.beside:
        okk.check_apart(layout, _beside(chip, placement.beside))
    note = _note(chip, layout, dtype, placement) if kind == "matrix" else ""
    return Found("okk", name, shape, dtype, layout.bytes, layout, _facts(chip, layout, dtype, placement), note)


def _options(name: str) -> tuple[str, ...]:
    """The names of the options that a layout of OKKernel uses."""
    if name not in OKK_NAMES:
        raise InputError.no_such("okk layout", name, OKK_NAMES)
    local = () if name in SYSTEM_NAMES else ("npus", "start_npu", "beside")
    strided = ("strides",) if name in ("strided", "system-strided", *okk.MODES) else ()
    columns = ("columns",) if name == "matrix" else ()
    return ("chip", "offset_bytes", *local, *strided, *columns)


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


def _note(chip: okk.Chip, layout: Layout, dtype: str, placement: Placement) -> str:
    """A warning where the chip's own DMA doesn't write the layout of the document; mostly empty."""
    try:
        okk.check_matrix_dma(chip, layout.shape[1], placement.columns or 1, dtype, placement.start_npu or 0)
    except Unsupported as error:
        return str(error)
    return ""


def _start(placement: Placement) -> _Start:
    return _Start(placement.start_npu or 0, placement.offset_bytes or 0)
