"""ONNX's Resize and Upsample: work out once which source rows and columns each place of the result is read from."""

from collections.abc import Callable

import numpy as np

from hexconv.model.graph import Node
from hexconv.model.refused import Refused
from hexconv.network.operand import Operand
from hexconv.network.program import Reading
from hexconv.network.step import Axis, Resize
from hexconv.run.tensors import Array

SPATIAL = {"rows": 1, "columns": 2}
"""The index of rows and of columns in N, H, W, C."""
EXACT_DIGITS = 9
"""Decimal places of a coordinate: what float64 leaves next to a half or a whole number is one."""
ROUNDED: dict[bytes, Callable[[Array], Array]] = {
    b"round_prefer_floor": lambda at: np.ceil(at - 0.5),
    b"round_prefer_ceil": lambda at: np.floor(at + 0.5),
    b"floor": np.floor,
    b"ceil": np.ceil,
}


def resize_of(reading: Reading, node: Node, source: Operand, result: Operand) -> Resize:
    """Work out both axes of a resize.

    Raises:
        Refused: the interpolation is cubic, or a mode or an axis isn't known here.
    """
    axes = [_axis(reading, node, name, source, result) for name in SPATIAL]
    if source.extents[0] != result.extents[0] or source.extents[3] != result.extents[3]:
        raise Refused("it resizes the batch or the channels; it resizes rows and columns alone here")
    return Resize(*axes)


def _axis(reading: Reading, node: Node, name: str, source: Operand, result: Operand) -> Axis:
    size, made = source.extents[SPATIAL[name]], result.extents[SPATIAL[name]]
    at = np.round(_coordinates(node, size, made, _scale(reading, node, name, size, made)), EXACT_DIGITS)
    mode = node.attributes.get("mode", b"nearest")
    if mode == b"nearest":
        default = b"floor" if node.op == "Upsample" else b"round_prefer_floor"
        first = np.clip(ROUNDED[node.attributes.get("nearest_mode", default)](at), 0, size - 1)
        part = np.zeros(made)
    elif mode == b"linear":
        at = np.clip(at, 0, size - 1)
        first, part = np.floor(at), at - np.floor(at)
    else:
        raise Refused(f"its mode is {mode.decode(errors='replace')}; it takes nearest or linear here")
    names = [f"{node.name}:{name}:{what}" for what in ("first", "part")]
    return Axis(reading.constant(names[0], first.astype(np.int32)), reading.constant(names[1], part.astype(np.float32)))


def _coordinates(node: Node, size: int, made: int, scale: float) -> Array:
    """Return the coordinate in the source of each place of the result, along one axis."""
    places = np.arange(made)
    mode = node.attributes.get("coordinate_transformation_mode", b"half_pixel")
    if node.op == "Upsample":
        mode = b"asymmetric"
    if mode == b"asymmetric":
        return places / scale
    if mode == b"align_corners":
        return places * ((size - 1) / (made - 1) if made > 1 else 0.0)
    if mode == b"half_pixel" or (mode == b"pytorch_half_pixel" and made > 1):
        return (places + 0.5) / scale - 0.5
    if mode == b"pytorch_half_pixel":
        return np.zeros(made)
    raise Refused(f"it computes coordinates by {mode.decode(errors='replace')}, which is not known here")


def _scale(reading: Reading, node: Node, name: str, size: int, made: int) -> float:
    """Return the scale of an axis: the model's if it states one, else the quotient of the sizes."""
    stated = node.input(1 if node.op == "Upsample" or len(node.inputs) == 2 else 2)
    if not stated or not reading.graph.is_constant(stated) or reading.graph.value(stated).size != 4:
        return made / size
    return float(reading.graph.value(stated)[2 if name == "rows" else 3])
