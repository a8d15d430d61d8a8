"""State how far the sums of an integer conv go with its weights, so that every command judges the conv as import does.

Quantisers leave biases next to the ends of int32 in channels with next to no weights. Where such a bias would carry
sums beyond int32 although the channel has one output whatever the image, it is moved to where all sums fit.
"""

from dataclasses import replace

import numpy as np

from hexconv.model.constants import Array
from hexconv.model.float32 import rounded
from hexconv.model.graph import Graph
from hexconv.model.refused import Refused
from hexconv.model.unit import Folded, Unit
from hexconv.spec import Chain, Requantize
from hexconv.spec.dtypes import INTEGER_RANGE, LARGEST_INT32
from hexconv.spec.names import numbered
from hexconv.spec.room import sums_refusals
from hexconv.spec.weights import sums_by_channel, with_limits

ROOM_TO_ROUND = 1 << 20
"""What is left between a sum and the ends of int32, where that changes no result: HVX adds halves before it shifts."""


def settled_weights(graph: Graph, unit: Unit) -> Folded:
    """Make the weights of a conv, with the biases of channels of one output moved to where int32 holds their sums.

    Raises:
        Refused: a constant can't be read, or the conv's dtype does not hold it.
    """
    folded = unit.weights.folded(graph)
    how = unit.conv.requantize
    if how is None or folded.bias is None:
        return folded
    least, most = sums_by_channel(unit.alone, 0, folded.filter, None)
    bias = folded.bias.copy()
    for room in (ROOM_TO_ROUND, 0):
        end = LARGEST_INT32 - room
        moved = np.clip(bias, -end - least, end - most).astype(np.int32)
        for channel in np.flatnonzero(moved != bias):
            by = _of_channel(how, folded, int(channel))
            ends = np.add.outer([bias[channel], moved[channel]], [least[channel], most[channel]])
            if np.ptp(_codes(ends, by, unit.dtype)) == 0:  # results never fall while sums grow: all between are alike
                bias[channel] = moved[channel]
    return replace(folded, bias=bias)


def limited(graph: Graph, unit: Unit) -> Unit:
    """Return an integer conv that states the limits of its own weights; return any other conv as it is.

    Products are not rounded to few binary places where hvx has no room for that beside these sums.

    Raises:
        Refused: the weights can't be made, or no kernel has room for their sums.
    """
    if not unit.alone.is_integer:
        return unit
    folded, how = settled_weights(graph, unit), unit.conv.requantize
    ways = [how] if how is None or how.fraction_bits is None else [how, replace(how, fraction_bits=None)]
    chains = [_chain(replace(unit, conv=replace(unit.conv, requantize=way)), folded) for way in ways]
    chain = next((chain for chain in chains if not sums_refusals(chain, "hvx")[0]), chains[0])
    if refusal := sums_refusals(chain, "plain")[0]:
        raise Refused(refusal)
    return replace(unit, conv=chain.conv[0])


def _chain(unit: Unit, folded: Folded) -> Chain:
    """Return the chain of one conv with the limits of its weights."""
    vectors = {numbered(what, 1): vector for what, vector in folded.vectors.items()}
    return with_limits(unit.alone, [folded.filter], [folded.bias], vectors)


def _of_channel(how: Requantize, folded: Folded, channel: int) -> Requantize:
    """Return the requantisation of one channel."""
    own = {what: int(folded.vectors[what][channel]) for what in how.vectors}
    return replace(how, **own, least_odd=None)  # pyright: ignore[reportArgumentType]


def _codes(sums: Array, by: Requantize, dtype: str) -> Array:
    """Return the codes of some sums."""
    return np.clip(rounded(sums * by.most_multiplier, by) + by.zero_point, *by.codes(*INTEGER_RANGE[dtype]))
