"""The answer of the catalog: a layout that was found, with its facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hexconv.errors import InputError
from hexconv.layout import mace
from hexconv.layout.layout import Layout


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
