"""Find oneDNN's descriptors by name: a tag or strides, then views."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hexconv.errors import InputError
from hexconv.layout.catalog.found import Found
from hexconv.layout.catalog.placement import Placement, View
from hexconv.layout.onednn import GATES, MemoryDesc, gate_axis
from hexconv.layout.onednn.tags import LETTERS, dimensions

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
    placement.check_only(f"onednn {name}", *options_of(name))
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


def options_of(name: str) -> tuple[str, ...]:
    """The names of the options that a descriptor uses."""
    own = {"strided": ("strides",), "any": ("use",)}.get(name, ())
    return (*own, "cell", "views", "allow_empty")


def letters_of(name: str, rank: int) -> str:
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
    names = list(letters_of(name, rank))
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
