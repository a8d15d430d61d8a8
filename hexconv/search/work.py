"""Traffic and MACs of every plan of a space at once (`hexconv.analyze.traffic`, on vectors)."""

from dataclasses import dataclass
from math import prod

import numpy as np

from hexconv.analyze.cache import DTYPE_BYTES
from hexconv.analyze.footprint import packed_filter
from hexconv.analyze.needed import macs_per_output
from hexconv.kernel import output_layout
from hexconv.search.exact import Integers, integer_type
from hexconv.search.space import Space
from hexconv.search.steps import Made, tensors_made
from hexconv.search.stripes import Stripes
from hexconv.spec import Chain


@dataclass(frozen=True)
class WorkGrid:
    """Traffic and MACs of every plan, [words, H, K].

    Attributes:
        traffic_bytes: the bytes copied between memory and caches.
        macs: the multiply-accumulates done.
    """

    traffic_bytes: Integers
    macs: Integers


@dataclass(frozen=True)
class Terms:
    """A figure as a sum: `constant` + over all tensors, `once[tensor]` x how often the steps of that tensor are run.

    Attributes:
        constant: [words, 1, 1].
        once: per tensor [words, H, 1]: what all steps of one image, each run once, add to the figure.
    """

    constant: Integers
    once: tuple[Integers, ...]

    def total(self, times: tuple[Integers, ...]) -> Integers:
        """Return the figure of every plan; `times` is what `step_times` returns."""
        return self.constant + sum(once * repeated for once, repeated in zip(self.once, times, strict=True))


def work_grid(chain: Chain, space: Space, stripes: Stripes) -> WorkGrid:
    """Return the traffic and the MACs of every plan of a space."""
    made = tensors_made(chain, stripes)
    kind = figure_type(chain, space, stripes, made)
    times = step_times(space, stripes, kind)
    totals = (
        np.broadcast_to(terms.total(times), space.shape) for terms in work_terms(chain, space, stripes, made, kind)
    )
    return WorkGrid(*totals)


def figure_type(chain: Chain, space: Space, stripes: Stripes, made: tuple[Made, ...]) -> type:
    """Return an element type that holds every figure; an estimate in floating point decides which."""
    times = step_times(space, stripes, np.float64)
    most = max(
        float(terms.constant.max())
        + sum(float(a.max()) * float(b.max()) for a, b in zip(terms.once, times, strict=True))
        for terms in work_terms(chain, space, stripes, made, np.float64)
    )
    return integer_type(int(2 * most))


def work_terms(chain: Chain, space: Space, stripes: Stripes, made: tuple[Made, ...], kind: type) -> tuple[Terms, Terms]:
    """Return the terms of traffic and MACs, with elements of type `kind`."""
    last = len(chain.conv) - 1
    resident = space.flags("filters", "resident")
    nothing = np.zeros((1, 1, 1), kind)
    rows = [_chosen(space, tensor.rows.astype(kind)) for tensor in made]
    stagings = [_chosen(space, tensor.stagings.astype(kind)) for tensor in made]
    moved = [rows[0] * (_row_elements(stripes, 0) * DTYPE_BYTES[chain.dtype])]
    constant = nothing + prod(output_layout(chain).physical_shape) * DTYPE_BYTES[chain.output_dtype(last)]
    computed = [nothing]
    for index in range(len(chain.conv)):
        filter_bytes = prod(packed_filter(chain, index)) * DTYPE_BYTES[chain.dtype_of_filters]
        constant = constant + np.where(resident, filter_bytes, 0).astype(kind)
        moved.append(np.where(resident, 0, stagings[index + 1] * filter_bytes))
        row_macs = _row_elements(stripes, index + 1) * macs_per_output(chain, index)
        computed.append(rows[index + 1] * row_macs)
    return Terms(constant, tuple(moved)), Terms(nothing, tuple(computed))


def step_times(space: Space, stripes: Stripes, kind: type) -> tuple[Integers, ...]:
    """Return per tensor [words, H, K]: how often its steps run, over channel tiles and images."""
    total = stripes.extents[-1].batch
    times = [np.full((1, 1, 1), total, kind)]
    by_channels = space.flags("order", "k_outer")
    for index in reversed(range(len(stripes.row_steps))):
        again = by_channels & (stripes.row_steps[index] > 1)[None, :, None]
        times.append(times[-1] * np.where(again, stripes.channel_tiles[index].astype(kind), 1))
    return tuple(reversed(times))


def _chosen(space: Space, by_setting: Integers) -> Integers:
    """Turn values for [recompute, roll] x [H] into [words, H, 1]."""
    return np.where(space.rolls, by_setting[1][None, :, None], by_setting[0][None, :, None])


def _row_elements(stripes: Stripes, tensor: int) -> int:
    """Return the logical elements of one row of a tensor."""
    first, end = stripes.extents[tensor].valid_columns
    return (end - first) * stripes.extents[tensor].channels
