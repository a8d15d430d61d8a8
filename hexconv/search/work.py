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
from hexconv.search.space import Space
from hexconv.spec import Extents


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
    """Counts of one tensor by setting, [recompute, roll] x [H]: logical rows made, and steps that stage a filter."""

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


def work_grid(space: Space, splits: Splits) -> WorkGrid:
    """Return the traffic and the MACs of every plan of a space."""
    made = tensors_made(splits)
    kind = figure_type(space, splits, made)
    times = step_times(space, splits, kind)
    totals = (np.broadcast_to(terms.total(times), space.shape) for terms in work_terms(space, splits, made, kind))
    return WorkGrid(*totals)


def tensors_made(splits: Splits) -> tuple[Made, ...]:
    """Return the work on every tensor: the input, then the output of each conv."""
    steps, count = steps_backwards(splits, (False, True)), len(splits.h_split)
    made = [_made(*each, count) for each in zip(reversed(splits.extents), steps, strict=True)]
    return tuple(reversed(made))


def _made(tensor: Extents, steps: Steps, count: int) -> Made:
    """Count the rows and the stagings of one tensor by setting."""
    stages = (steps.first < steps.end) | (steps.setting < count)
    return Made(_summed(steps, steps.rows_of(tensor), count), _summed(steps, stages.astype(np.int64), count))


def _summed(steps: Steps, values: Integers, count: int) -> Integers:
    """Sum times x value by setting: [2, H]."""
    total = np.zeros(2 * count, steps.times.dtype)
    np.add.at(total, steps.setting, steps.times * values)
    return total.reshape(2, count)


def figure_type(space: Space, splits: Splits, made: tuple[Made, ...]) -> type:
    """Return an element type that holds every figure; an estimate in floating point decides which."""
    times = step_times(space, splits, np.float64)
    most = max(
        float(terms.constant.max())
        + sum(float(a.max()) * float(b.max()) for a, b in zip(terms.once, times, strict=True))
        for terms in work_terms(space, splits, made, np.float64)
    )
    return integer_type(int(2 * most))


def work_terms(space: Space, splits: Splits, made: tuple[Made, ...], kind: type) -> tuple[Terms, Terms]:
    """Return the terms of traffic and MACs, with elements of type `kind`."""
    chain, last = splits.chain, len(splits.chain.conv) - 1
    resident = space.flags("filters", "resident")
    nothing = np.zeros((1, 1, 1), kind)
    rows = [_chosen(space, tensor.rows.astype(kind)) for tensor in made]
    stagings = [_chosen(space, tensor.stagings.astype(kind)) for tensor in made]
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


def step_times(space: Space, splits: Splits, kind: type) -> tuple[Integers, ...]:
    """Return per tensor [words, H, K]: how often its steps run, over channel tiles and images."""
    total = splits.extents[-1].batch
    times = [np.full((1, 1, 1), total, kind)]
    by_channels = space.flags("order", "k_outer")
    for index in reversed(range(len(splits.row_steps))):
        again = by_channels & (splits.row_steps[index] > 1)[None, :, None]
        times.append(times[-1] * np.where(again, splits.channel_tiles[index].astype(kind), 1))
    return tuple(reversed(times))


def _chosen(space: Space, by_setting: Integers) -> Integers:
    """Turn values for [recompute, roll] x [H] into [words, H, 1]."""
    return np.where(space.rolls, by_setting[1][None, :, None], by_setting[0][None, :, None])


def _row_elements(splits: Splits, tensor: int) -> int:
    """Return the logical elements of one row of a tensor."""
    first, end = splits.extents[tensor].valid_columns
    return (end - first) * splits.extents[tensor].channels
