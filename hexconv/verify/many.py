"""Compare a network's output on many inputs with ONNX Runtime's: this shows how errors travel through the network.

Numpy computes the chains, since runs of a chain equal numpy's answer; ONNX Runtime computes all other nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hexconv.errors import InputError
from hexconv.model import import_model
from hexconv.verify.inputs import inputs_of
from hexconv.verify.job import answer
from hexconv.verify.members import Member, members_of
from hexconv.verify.parts import Whole
from hexconv.verify.passes import computed, nhwc
from hexconv.verify.runtime import Array, Session
from hexconv.verify.top import top_same


@dataclass(frozen=True)
class Outputs:
    """How far the first output of a network is from ONNX Runtime's, over some inputs.

    Attributes:
        inputs: how many inputs there were.
        ranked_alike: how many of the inputs rank the same five classes first, in the same order; None where
            the output has no rows of classes.
        largest: the largest absolute difference.
        mean: the mean absolute difference.
        step: the least difference between two of ONNX Runtime's values; where the output is quantised, that of two
            codes.
        differing_share: the share of the values that differ, 0 to 1.
    """

    inputs: int
    ranked_alike: int | None
    largest: float
    mean: float
    step: float
    differing_share: float

    @property
    def largest_steps(self) -> float:
        """The largest difference, counted in steps."""
        return self.largest / self.step if self.step else 0.0


def on_many_inputs(path: Path, count: int) -> Outputs:
    """Compute a network on `count` random inputs, drawn with the seeds from 0 on, and compare its first output.

    Raises:
        InputError: the model or its inputs can't be used, or it has no chain of integers.
        ToolMissing: ONNX Runtime is not installed.
    """
    imported, whole = import_model(path), Whole.load(path, None)
    members, _ = members_of(imported)
    if not members:
        raise InputError(str(path), "a model without a chain of integers", "a quantised model")
    session, weights = Session(whole.model, whole.name), [imported.weights(member.index) for member in members]
    pairs: list[tuple[Array, Array]] = []
    for seed in range(count):
        known = inputs_of(whole.graph, whole.inputs, str(path), None, seed)
        pairs.append((session.run(whole.outputs, known)[whole.outputs[0]], _output(whole, members, weights, known)))
    return outputs_of(pairs)


def _output(
    whole: Whole, members: Sequence[Member], weights: Sequence[Mapping[str, Array]], inputs: Mapping[str, Array]
) -> Array:
    """Compute the first output of a network, its chains with numpy and the rest with ONNX Runtime."""
    known = dict(inputs)
    for member, own in zip(members, weights, strict=True):
        if member.replaces:
            known |= computed(whole, [member.source], known)
            result = answer(member.run.chain, own, nhwc(known[member.source]))
            known[member.result] = np.ascontiguousarray(result.transpose(0, 3, 1, 2))
    return {**known, **computed(whole, whole.outputs, known)}[whole.outputs[0]]


def outputs_of(pairs: Sequence[tuple[Array, Array]]) -> Outputs:
    """Compare pairs of outputs: for each input, ONNX Runtime's and the network's."""
    one, other = (np.stack(values).astype(np.float64) for values in zip(*pairs, strict=True))
    apart, gaps = np.abs(one - other), np.diff(np.unique(one))
    alike = [top_same(*pair) for pair in zip(one, other, strict=True)]
    return Outputs(
        inputs=len(pairs),
        ranked_alike=None if None in alike else sum(map(bool, alike)),
        largest=float(apart.max(initial=0)),
        mean=float(apart.mean()),
        step=float(gaps.min(initial=np.inf)) if len(gaps) else 0.0,
        differing_share=float(np.count_nonzero(apart) / apart.size),
    )
