"""Traffic and MACs of every plan of a space at once (`hexconv.analyze.traffic`, on vectors)."""

from dataclasses import dataclass
from math import prod
from operator import attrgetter

import numpy as np

from hexconv.analyze.caches import DTYPE_BYTES, packed_filter
from hexconv.analyze.exact import Integers, integer_type
from hexconv.analyze.needed import macs_per_output
from hexconv.kernel import output_layout
from hexconv.search.block_grid import BlockAxes


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


def work_grid(axes: BlockAxes) -> WorkGrid:
    """Return the traffic and the MACs of every plan of a space."""
    kind = figure_type(axes)
    times = step_times(axes, kind)
    totals = (np.broadcast_to(terms.total(times), axes.space.shape) for terms in work_terms(axes, kind))
    return WorkGrid(*totals)


def figure_type(axes: BlockAxes) -> type:
    """Return an element type that holds every figure; an estimate in floating point decides which."""
    times = step_times(axes, np.float64)
    most = max(
        float(terms.constant.max())
        + sum(float(a.max()) * float(b.max()) for a, b in zip(terms.once, times, strict=True))
        for terms in work_terms(axes, np.float64)
    )
    return integer_type(int(2 * most))


def work_terms(axes: BlockAxes, kind: type) -> tuple[Terms, Terms]:
    """Return the terms of traffic and MACs, with elements of type `kind`."""
    chain, last, resident = axes.chain, len(axes.chain.conv) - 1, axes.space.flags("filters", "resident")
    nothing = np.zeros((1, 1, 1), kind)
    rows, stagings = (
        [axes.rows(lambda planned, of=of, t=t: of(planned.made_once[t])).astype(kind) for t in range(last + 2)]
        for of in (attrgetter("rows"), attrgetter("stagings"))
    )
    moved = [rows[0] * (_row_elements(axes, 0) * DTYPE_BYTES[chain.dtype])]
    constant = nothing + prod(output_layout(chain).physical_shape) * DTYPE_BYTES[chain.output_dtype(last)]
    computed = [nothing]
    for index in range(len(chain.conv)):
        filter_bytes = prod(packed_filter(chain, index)) * DTYPE_BYTES[chain.dtype_of_filters]
        constant = constant + np.where(resident, filter_bytes, 0).astype(kind)
        moved.append(np.where(resident, 0, stagings[index + 1] * filter_bytes))
        computed.append(rows[index + 1] * (_row_elements(axes, index + 1) * macs_per_output(chain, index)))
    return Terms(constant, tuple(moved)), Terms(nothing, tuple(computed))


def step_times(axes: BlockAxes, kind: type) -> tuple[Integers, ...]:
    """Return per tensor [words, H, K]: how often its steps run, over channel tiles and images."""
    times, by_channels = [np.full((1, 1, 1), axes.extents[-1].batch, kind)], axes.space.flags("order", "k_outer")
    for index in reversed(range(len(axes.chain.conv))):
        times.append(times[-1] * np.where(by_channels & axes.steps(index), axes.tiles(index).astype(kind), 1))
    return tuple(reversed(times))


def _row_elements(axes: BlockAxes, tensor: int) -> int:
    """Return the logical elements of one row of a tensor."""
    first, end = axes.extents[tensor].valid_columns
    return (end - first) * axes.extents[tensor].channels
