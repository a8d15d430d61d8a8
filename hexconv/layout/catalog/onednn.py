"""Find oneDNN's descriptors by name: a tag or strides, then views."""

from dataclasses import replace
from typing import Any

from hexconv.errors import InputError
from hexconv.layout.catalog.found import Found
from hexconv.layout.catalog.placement import Placement, View
from hexconv.layout.onednn import GATES, MemoryDesc, gate_axis

VIEWS = {"reshape": 1, "permute_axes": 1, "submemory": 2}
"""How many lists of numbers each view takes."""


def find_onednn(name: str, shape: tuple[int, ...], dtype: str, placement: Placement) -> Found:
    """Find the descriptor of a tag, of `strided` or of `any`, and apply its views.

    Raises:
        InputError: the descriptor doesn't have one of the options, or a view doesn't exist.
        DescriptorError: the library refuses the descriptor.
    """
    own = {"strided": ("strides",), "any": ("use",)}.get(name, ())
    placement.check_only(f"onednn {name}", *own, "cell", "views", "allow_empty")
    desc = _described(name, shape, dtype, placement)
    layout = replace(desc.layout(), name=name) if desc.format_kind == "blocked" else None
    return Found("onednn", name, shape, dtype, desc.get_size(), layout, _facts(desc, placement))


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
        facts |= {name: list(getattr(desc, name)) for name in names}
    if placement.cell:
        facts["gate_axis"] = gate_axis(desc.dims, placement.cell)
        facts["gates"] = list(GATES[placement.cell])
    return facts
