"""Layouts of MACE: images of pixels, and the CPU runtime's buffers."""

from collections.abc import Sequence
from math import prod

from hexconv.errors import InputError, Unsupported
from hexconv.layout.dense import dense
from hexconv.layout.digit import Axis, Digit, Output
from hexconv.layout.layout import Layout
from hexconv.layout.mace.kinds import ALIASES, CPU_BUFFERS, KINDS, LANES, PURPOSES, Kind

LANE_BYTES = {"float32": 4, "float16": 2, "int32": 4, "uint8": 4}
"""Bytes of a lane by dtype: CL_FLOAT, CL_HALF_FLOAT, CL_SIGNED_INT32, and CL_UNSIGNED_INT32 even for uint8."""


def kind(name: str) -> Kind:
    """Find a kind by MACE's name (`IN_OUT_CHANNEL`), the document's (`channel-major`) or with dashes.

    Raises:
        InputError: no such kind.
    """
    plain = name.lower().replace("_", "-")
    found = KINDS.get(ALIASES.get(plain, plain))
    if not found:
        raise InputError.no_such("mace layout", name, [*KINDS, *CPU_BUFFERS])
    return found


def purpose(name: str) -> str:
    """The purpose of a kind of image, or of a buffer of MACE's CPU runtime, in words.

    Raises:
        InputError: no such kind.
    """
    return PURPOSES[name] if name in CPU_BUFFERS else PURPOSES[kind(name).name]


def image(name: str, shape: Sequence[int], *, dtype: str = "float32") -> Layout:
    """The layout of an image; its outputs `y`, `x` and `lane` are in the order of the image's memory.

    Args:
        name: the name of the kind.
        shape: the buffer's shape, NHWC, OIHW, MIHW or W. A Winograd filter's is that of the transformed
            filter, OIAB (`hexconv.layout.mace.winograd` transforms); that of the 3x3 filter stands for it.
        dtype: the dtype of the image: float32, float16, int32 or uint8 (which takes four bytes a lane all the same).

    Raises:
        InputError: a rank or a type that the kind doesn't take.
        Unsupported: a depthwise filter with a multiplier: MACE's kernel writes nothing but zeros.

    >>> image("channel-major", (1, 2, 3, 5)).address((0, 1, 2, 4))
    {'y': 1, 'x': 5, 'lane': 0}
    """
    form = kind(name)
    sizes = dict(zip(form.axes, buffer_shape(form, shape), strict=True))
    pixels = sizes | {form.lane: -(-sizes[form.lane] // LANES)}
    return Layout(
        name=form.name,
        axes=tuple(Axis(letter, size) for letter, size in sizes.items()),
        outputs=(
            Output("y", prod(pixels[letter] for letter in form.y)),
            Output("x", prod(pixels[letter] for letter in form.x)),
            Output("lane", LANES),
        ),
        digits=(
            Digit(form.lane, "lane", modulus=LANES),
            *_digits(form, "y", form.y, pixels),
            *_digits(form, "x", form.x, pixels),
        ),
        itemsize_bytes=lane_bytes(dtype),
        line_outputs=2,
    )


def image_shape(name: str, shape: Sequence[int]) -> tuple[int, int]:
    """The width and the height of an image in pixels; a channel image takes vectors and scalars too.

    >>> image_shape("in-out-channel", (10,)), image_shape("in-out-channel", ())
    ((3, 1), (1, 1))
    """
    if kind(name).name == "in-out-channel" and len(shape) < 2:
        shape = (1, 1, 1, *(shape or (1,)))
    height, width, _ = image(name, shape).physical_shape
    return width, height


def cpu_buffer(name: str, shape: Sequence[int], *, dtype: str = "float32") -> Layout:
    """Layout of a buffer of the CPU runtime: NCHW, OIHW, MIHW or W; one output, `offset_elements`."""
    widths = {"float32": 4, "float16": 2, "int32": 4, "uint8": 1}
    if dtype not in widths:
        raise InputError("mace buffer: dtype", dtype, ", ".join(widths))
    return dense(CPU_BUFFERS[name], shape, itemsize_bytes=widths[dtype])


def check_readable(name: str) -> None:
    """Refuse images that MACE can write but not read back.

    Raises:
        Unsupported: the image holds depthwise filters, or is width-major.
    """
    if not kind(name).readable:
        raise Unsupported(f"mace has no kernel from a {kind(name).name} image back to a buffer; only buffer to image")


def lane_bytes(dtype: str) -> int:
    """Bytes of one lane of an image."""
    if dtype not in LANE_BYTES:
        raise InputError("mace image: dtype", dtype, ", ".join(LANE_BYTES))
    return LANE_BYTES[dtype]


def buffer_shape(form: Kind, shape: Sequence[int]) -> tuple[int, ...]:
    """Check a shape and bring it to the kind's own rank (`FormatBufferShape`).

    Raises:
        InputError: a rank that MACE refuses, or a filter that isn't 3x3 where Winograd needs one.
        Unsupported: a depthwise multiplier.
    """
    sizes = tuple(shape)
    if form.name == "in-out-channel" and len(sizes) == 2:
        sizes = (sizes[0], 1, 1, sizes[1])
    if form.name in ("in-out-height", "in-out-width") and len(sizes) == 3:
        sizes = (*sizes, 1)
    if form.name == "argument" and sizes[1:] == (1,) * (len(sizes) - 1):
        sizes = sizes[:1]
    if len(sizes) != len(form.axes):
        raise InputError(f"mace {form.name}: shape", f"{list(shape)}", f"{_ranks(form)}: {','.join(form.axes)}")
    if form.axes == "MIHW" and sizes[0] != 1:
        raise Unsupported(
            f"mace {form.name}: multiplier {sizes[0]}: its kernel writes zeros for all but a multiplier of 1"
        )
    return _tiles(form, sizes) if form.axes == "OIAB" else sizes


def buffer_index(name: str, index: Sequence[int]) -> tuple[int, ...]:
    """Bring an index of a buffer of lower rank to the kind's own rank."""
    form, given = kind(name), tuple(index)
    if form.name == "in-out-channel" and len(given) == 2:
        return given[0], 0, 0, given[1]
    if form.name in ("in-out-height", "in-out-width") and len(given) == 3:
        return *given, 0
    return given[:1] if form.name == "argument" and not any(given[1:]) else given


def _tiles(form: Kind, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a transformed filter, given that shape or the shape of the 3x3 filter."""
    tile = int(form.name[-1]) + 2
    if sizes[2:] not in ((3, 3), (tile, tile)):
        allowed = f"O,I,3,3 or, transformed, O,I,{tile},{tile}"
        raise InputError(f"mace {form.name}: shape", f"{list(sizes)}", allowed)
    return (*sizes[:2], tile, tile)


def _ranks(form: Kind) -> str:
    """The ranks that a kind takes, in words."""
    shorter = {"in-out-channel": "2 or ", "in-out-height": "3 or ", "in-out-width": "3 or "}
    return f"{shorter.get(form.name, '')}{len(form.axes)} sizes"


def _digits(form: Kind, output: str, order: str, pixels: dict[str, int]) -> list[Digit]:
    """The digits that count the pixels along one side of the image."""
    return [
        Digit(
            letter,
            output,
            divisor=LANES if letter == form.lane else 1,
            stride=prod(pixels[inner] for inner in order[k + 1 :]),
        )
        for k, letter in enumerate(order)
    ]
