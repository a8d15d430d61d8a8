"""Traffic and MACs of every plan of a space at once (`hexconv.analyze.traffic`, on vectors)."""

from dataclasses import dataclass
from math import prod

import numpy as np

from hexconv.analyze.footprint import DTYPE_BYTES, packed_filter
from hexconv.analyze.needed import macs_per_output
from hexconv.search.exact import Integers, integer_type
from hexconv.search.space import Space
from hexconv.search.steps import Made, tensors_made
from hexconv.search.stripes import Stripes
from hexconv.spec import Chain


@dataclass(frozen=True)
class WorkGrid:
    """Figures of every plan, [words, H, K].

    Attributes:
        traffic_bytes: copied between memory and caches.
        macs: multiply-accumulates done.
    """

    traffic_bytes: Integers
    macs: Integers


def work_grid(chain: Chain, space: Space, stripes: Stripes) -> WorkGrid:
    """What every plan of a space moves and computes."""
    made, times = tensors_made(chain, stripes), _times(chain, space, stripes)
    traffic = _output_bytes(chain, stripes) + _copies(chain, space, stripes, made, times)
    macs = sum(
        _rows(space, made[i + 1].rows) * times[i + 1] * (_row_elements(stripes, i + 1) * macs_per_output(chain, i))
        for i in range(len(chain.conv))
    )
    return WorkGrid(np.broadcast_to(traffic, space.shape), np.broadcast_to(macs, space.shape))


def _copies(
    chain: Chain, space: Space, stripes: Stripes, made: tuple[Made, ...], times: tuple[Integers, ...]
) -> Integers:
    """Bytes of the input and of the filters."""
    dtype_bytes = DTYPE_BYTES[chain.dtype]
    copied = _rows(space, made[0].rows) * times[0] * (_row_elements(stripes, 0) * dtype_bytes)
    resident = space.flags("filters", "resident")
    for index in range(len(chain.conv)):
        stagings = np.where(resident, 1, _rows(space, made[index + 1].stagings) * times[index + 1])
        copied = copied + stagings * (prod(packed_filter(chain, index)) * dtype_bytes)
    return copied


def _times(chain: Chain, space: Space, stripes: Stripes) -> tuple[Integers, ...]:
    """Per tensor, [words, H, K]: how often its steps are run again, for channel tiles and images."""
    total = stripes.extents[-1].batch
    exact = integer_type(_most(chain, stripes))
    times = [np.full((1, 1, 1), total, exact)]
    by_channels = space.flags("order", "k_outer")
    for index in reversed(range(len(chain.conv))):
        again = by_channels & (stripes.row_steps[index] > 1)[None, :, None]
        times.append(times[-1] * np.where(again, stripes.channel_tiles[index].astype(exact), 1))
    return tuple(reversed(times))


def _most(chain: Chain, stripes: Stripes) -> int:
    """A bound of every figure: all channel tiles and all row steps repeat all of the largest tensors' work."""
    tiles = prod(int(tiles.max()) for tiles in stripes.channel_tiles)
    steps = prod(int(steps.max()) for steps in stripes.row_steps)
    tensors = sum(prod(tensor.packed_shape) * 8 for tensor in stripes.extents)
    products = sum(macs_per_output(chain, i) + 8 * prod(packed_filter(chain, i)) for i in range(len(chain.conv)))
    return tiles * steps * tensors * products


def _rows(space: Space, by_setting: Integers) -> Integers:
    """[words, H, 1] of what is known for [recompute, roll] x [H]."""
    return np.where(space.rolls, by_setting[1][None, :, None], by_setting[0][None, :, None])


def _row_elements(stripes: Stripes, tensor: int) -> int:
    """Logical elements of one row of a tensor."""
    first, end = stripes.extents[tensor].valid_columns
    return (end - first) * stripes.extents[tensor].channels


def _output_bytes(chain: Chain, stripes: Stripes) -> int:
    """Every element of the packed output once."""
    return prod(stripes.extents[-1].packed_shape) * DTYPE_BYTES[chain.output_dtype(len(chain.conv) - 1)]
