"""Traffic and MACs of every plan of a space at once (`hexconv.analyze.traffic`, on vectors)."""

from dataclasses import dataclass
from math import prod

import numpy as np

from hexconv.analyze.cache import DTYPE_BYTES
from hexconv.analyze.exact import Integers, integer_type
from hexconv.analyze.footprint import packed_filter
from hexconv.analyze.needed import macs_per_output
from hexconv.analyze.slabs import Splits
from hexconv.analyze.steps import Steps, steps_backwards
from hexconv.kernel import output_layout
from hexconv.search.block_axes import BlockAxes


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
class Made:
    """Counts of one tensor, [words, H, 1]: the logical rows made, and the steps that stage a filter."""

    rows: Integers
    stagings: Integers


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
    made = tensors_made(axes)
    kind = figure_type(axes, made)
    times = step_times(axes, kind)
    totals = (np.broadcast_to(terms.total(times), axes.space.shape) for terms in work_terms(axes, made, kind))
    return WorkGrid(*totals)


def tensors_made(axes: BlockAxes) -> tuple[Made, ...]:
    """Return the work on every tensor: the input, then the output of each conv."""
    count = len(axes.splits.extents)
    walk = zip(reversed(range(count)), steps_backwards(axes.splits), strict=True)
    return tuple(reversed([_made(axes, tensor, steps) for tensor, steps in walk]))


def _made(axes: BlockAxes, tensor: int, steps: Steps) -> Made:
    """Count the rows and the stagings of one tensor; `steps` are those of plans without rings."""
    rows = _summed(axes, steps, steps.rows_of(axes.splits.extents[tensor]))
    stagings = _summed(axes, steps, np.ones_like(steps.start))
    return Made(
        axes.chosen(rows, lambda rolled: rolled.made[tensor].rows),
        axes.chosen(stagings, lambda rolled: rolled.made[tensor].stagings),
    )


def _summed(axes: BlockAxes, steps: Steps, values: Integers) -> Integers:
    """Sum times x value by h_split: [H]."""
    total = np.zeros(len(axes.splits.h_split), steps.times.dtype)
    np.add.at(total, steps.setting, steps.times * values)
    return total


def figure_type(axes: BlockAxes, made: tuple[Made, ...]) -> type:
    """Return an element type that holds every figure; an estimate in floating point decides which."""
    times = step_times(axes, np.float64)
    most = max(
        float(terms.constant.max())
        + sum(float(a.max()) * float(b.max()) for a, b in zip(terms.once, times, strict=True))
        for terms in work_terms(axes, made, np.float64)
    )
    return integer_type(int(2 * most))


def work_terms(axes: BlockAxes, made: tuple[Made, ...], kind: type) -> tuple[Terms, Terms]:
    """Return the terms of traffic and MACs, with elements of type `kind`."""
    splits, chain, last = axes.splits, axes.splits.chain, len(axes.splits.chain.conv) - 1
    resident = axes.space.flags("filters", "resident")
    nothing = np.zeros((1, 1, 1), kind)
    rows = [tensor.rows.astype(kind) for tensor in made]
    stagings = [tensor.stagings.astype(kind) for tensor in made]
    moved = [rows[0] * (_row_elements(splits, 0) * DTYPE_BYTES[chain.dtype])]
    constant = nothing + prod(output_layout(chain).physical_shape) * DTYPE_BYTES[chain.output_dtype(last)]
    computed = [nothing]
    for index in range(len(chain.conv)):
        filter_bytes = prod(packed_filter(chain, index)) * DTYPE_BYTES[chain.dtype_of_filters]
        constant = constant + np.where(resident, filter_bytes, 0).astype(kind)
        moved.append(np.where(resident, 0, stagings[index + 1] * filter_bytes))
        row_macs = _row_elements(splits, index + 1) * macs_per_output(chain, index)
        computed.append(rows[index + 1] * row_macs)
    return Terms(constant, tuple(moved)), Terms(nothing, tuple(computed))


def step_times(axes: BlockAxes, kind: type) -> tuple[Integers, ...]:
    """Return per tensor [words, H, K]: how often its steps run, over channel tiles and images."""
    splits, by_channels = axes.splits, axes.space.flags("order", "k_outer")
    times = [np.full((1, 1, 1), splits.extents[-1].batch, kind)]
    for index in reversed(range(len(splits.row_steps))):
        again = by_channels & (axes.row_steps(index) > 1)
        times.append(times[-1] * np.where(again, splits.channel_tiles[index].astype(kind), 1))
    return tuple(reversed(times))


def _row_elements(splits: Splits, tensor: int) -> int:
    """Return the logical elements of one row of a tensor."""
    first, end = splits.extents[tensor].valid_columns
    return (end - first) * splits.extents[tensor].channels
