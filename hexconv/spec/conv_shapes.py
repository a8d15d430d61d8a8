"""The shape that a conv makes of another, and the convs that no image fits."""

from hexconv.errors import InputError
from hexconv.spec.conv import Conv2d

MOST_TAPS = 2**24
"""The largest product of kernel size and outputs along one axis: sixteen taps for each of a million rows."""

Shape = tuple[int, int, int, int]


def output_shape(conv: Conv2d, shape: Shape) -> Shape:
    """Return the logical NHWC of a conv's output; sizes below one mean that the kernel does not fit."""
    n, h, w, _ = shape
    padded = (h + conv.padding.top + conv.padding.bottom, w + conv.padding.left + conv.padding.right)
    rows, columns = ((p - r) // s + 1 if p >= r else 0 for p, r, s in zip(padded, conv.reach, conv.stride, strict=True))
    return n, rows, columns, conv.out_channels


def check_shapes(where: str, conv: Conv2d, source: Shape) -> None:
    """Check that a conv takes an image of this shape.

    Args:
        where: the conv's place in its file, `chain.conv[0]`.
        conv: the conv.
        source: the logical NHWC of what it reads.

    Raises:
        InputError: its groups don't divide the channels, or its kernel doesn't fit the padded image, or is far too
            large.
    """
    _check_groups(where, conv, source[3])
    _check_kernel_fits(where, conv, source)
    _check_taps(where, conv, output_shape(conv, source))


def _check_groups(where: str, conv: Conv2d, channels: int) -> None:
    """Refuse a number of groups that doesn't divide the channels of input and output."""
    for what, count in (("input", channels), ("output", conv.out_channels)):
        if count % conv.groups:
            given = f"{conv.groups}, which leaves {count % conv.groups} of the {count} channels of its {what}"
            raise InputError(f"{where}.groups", given, f"a divisor of {count}")


def _check_kernel_fits(where: str, conv: Conv2d, shape: Shape) -> None:
    """Refuse a kernel larger than its padded input, which would have no output."""
    padded = (shape[1] + conv.padding.top + conv.padding.bottom, shape[2] + conv.padding.left + conv.padding.right)
    for axis, p, reach in zip(("rows", "columns"), padded, conv.reach, strict=True):
        if reach > p:
            raise InputError(
                f"{where}.kernel",
                f"{list(conv.kernel)} with dilation {list(conv.dilation)}, which reads {reach} {axis}",
                f"at most the {p} {axis} of its padded input; a smaller kernel, or {reach - p} more padding",
            )


def _check_taps(where: str, conv: Conv2d, output: Shape) -> None:
    """Refuse a kernel as large as a large image: it is a slip, and its rows are too many to count."""
    for axis, taps, outputs in zip(("rows", "columns"), conv.kernel, output[1:3], strict=True):
        if taps * outputs > MOST_TAPS:
            raise InputError(
                f"{where}.kernel",
                f"{taps} {axis} for each of {outputs} {axis} of output, {taps * outputs} in all",
                f"up to {MOST_TAPS}; a smaller kernel, or a smaller image",
            )
