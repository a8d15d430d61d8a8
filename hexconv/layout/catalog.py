"""Find every layout by the words of the command line: system, name, shape, type and placement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from hexconv.errors import InputError, Unsupported
from hexconv.layout import mace, okk
from hexconv.layout.mapping import Layout
from hexconv.layout.onednn import GATES, MemoryDesc, gate_axis
from hexconv.layout.onednn.tags import LETTERS, dimensions
from hexconv.layout.packed import PackedTag, packed


@dataclass(frozen=True)
class Found:
    """A layout of the catalog.

    Attributes:
        system: its system, one of `SYSTEMS`.
        name: its name, as it was asked for.
        shape: its shape, as it was asked for.
        dtype: its dtype, as it was asked for.
        bytes: the bytes to allocate; on okk, on all NPUs together.
        layout: the layout; None where no element has a place: oneDNN's `any` and zero descriptors.
        facts: other facts of the system, by their names in JSON: strides, purpose, view and the like.
        remarks: sentences to read before relying on the layout.
    """

    system: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    layout: Layout | None
    facts: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def bytes_per_npu(self) -> int | None:
        """The bytes that a tensor in local memory takes on one NPU; None for other tensors."""
        local = self.layout is not None and self.layout.outputs[0].name == "npu"
        return self.bytes // self.layout.outputs[0].extent if local and self.layout else None

    def address(self, index: Sequence[int]) -> dict[str, Any]:
        """The address of an element, in the system's own words.

        Raises:
            InputError: the index lies outside of the shape, or the descriptor gives elements no place.
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
            what = f"{self.system} {self.name} gives no element a place, so that no index has an address"
            raise InputError.because(what, "name a tag or strides")
        return self.layout


class View(NamedTuple):
    """A view of a oneDNN descriptor: `reshape 6,20`, `permute_axes 1,0`, `submemory 1,2 0,1`."""

    name: str
    numbers: tuple[tuple[int, ...], ...]


class OtherTensor(NamedTuple):
    """Another tensor in local memory, which must not lie in the room of the one that is asked for."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    start_npu: int = 0
    offset_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where and how a tensor is placed, as far as a system asks; None where nothing was said.

    Attributes:
        chip: okk: `bm1684` (the default), `bm1684x`, `bm1688`.
        npus: okk: NPUs, where the chip's own number isn't wanted.
        address: okk: local address of the tensor, A = Q * S + R: NPU Q, offset R, S bytes of memory an NPU.
        start_npu: okk: NPU of channel 0.
        offset_bytes: okk: offset in each NPU's memory, or in system memory.
        strides: okk `strided`, `system-strided` and storage modes, onednn `strided`; in elements or units.
        columns: okk `matrix`: columns per channel.
        beside: okk: another tensor in local memory.
        logical: packed, okk `2ic`: order of the axes of the shape.
        use: onednn `any`: `data`, `weights` or `grouped-weights`; a rule chooses the format.
        cell: onednn: `lstm` or `gru`, whose gates an axis counts.
        views: onednn: views of the descriptor, one after the other.
        allow_empty: onednn: True if what is refused becomes a zero descriptor.
    """

    chip: str | None = None
    npus: int | None = None
    address: int | None = None
    start_npu: int | None = None
    offset_bytes: int | None = None
    strides: tuple[int, ...] | None = None
    columns: int | None = None
    beside: OtherTensor | None = None
    logical: str | None = None
    use: str | None = None
    cell: str | None = None
    views: tuple[View, ...] | None = None
    allow_empty: bool | None = None

    def check_only(self, what: str, *allowed: str) -> None:
        """Refuse options that a layout has no use for: ignoring one would answer another question.

        Raises:
            InputError: an option is set that isn't among `allowed`.
        """
        for option, value in vars(self).items():
            if value is not None and option not in allowed:
                words = ", ".join(_flag(name) for name in allowed)
                wanted = words or "--shape, --dtype and --at alone"
                raise InputError.because(f"{what} takes no {_flag(option)}", f"it takes {wanted}")


def _flag(option: str) -> str:
    names = {"offset_bytes": "--offset", "views": "--view"}
    return names.get(option, f"--{option.replace('_', '-')}")


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
    placement.check_only(f"okk {kind}", *okk_options(kind))
    chip = okk.chip(placement.chip or "bm1684", placement.npus)
    placement = _started(chip, placement)
    own = okk_letters(kind)
    order = _order(kind, own, placement.logical or own)
    native = tuple(shape[order.index(letter)] for letter in own) if len(shape) == len(order) else shape
    layout = _layout(chip, kind, native, dtype, placement)
    if placement.beside:
        okk.check_apart(layout, _beside(chip, placement.beside))
    facts, remarks = _okk_facts(chip, layout, dtype, placement), _remarks(chip, kind, layout, dtype, placement)
    return Found("okk", name, shape, dtype, layout.bytes, layout.in_order(order), facts, remarks)


def okk_options(name: str) -> tuple[str, ...]:
    """The names of the options that a layout of OKKernel uses."""
    if name.lower() not in OKK_NAMES:
        raise InputError.no_such("okk layout", name, OKK_NAMES)
    local = () if name in SYSTEM_NAMES else ("npus", "address", "start_npu", "beside")
    strided = ("strides",) if name in ("strided", "system-strided", *okk.MODES) else ()
    columns = ("columns",) if name == "matrix" else ()
    logical = ("logical",) if okk_letters(name) == "IOHW" else ()
    return ("chip", "offset_bytes", *local, *strided, *columns, *logical)


def okk_letters(name: str) -> str:
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


def _beside(chip: okk.Chip, other: OtherTensor) -> Layout:
    """Find the layout of another tensor in the same local memory."""
    if other.name not in (*okk.NAMED, *okk.MODES):
        raise InputError.no_such("okk: --beside", other.name, (*okk.NAMED, *okk.MODES))
    make = okk.joined if other.name in okk.MODES else okk.local
    place = _Start(other.start_npu, other.offset_bytes)
    return make(chip, other.name, other.shape, other.dtype, **place._asdict())


def _okk_facts(chip: okk.Chip, layout: Layout, dtype: str, placement: Placement) -> dict[str, Any]:
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
    if okk_letters(name) == "IOHW" and not placement.logical:
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


VIEWS = {"reshape": 1, "permute_axes": 1, "submemory": 2}
"""How many lists of numbers each view takes."""

NOT_TAGS = ("any", "undef", "strided")


CONV_WEIGHTS = ("oiw", "oihw", "oidhw", "goiw", "goihw", "goidhw")
"""Dimensions of the weights of a convolution, which may not be 0."""


def find_onednn(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    """Find the descriptor of a tag, of `strided` or of `any`, and apply its views.

    Raises:
        InputError: the descriptor doesn't have one of the options, a view doesn't exist, or the weights of a
            convolution are empty.
        DescriptorError: the library refuses the descriptor.
    """
    placement.check_only(f"onednn {name}", *onednn_options(name))
    desc = _described(name, shape, dtype, placement)
    if desc.format_kind != "blocked":
        return Found("onednn", name, desc.dims or shape, dtype, desc.get_size(), None, _facts(desc, placement))
    _check_weights(name, shape)
    names = _axis_names(name, len(shape), placement.views or ())
    layout = replace(desc.layout(), name=name).renamed(names)
    size, remarks = desc.get_size(), ()
    if desc.offset0 and 0 not in desc.dims:
        size, remarks = layout.bytes, (f"{layout.bytes} bytes from offset0 on; of such a region get_size() says 0",)
    return Found("onednn", name, desc.dims, dtype, size, layout, _facts(desc, placement), remarks=remarks)


def onednn_options(name: str) -> tuple[str, ...]:
    """The names of the options that a descriptor uses."""
    own = {"strided": ("strides",), "any": ("use",)}.get(name, ())
    return (*own, "cell", "views", "allow_empty")


def onednn_letters(name: str, rank: int) -> str:
    """The letters of the dimensions that a name counts, in logical order: `nchw` for `nhwc`."""
    return LETTERS[:rank] if name in NOT_TAGS else dimensions(name)


def _check_weights(name: str, shape: tuple[int, ...]) -> None:
    """Refuse the weights of a convolution without elements: what it would compute is not defined."""
    letters = "" if name in NOT_TAGS else dimensions(name)
    if letters in CONV_WEIGHTS and 0 in shape and len(shape) == len(letters):
        empty = " and ".join(letter for letter, size in zip(letters, shape, strict=True) if not size)
        allowed = "sizes from 1 on: oneDNN takes a zero in the weights of a convolution for an error"
        raise InputError(f"onednn {name}: {empty}", "0", f"{allowed}; a tag of letters from a on has no such meaning")


def _axis_names(name: str, rank: int, views: Sequence[View]) -> list[str]:
    """The names of the axes behind the views; dimensions that a reshape makes are numbered."""
    names = list(onednn_letters(name, rank))
    for view in views:
        if view.name == "permute_axes":
            names = [names[view.numbers[0].index(d)] for d in range(len(names))]
        elif view.name == "reshape":
            names = [f"dim{d}" for d in range(len(view.numbers[0]))]
    return names


def _described(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> MemoryDesc:
    may_be_zero = placement.allow_empty or False
    if name == "strided":
        desc = MemoryDesc.by_strides(shape, dtype, placement.strides, allow_empty=may_be_zero)
    else:
        desc = MemoryDesc.by_tag(shape, dtype, name, allow_empty=may_be_zero)
    if placement.use:
        desc = desc.resolved(placement.use)
    for view in placement.views or ():
        _check_view(view)
        desc = getattr(desc, view.name)(*view.numbers, allow_empty=may_be_zero)
    return desc


def _check_view(view: View) -> None:
    if view.name not in VIEWS:
        raise InputError.no_such("onednn: --view", view.name, VIEWS)
    if len(view.numbers) != VIEWS[view.name]:
        allowed = f"{VIEWS[view.name]}: submemory takes sizes and offsets, the others one list"
        raise InputError(f"onednn: --view {view.name}", f"{len(view.numbers)} lists of numbers", allowed)


def _facts(desc: MemoryDesc, placement: Placement) -> dict[str, Any]:
    """Format, dimensions, strides between outer blocks and inner blocks, as queries of the library return them."""
    facts: dict[str, Any] = {"format_kind": desc.format_kind, "dims": list(desc.dims)}
    if desc.format_kind == "blocked":
        names = ("padded_dims", "strides", "inner_blks", "inner_idxs")
        facts |= {name: list(getattr(desc, name)) for name in names} | {"offset0": desc.offset0}
    if placement.cell:
        facts["gate_axis"] = gate_axis(desc.dims, placement.cell)
        facts["gates"] = list(GATES[placement.cell])
    return facts


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


__all__ = ["OKK_NAMES", "SYSTEMS", "Found", "OtherTensor", "Placement", "View", "find", "letters_of", "options_of"]
