"""What the tensors of a chain take in memory under each of the four layout systems."""

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, replace

from hexconv.analyze.caches import DTYPE_BYTES
from hexconv.errors import HexconvError
from hexconv.layout.catalog import Placement, find
from hexconv.spec import Case, Chain
from hexconv.spec.names import filter_name, intermediate

SYSTEMS = ("packed", "onednn", "mace", "okk")


@dataclass(frozen=True)
class Tensor:
    """A tensor of a chain.

    Attributes:
        name: `input`, `filter1`, `intermediate`, ..., `output`.
        is_filter: whether its shape is OIHW, else NHWC.
        shape: its logical sizes.
        dtype: the type of its elements.
    """

    name: str
    is_filter: bool
    shape: tuple[int, int, int, int]
    dtype: str


@dataclass(frozen=True)
class LayoutUsage:
    """One tensor in one system.

    Attributes:
        case: the name of the case.
        tensor: the name of the tensor.
        shape: its logical sizes, NHWC or OIHW.
        dtype: the type of its elements.
        logical_bytes: the bytes of its elements alone.
        system: `packed`, `onednn`, `mace` or `okk`.
        layout: the system's name of the layout.
        bytes: the bytes to allocate, for `okk` on all NPUs together; None if the system refuses the tensor.
        waste_bytes: the bytes that no element uses, which are `bytes - logical_bytes`.
        waste_percent: the waste as a share of `bytes`, in percent.
        refusal: why the system doesn't take the tensor.
    """

    case: str
    tensor: str
    shape: tuple[int, int, int, int]
    dtype: str
    logical_bytes: int
    system: str
    layout: str
    bytes: int | None = None
    waste_bytes: int | None = None
    waste_percent: float | None = None
    refusal: str = ""


@dataclass(frozen=True)
class _Asked:
    """A layout to look up: its name, the shape in its own order, and the chip."""

    name: str
    shape: tuple[int, ...]
    placement: Placement = field(default_factory=Placement)


def usage(case: Case, chip: str = "bm1684") -> list[LayoutUsage]:
    """Rows that say what each tensor of a chain takes in each system, in the order of the data flow.

    Args:
        case: the case whose chain is looked at.
        chip: the chip that `okk` lays tensors out for.

    Returns:
        One row per tensor and system; a system that doesn't take a tensor gives a row that says why.
    """
    return [_row(case.name, tensor, system, chip) for tensor in tensors(case.chain) for system in SYSTEMS]


def tensors(chain: Chain) -> Iterator[Tensor]:
    """The tensors of a chain: its input, then the filter and the output of every conv."""
    yield Tensor("input", False, chain.shapes[0], chain.dtype)
    last = len(chain.conv)
    for k, shape in enumerate(chain.filter_shapes, start=1):
        if k in chain.filters:
            yield Tensor(filter_name(k), True, shape, chain.dtype_of_filters)
        between = "intermediate" if last == 2 else intermediate(k)
        yield Tensor("output" if k == last else between, False, chain.shapes[k], chain.output_dtype(k - 1))


def as_csv(rows: list[LayoutUsage]) -> str:
    """The rows as CSV; a shape is `1x64x64x128`."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in fields(LayoutUsage)], lineterminator="\n")
    writer.writeheader()
    writer.writerows({**asdict(row), "shape": "x".join(map(str, row.shape))} for row in rows)
    return out.getvalue()


def _row(case: str, tensor: Tensor, system: str, chip: str) -> LayoutUsage:
    asked = {"packed": _packed, "onednn": _onednn, "mace": _mace}.get(system)
    wanted = asked(tensor) if asked else _okk(tensor, chip)
    logical = DTYPE_BYTES[tensor.dtype]
    for size in tensor.shape:
        logical *= size
    row = LayoutUsage(case, tensor.name, tensor.shape, tensor.dtype, logical, system, wanted.name)
    try:
        found = find(system, wanted.name, wanted.shape, tensor.dtype, wanted.placement)
    except HexconvError as error:
        return replace(row, refusal=str(error))
    waste = found.bytes - logical
    return replace(row, bytes=found.bytes, waste_bytes=waste, waste_percent=round(100 * waste / found.bytes, 2))


def _packed(tensor: Tensor) -> _Asked:
    return _Asked("OIHW8i32o4i" if tensor.is_filter else "NHWC8h8w32c", tensor.shape)


def _onednn(tensor: Tensor) -> _Asked:
    """The layout that oneDNN's convolutions choose on 512-bit vectors: blocks of 16 for floats, nhwc for bytes."""
    byte = tensor.dtype in ("int8", "uint8")
    if tensor.is_filter:
        return _Asked("OIhw4i16o4i" if byte else "OIhw16i16o", tensor.shape)
    return _Asked("nChw16c" if tensor.dtype in ("float32", "float16") else "nhwc", _channels_first(tensor))


def _mace(tensor: Tensor) -> _Asked:
    return _Asked("conv2d-filter" if tensor.is_filter else "in-out-channel", tensor.shape)


def _okk(tensor: Tensor, chip: str) -> _Asked:
    """The layout in local memory, from NPU 0 on, that the chip's convolution reads or writes.

    The BM1684 reads float32 weights in the 2IC mode and bytes in the 4N mode. Newer chips read float32
    weights as compact (1, O, I, kernel); their other weights lie in 64IC and 32IC modes, which the
    catalog of layouts does not have.
    """
    where = Placement(chip=chip)
    if not tensor.is_filter:
        by_four = chip == "bm1684" and tensor.dtype in ("int8", "uint8")
        return _Asked("4n" if by_four else "aligned", _channels_first(tensor), where)
    o, i, h, w = tensor.shape
    if chip == "bm1684":
        return _Asked("2ic", (i, o, h, w), where)
    return _Asked("compact" if tensor.dtype == "float32" else "64ic", (1, o, i, h * w), where)


def _channels_first(tensor: Tensor) -> tuple[int, int, int, int]:
    n, h, w, c = tensor.shape
    return n, c, h, w
