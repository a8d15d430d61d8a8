"""The options of a tensor beyond its name, shape and type."""

from dataclasses import dataclass
from typing import NamedTuple

from hexconv.errors import InputError


class View(NamedTuple):
    """A view of a oneDNN descriptor: `reshape 6,20`, `permute_axes 1,0`, `submemory 1,2 0,1`."""

    name: str
    numbers: tuple[tuple[int, ...], ...]


class Beside(NamedTuple):
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
    beside: Beside | None = None
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
