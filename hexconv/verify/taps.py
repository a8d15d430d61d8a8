"""What ONNX Runtime's own quantised tensors hold: read from a graph with more outputs, which must be fused alike."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hexconv.errors import RunFailed
from hexconv.verify.parts import Whole
from hexconv.verify.runtime import Array, Session, Values


@dataclass(frozen=True)
class Tapped:
    """One run of the network by ONNX Runtime alone.

    Attributes:
        tensors: those that were asked for, by name.
        outputs: of the model.
    """

    tensors: dict[str, Array]
    outputs: dict[str, Array]


def tapped(whole: Whole, tensors: Sequence[str], inputs: Values) -> Tapped:
    """Run the model, and the model that also gives these tensors back.

    Raises:
        RunFailed: the taps change what ONNX Runtime fuses, or what it answers: then it would be another network.
    """
    plain, open_ = Session(whole.model, whole.name), Session(whole.tapped(tensors), whole.name)
    if plain.fusions != open_.fusions:
        changes = {op: (plain.fusions[op], open_.fusions[op]) for op in plain.fusions | open_.fusions}
        told = ", ".join(f"{op} {one} instead of {two}" for op, (one, two) in changes.items() if one != two)
        raise RunFailed(f"{whole.name}: ONNX Runtime fuses less where its tensors are looked at: {told}")
    outputs = plain.run(whole.outputs, inputs)
    names = list(dict.fromkeys((*whole.outputs, *tensors)))
    found = open_.run(names, inputs)
    if other := [name for name in whole.outputs if not np.array_equal(outputs[name], found[name], equal_nan=True)]:
        raise RunFailed(f"{whole.name}: ONNX Runtime gives other values of {other[0]} where its tensors are looked at")
    return Tapped({name: found[name] for name in tensors}, outputs)
