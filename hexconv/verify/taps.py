"""Read ONNX Runtime's inner quantised tensors: run the model with more outputs, and check that it is fused alike."""

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
        tensors: the inner tensors that were asked for, by name.
        outputs: the outputs of the model, by name.
    """

    tensors: dict[str, Array]
    outputs: dict[str, Array]


def tapped(whole: Whole, tensors: Sequence[str], inputs: Values) -> Tapped:
    """Run the model twice, as it is and with these tensors as outputs too; return both results.

    Raises:
        RunFailed: the added outputs change what ONNX Runtime fuses or answers, so that it runs another network.
    """
    plain, open_ = Session(whole.model, whole.name), Session(whole.tapped(tensors), whole.name)
    if plain.fusions != open_.fusions:
        changes = {op: (plain.fusions[op], open_.fusions[op]) for op in plain.fusions | open_.fusions}
        told = ", ".join(f"{op} {one} instead of {two}" for op, (one, two) in changes.items() if one != two)
        raise RunFailed(
            f"{whole.name}: ONNX Runtime fuses other nodes once tensors become outputs ({told}); please report it"
        )
    outputs = plain.run(whole.outputs, inputs)
    names = list(dict.fromkeys((*whole.outputs, *tensors)))
    found = open_.run(names, inputs)
    if other := [name for name in whole.outputs if not np.array_equal(outputs[name], found[name], equal_nan=True)]:
        told = f"{whole.name}: ONNX Runtime gives other values of {other[0]} once tensors become outputs"
        raise RunFailed(f"{told}; please report it")
    return Tapped({name: found[name] for name in tensors}, outputs)
