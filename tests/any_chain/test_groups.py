"""Convs in groups: dense convs whose filters are zero elsewhere, for the filters and the MACs of one group."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

from hexconv.analyze import cache_footprints, planned_work
from hexconv.compute import reference
from hexconv.run.tensors import random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan
from hexconv.sweep.judging import judge
from tests.deep import one_in

DEPTHWISE = Conv2d(
    out_channels=96,
    kernel=(3, 3),
    padding=Padding(top=1, left=1, bottom=1, right=1),
    groups=96,
    activation="relu6",
    bias=True,
)
BLOCK = Chain(
    input=(1, 20, 12, 24),
    conv=(Conv2d(out_channels=96, activation="relu6"), DEPTHWISE, Conv2d(out_channels=24, kernel=(3, 3))),
)
"""1x1 up, 3x3 depthwise, and a 3x3 that has the depthwise conv make two row steps in each of its own."""

PLANS = [
    Plan(kernel="plain"),
    Plan(kernel="plain", k_split=2, h_split=2),
    Plan(kernel="plain", k_split=3, order="h_outer", filters="resident"),
    Plan(kernel="plain", k_split=2, h_split=1, order="h_outer", halo="roll"),
    Plan(kernel="plain", k_split=2, h_split=2, buffering="double"),
]


@pytest.mark.parametrize("plan", one_in(3, PLANS), ids=lambda plan: plan.slug)
def test_a_depthwise_conv_between_two_others_agrees_in_every_respect(plan: Plan) -> None:
    assert judge(Case("depthwise", BLOCK, plan)).reasons == ()


@pytest.mark.parametrize(("channels", "outputs", "groups"), [(96, 96, 3), (64, 40, 2), (40, 20, 4), (6, 12, 6)])
def test_groups_are_dense_filters_with_zeros_between(channels: int, outputs: int, groups: int) -> None:
    conv = Conv2d(out_channels=outputs, kernel=(3, 2), stride=(2, 1), groups=groups)
    chain = Chain(input=(1, 9, 9, channels), conv=(conv,))
    tensors = random_tensors(chain)
    per_group = np.split(tensors.filters[0], groups)
    taps = [[block_diag(*(part[:, :, h, w] for part in per_group)) for w in range(2)] for h in range(3)]
    dense = np.moveaxis(np.array(taps), (0, 1), (2, 3))
    whole = replace(chain, conv=(replace(conv, groups=1),))
    expected = reference(whole, tensors.image, [dense], [None])
    np.testing.assert_allclose(reference(chain, tensors.image, tensors.filters, [None]), expected, atol=1e-12)
    assert judge(Case("groups", chain, Plan(kernel="plain"))).reasons == ()


def test_a_depthwise_filter_takes_one_vector_of_32_per_tap() -> None:
    """96 channels in three blocks: 3 x 9 taps x 32, where a dense filter of 96 inputs takes 3 x 3 x 9 x 1024."""
    caches = {cache.name: cache.shape for cache in cache_footprints(BLOCK, Plan(kernel="plain", filters="resident"))}
    assert caches["filter2_cache"] == (3, 1, 3, 3, 32)
    assert caches["filter1_cache"] == (3, 1, 1, 1, 8, 32, 4)
    assert caches["intermediate1"][3] == 3  # all channels, as in front of any other conv
    least = Plan(kernel="plain", order="h_outer", halo="roll", filters="resident")
    work = planned_work(BLOCK, least)
    assert work.macs == {"conv1": 20 * 12 * 96 * 24, "conv2": 20 * 12 * 96 * 9, "conv3": 18 * 10 * 24 * 96 * 9}
    assert work.traffic_bytes["filter2"] == 3 * 9 * 32 * 4


def test_groups_of_whole_blocks_keep_the_packed_filter() -> None:
    chain = Chain(input=(1, 8, 8, 128), conv=(Conv2d(out_channels=128, kernel=(3, 3), groups=2),))
    assert cache_footprints(chain, Plan(kernel="plain", k_split=2))[1].shape == (2, 2, 3, 3, 8, 32, 4)
