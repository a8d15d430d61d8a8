"""What is needed at least: pixel by pixel from the definition of a convolution; and no plan of any kernel does less."""

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hexconv.analyze import needed_work, planned_work
from hexconv.analyze.caches import DTYPE_BYTES
from hexconv.search import Space, evaluate
from hexconv.search.machine import rates
from hexconv.spec import Chain, Plan
from hexconv.spec.choices import Kernel
from hexconv.sweep.random_case import random_case
from tests.deep import one_in
from tests.strategies import chains

ANY = chains()


def needed_by_pixel(chain: Chain) -> tuple[dict[str, int], dict[str, int]]:
    """Elements of the input and of the filters, and products: from masks over all elements, the output's all set."""
    elements, macs = {}, {}
    masks = [np.zeros(shape, bool) for shape in chain.shapes]
    masks[-1][:] = True
    for number in range(len(chain.conv), 0, -1):
        conv, (_, height, width, channels) = chain.conv[number - 1], chain.shapes[number - 1]
        inputs, outputs = channels // conv.groups, conv.out_channels // conv.groups
        read, source = masks[number], masks[number - 1]
        taps = np.zeros((conv.out_channels, inputs, *conv.kernel), bool)
        macs[f"conv{number}"] = 0 if conv.pool else int(read.sum()) * inputs * prod(conv.kernel)
        if conv.add:  # it stands where its channels do, and a conv reads all channels
            masks[conv.add.tensor] |= read
        of_groups = read.reshape(*read.shape[:3], conv.groups, outputs).any(axis=-1)
        reached = source.reshape(*source.shape[:3], conv.groups, inputs)  # the same memory
        image, row, column, group = np.nonzero(of_groups)
        for tap in product(*map(range, conv.kernel)):
            y = np.arange(read.shape[1]) * conv.stride[0] + tap[0] * conv.dilation[0] - conv.padding.top
            x = np.arange(read.shape[2]) * conv.stride[1] + tap[1] * conv.dilation[1] - conv.padding.left
            rows, columns = (y >= 0) & (y < height), (x >= 0) & (x < width)
            inside = rows[row] & columns[column]
            reached[image[inside], y[row[inside]], x[column[inside]], group[inside]] = True
            taps[..., tap[0], tap[1]] = np.asarray(read[:, rows][:, :, columns].any(axis=(0, 1, 2))).reshape(-1, 1)
        if not conv.pool:
            elements[f"filter{number}"] = int(taps.sum())
    return {**elements, "input": int(masks[0].sum())}, macs


@given(ANY)
def test_needed_is_what_masks_over_all_pixels_say(chain: Chain) -> None:
    needed, (elements, macs) = needed_work(chain), needed_by_pixel(chain)
    assert needed.macs == macs
    sizes = {name: DTYPE_BYTES[chain.dtype if name == "input" else chain.dtype_of_filters] for name in elements}
    assert {name: needed.traffic_bytes[name] for name in elements} == {
        name: count * sizes[name] for name, count in elements.items()
    }


@given(ANY)
def test_no_plan_of_the_plain_kernel_does_less(chain: Chain) -> None:
    needed = needed_work(chain)
    space = Space.of(chain, Plan(kernel="plain"))
    few = Space(space.words, space.h_splits[:6], space.k_splits[:3])
    grid = evaluate(chain, few, rates("v68"))
    assert grid.traffic_bytes.min() >= sum(needed.traffic_bytes.values())
    assert grid.macs.min() >= sum(needed.macs.values())


@given(ANY, st.integers(1, 4), st.integers(1, 3), st.sampled_from(("plain", "hvx")), st.booleans())
def test_no_tensor_and_no_conv_of_a_plan_takes_less(
    chain: Chain, h_split: int, threads: int, kernel: Kernel, rolls: bool
) -> None:
    words: dict[str, Any] = (
        {"order": "h_outer", "halo": "roll", "filters": "resident"} if rolls and kernel == "plain" else {}
    )
    own: dict[str, Any] = {"threads": threads} if kernel == "hvx" else {}
    plan = Plan(h_split=h_split, kernel=kernel, **own, **words)
    planned, needed = planned_work(chain, plan), needed_work(chain)
    for name, least in needed.traffic_bytes.items():
        assert planned.traffic_bytes[name] >= least
    for name, least in needed.macs.items():
        assert planned.macs[name] >= least


@pytest.mark.parametrize("seed", one_in(16, range(16)))
def test_none_of_250_drawn_plans_does_less(seed: int) -> None:
    """These are plans of all kernels, with all knobs that they have; 4000 of them with the deep ones."""
    for case in (random_case(100 + seed, index) for index in range(250)):
        planned, needed = planned_work(case.chain, case.settled), needed_work(case.chain)
        less = [name for name, least in needed.traffic_bytes.items() if planned.traffic_bytes[name] < least]
        less += [name for name, least in needed.macs.items() if planned.macs[name] < least]
        assert not less, f"{case.name}: {less}"
