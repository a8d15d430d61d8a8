"""Filters of the matrix engine in memory: without the zeros that their caches hold, and none of the results changes."""

from dataclasses import replace
from itertools import product
from math import ceil, prod
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx

from hexconv.kernel import layouts_of
from hexconv.kernel.engine import filter_argument
from hexconv.lower.widened_filters import WidenedFilter, own_inputs
from hexconv.run.tensors import packed_arguments, random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.names import filter_name
from tests.deep import one_in
from tests.hmx.test_crouton_rows import accesses
from tests.hmx.test_kernel import check

HOW = Requantize(multiplier=1518500250, shift=-7, zero_point=120)
ENGINE = Plan(kernel="hmx", k_split=1, order="h_outer", halo="roll")
PLANS = [
    replace(ENGINE, filters=filters, buffering=buffering, threads=threads)
    for filters, buffering, threads in product(("per_tile", "resident"), ("single", "double"), (1, 3))
]


def chain_of(channels: int, *convs: Conv2d) -> Chain:
    return Chain(input=(1, 11, 9, channels), dtype="uint8", filter_dtype="int8", zero_point=113, conv=convs)


def drawn(number: int) -> Case:
    """Draw a dense conv of any channels before or behind a depthwise one of any kernel."""
    draw = Random(number)
    channels, between, size = draw.randint(1, 100), draw.randint(5, 100), draw.choice((1, 2, 3, 5))
    side = (size - 1) // 2
    dense = Conv2d(out_channels=between, kernel=(1, draw.randint(1, 3)), bias=True, requantize=HOW)
    depthwise = Conv2d(
        out_channels=between,
        kernel=(size, size),
        stride=(draw.randint(1, 2), 1),
        padding=Padding(top=side, left=side, bottom=side, right=side),
        groups=between,
        bias=True,
        requantize=replace(HOW, shift=-5),
    )
    convs = (dense, depthwise) if draw.random() < 0.5 else (replace(depthwise, out_channels=between), dense)
    first = channels if convs[0] is dense else between
    return Case(f"filters-{number}", chain_of(first, *convs), PLANS[number % len(PLANS)])


@pytest.mark.simulator
@pytest.mark.parametrize("number", one_in(6, range(96)))
def test_filters_that_are_widened_are_exact(number: int) -> None:
    """Whatever the channels, the kernel and the plan."""
    check(drawn(number))


@pytest.mark.parametrize(("blocks", "taps"), [(1, 4), (1, 9), (3, 9), (2, 25), (5, 1)])
def test_widening_reads_its_argument_alone_and_writes_all_of_its_cache(blocks: int, taps: int) -> None:
    memory, cache = (tirx.decl_buffer((size * blocks * taps,), "int8") for size in (32, 1024))
    for block in range(blocks):
        begins = [tirx.BufferLoad(each, [size * block * taps]) for each, size in ((memory, 32), (cache, 1024))]
        code = WidenedFilter(begins[0], begins[1], taps).emit()
        assert all(0 <= begin < end <= 32 * blocks * taps for begin, end in accesses(code, memory, {}))
        written = {byte for begin, end in accesses(code, cache, {}) for byte in range(begin, end)}
        assert written == {*range(1024 * block * taps, 1024 * (block + 1) * taps)}


@given(st.integers(1, 300), st.integers(1, 100), st.sampled_from([(1, 1), (3, 3), (2, 5)]))
def test_memory_holds_whole_fours_of_inputs(inputs: int, outputs: int, kernel: tuple[int, int]) -> None:
    """As HVX has them; not an input of few channels, whose taps may be unfolded."""
    before = Conv2d(out_channels=inputs, requantize=HOW)
    chain = chain_of(32, before, Conv2d(out_channels=outputs, kernel=kernel, requantize=HOW))
    assert filter_argument(chain, 1).elements == ceil(outputs / 32) * 32 * ceil(inputs / 4) * 4 * prod(kernel)


@given(st.integers(2, 300), st.sampled_from([(3, 3), (2, 5)]))
def test_memory_holds_a_weight_for_each_output_of_a_depthwise_conv(channels: int, kernel: tuple[int, int]) -> None:
    chain = chain_of(channels, Conv2d(out_channels=channels, kernel=kernel, groups=channels, requantize=HOW))
    assert filter_argument(chain, 0).elements == ceil(channels / 32) * 32 * prod(kernel)


def test_a_depthwise_weight_stands_at_its_output_and_tap() -> None:
    """The last column of the kernel lies first, as the engine takes it."""
    conv = Conv2d(out_channels=40, kernel=(3, 3), groups=40, requantize=HOW)
    chain = chain_of(40, conv)
    tensors, plan = random_tensors(chain), Case("depthwise", chain, ENGINE).settled
    filter, (taps, *_) = tensors.filters[0], [each.taps for each in layouts_of(chain, plan).packings]
    names = [argument.shape for argument in packed_arguments(chain, tensors, plan)]
    assert names[1] == (2, 1, 3, 3, 32), filter_name(1)
    stored = packed_arguments(chain, tensors, plan)[1].reshape(2, 9, 32)
    for place, tap in enumerate(taps):
        assert np.array_equal(stored[:, place].ravel()[:40], filter.reshape(40, 9)[:, tap])


def test_masks_keep_each_input_once() -> None:
    """Together they are the diagonal of 32 by 32."""
    masks = np.array([own_inputs(four) for four in range(8)]).reshape(8, 32, 4)
    assert np.array_equal(masks.transpose(1, 0, 2).reshape(32, 32), 255 * np.eye(32, dtype=int))
