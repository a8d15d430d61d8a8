"""From the float scales of ONNX to a multiplier and a shift, as TFLite does it, and what that changes.

ONNX rounds `sum * (input_scale * filter_scale / output_scale)` once, ties to even. TFLite's integer arithmetic
(`hexconv.spec.Requantize`) rounds twice, at the high half of the product and at the shift: at most 0.5 + 0.25 away from
the exact quotient, where ONNX is at most 0.5 away. Two integers that are each so near to the same number differ by at
most one: an output of a conv is ONNX's or its neighbour. (Errors of the multiplier itself are below 2**-31.)
"""

from math import floor, frexp

from hexconv.model.refused import Refused
from hexconv.spec import Requantize

ROUNDING = "each integer conv is within 1 of ONNX, which rounds the scaled sum once, ties to even; TFLite rounds twice"
LARGEST_SHIFT, SMALLEST_SHIFT = 30, -31


def requantize(scale: float, zero_point: int) -> Requantize:
    """`sum * scale + zero_point` in integers: TFLite's `QuantizeMultiplier`.

    >>> requantize(0.75, 3)
    Requantize(multiplier=1610612736, shift=0, zero_point=3, rounding='away')
    >>> requantize(2**-10, 0).shift
    -9

    Raises:
        Refused: the scale is no positive number, or so small that every output is the zero point.
    """
    if not 0 < scale < float("inf"):
        raise Refused(f"a scale of {scale:g}, which is no positive number")
    fraction, shift = frexp(scale)
    # TFLite rounds halves away from zero; Python's round() would go to even.
    multiplier = floor(fraction * 2**31 + 0.5)
    if multiplier == 2**31:
        multiplier, shift = 2**30, shift + 1
    if shift < SMALLEST_SHIFT:
        raise Refused(f"a scale of {scale:g}: every output is its zero point")
    if shift > LARGEST_SHIFT:
        multiplier, shift = 2**31 - 1, LARGEST_SHIFT
    return Requantize(multiplier=multiplier, shift=shift, zero_point=zero_point)
