"""Convs whose sums leave int32: at the ends and drawn, exact on the simulator, sizes and counts included."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze import cache_usage, work_usage
from hexconv.compute import reference
from hexconv.compute.reference import convolution
from hexconv.errors import HexconvError
from hexconv.kernel import output_layout
from hexconv.layout import packed
from hexconv.lower import lower_case
from hexconv.run.host import Host, count
from hexconv.run.measurement import Runner
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import Tensors, output_shape, packed_arguments, random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, kernel_of
from hexconv.spec.knobs import Halo, Order
from hexconv.sweep.judging import judge
from tests.deep import one_in
from tests.draws import JUDGED
from tests.schedule.judged import check_on_hvx

SEEN = {"multiplier": 1 << 30, "shift": -15, "saturates_at": 2**29}
"""A limit comes to a code of 8192, so that an output shows where its sum saturated."""


def wide(zero_point: int, bias: int = 0, row: tuple[int, int] = (8, 512), stride: int = 1, **how: object) -> Chain:
    """A chain with rows of so many pixels, of so many channels; tiles sum their windows where rows are no vectors."""
    requantize = Requantize(**{**SEEN, **how})  # pyright: ignore[reportArgumentType]
    conv = Conv2d(
        out_channels=40,
        kernel=(3, 3),
        stride=(1, stride),
        filter_zero_point=zero_point,
        bias=bias > 0,
        bias_limit=bias or None,
        requantize=requantize,
    )
    return Chain(input=(1, 4, *row), dtype="int16", filter_dtype="int8", conv=(conv,))


CHAINS = {
    "no zero point": wide(0),
    "the windows count nothing": wide(-128),
    "the far zero point": wide(127, row=(9, 160), rounding="even"),
    "a bias": wide(-3, bias=10**6, stride=2, rounding="up"),
}


@pytest.mark.simulator
@pytest.mark.parametrize("kernel", ["hvx", "plain"])
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_sums_beyond_int32_saturate_at_either_end(chain: Chain, kernel: str) -> None:
    case = Case("ends", chain, Plan(kernel=kernel))  # pyright: ignore[reportArgumentType]
    assert kernel_of(chain, case.plan) == kernel
    module, largest, codes = lower_case(case).module, 0, set[int]()
    runner: Runner = Simulator(slots=False) if kernel == "hvx" else Host(calls=1)
    for activation, weight in product((-(2**15), 2**15 - 1), (-128, 0, 127)):
        tensors = mostly(chain, activation, weight)
        arguments = packed_arguments(chain, tensors, case.settled)
        run = runner.run(module, arguments, [(output_shape(chain), "int16")])
        got = packed("NHWC8h8w32c", chain.shapes[-1]).unpack(run.outputs[0])
        expected = reference(chain, tensors.image, tensors.filters, tensors.biases)
        np.testing.assert_array_equal(got, expected)
        sums = convolution(chain.conv[0], tensors.image, tensors.filters[0], 0)
        largest, codes = max(largest, int(np.abs(sums).max())), codes | set(expected.ravel().tolist())
    assert largest > 2**31
    assert {-8192, 8192} <= codes
    assert any(-8192 < code < 8192 and code for code in codes)


PER_CHANNEL = {"multiplier": "per_channel", "shift": "per_channel", "rounding": "even"}
OF_BYTES = {
    "channels as lanes": (40, Conv2d(out_channels=40, kernel=(3, 3)), {"multiplier": 1 << 30, "shift": -22}),
    "pixels as lanes": (6, Conv2d(out_channels=6, kernel=(3, 3)), {"multiplier": 3 << 29, "shift": -22}),
    "a depthwise conv": (40, Conv2d(out_channels=40, kernel=(3, 3), groups=40), PER_CHANNEL),
    "windows of dense rows": (3, Conv2d(out_channels=64, kernel=(3, 3)), {"multiplier": "per_channel", "shift": -21}),
    "small groups": (64, Conv2d(out_channels=64, groups=8), {"multiplier": 1 << 30, "shift": -22, "rounding": "even"}),
}


LIMITS: tuple[tuple[Literal["uint8", "int8"], int], ...] = tuple(product(("uint8", "int8"), (2**31 - 1, 2**29)))


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("form", "dtype", "limit"), one_in(6, [(form, dtype, limit) for dtype, limit in LIMITS for form in OF_BYTES])
)
def test_sums_of_bytes_beyond_int32_saturate_at_either_end(
    form: str, dtype: Literal["uint8", "int8"], limit: int
) -> None:
    """Biases at both ends of int32, products that lead beyond them, and limits that outputs show."""
    channels, conv, how = OF_BYTES[form]
    requantize = Requantize(zero_point=3, saturates_at=limit, **how)  # pyright: ignore[reportArgumentType]
    conv = replace(conv, bias=True, bias_limit=2**31 - 1, requantize=requantize)
    shape = (1, 5, 64, channels)
    chain = Chain(input=shape, dtype=dtype, filter_dtype="int8", zero_point=5, conv=(conv,))
    case = Case("bytes", chain, Plan(kernel="hvx", storage="vtcm"))
    assert kernel_of(chain, case.plan) == "hvx"
    lowered = lower_case(case)
    assert cache_usage(case, lowered).agrees
    assert work_usage(case, count(lowered)).agrees
    tensors = random_tensors(chain)
    ends = np.resize(np.array([2**31 - 1, 1 - 2**31, 0, 2**31 - 2000, 2000 - 2**31], np.int32), conv.out_channels)
    tensors = replace(tensors, biases=(ends,))
    sums = convolution(conv, tensors.image, tensors.filters[0], 5) + ends
    assert sums.max() > 2**31
    assert sums.min() < -(2**31)
    run = Simulator(slots=False).run(
        lowered.module, packed_arguments(chain, tensors, case.settled), [(output_shape(chain), dtype)]
    )
    np.testing.assert_array_equal(output_layout(chain).unpack(run.outputs[0]), reference(chain, *tensors.logical))


MIXED = """
[chain]
input = [1, 15, 93, 64]
dtype = "int16"
[[chain.conv]]
out_channels = 23
kernel = [1, 4]
dilation = [2, 3]
padding = [0, 6, 0, 7]
filter_l1 = 17757
requantize = { multiplier = 268435456, shift = -10, rounding = "up", saturates_at = 1073741824 }
[[chain.conv]]
out_channels = 23
stride = [17, 19]
dilation = [3, 1]
groups = 23
filter_l1 = 65535
[plan]
kernel = "hvx"
storage = "vtcm"
activations = "splats"
"""


@pytest.mark.simulator
def test_sums_of_64_bits_before_a_conv_on_hvx_are_right(tmp_path: Path) -> None:
    (tmp_path / "mixed.toml").write_text(MIXED)
    case = Case.load(tmp_path / "mixed.toml")
    assert [choice.used for choice in case.kernels] == ["plain", "hvx"]
    assert judge(case).outcome == "agrees"


def mostly(chain: Chain, activation: int, weight: int) -> Tensors:
    """Tensors that hold one value but for some random ones, fewer from column to column and channel to channel."""
    [conv], [shape], random = chain.conv, chain.filter_shapes, np.random.default_rng(5)
    image = np.full(chain.input, activation, np.int16)
    drawn = random.integers(-(2**15), 2**15 - 1, chain.input, np.int16, endpoint=True)
    image = np.where(np.arange(chain.input[3]) < (np.arange(chain.input[2]) * 128)[:, None], drawn, image)
    filter = np.full(shape, weight, np.int8)
    others = random.integers(-128, 127, shape, np.int8, endpoint=True)
    filter = np.where(np.arange(shape[0])[:, None, None, None] % 4 == 0, others, filter)
    limit = conv.bias_limit or 0
    bias = random.integers(-limit, limit, conv.out_channels, np.int32, endpoint=True) if conv.bias else None
    return Tensors(image, (filter,), (bias,), {})


@st.composite
def saturating_convs(draw: st.DrawFn) -> Conv2d:
    """A conv whose sums saturate, with any ending that hvx has for them."""
    side, around = st.integers(1, 3), draw(st.integers(0, 1))
    how = Requantize(
        multiplier=draw(st.sampled_from([1 << 30, 1518025757, "per_channel"])),
        shift=draw(st.integers(-16, -12)),
        rounding=draw(st.sampled_from(["even", "away", "up"])),
        saturates_at=draw(st.sampled_from([2**20, 2**28, 2**29, 2**29 + 1])),
    )
    return Conv2d(
        out_channels=draw(st.sampled_from([1, 24, 40, 64, 70])),
        kernel=(draw(side), draw(side)),
        stride=(draw(st.integers(1, 2)), draw(st.integers(1, 2))),
        padding=Padding(top=around, left=around, bottom=around, right=around),
        groups=draw(st.sampled_from([1, 1, 2])),
        bias=draw(st.booleans()),
        filter_zero_point=draw(st.sampled_from([-128, -1, 0, 5, 127])),
        requantize=how,
    )


@st.composite
def saturating_cases(draw: st.DrawFn) -> Case:
    """Chains of int16 by int8 with long sums, under any plan of the nest."""
    convs = draw(st.lists(saturating_convs(), min_size=1, max_size=2))
    ways: list[tuple[Order, Halo]] = [("h_outer", "roll"), ("h_outer", "recompute"), ("k_outer", "roll")]
    order, halo = draw(st.sampled_from(ways))
    try:
        chain = Chain(
            input=(1, draw(st.integers(3, 17)), draw(st.integers(3, 40)), draw(st.sampled_from([3, 64, 128, 512]))),
            dtype="int16",
            filter_dtype="int8",
            conv=tuple(convs),
        )
        plan = Plan(
            kernel="hvx",
            order=order,
            halo=halo,
            filters=draw(st.sampled_from(["resident", "per_tile"])),
            buffering=draw(st.sampled_from(["single", "double"])),
            activations=draw(st.sampled_from(["words", "splats"])),
            threads=draw(st.integers(1, 2)),
        )
        return Case("wide", chain, plan, target="hexagon")
    except HexconvError:
        assume(False)
        raise


@pytest.mark.simulator
@JUDGED
@given(saturating_cases())
def test_drawn_chains_of_long_sums_agree_in_every_respect(case: Case) -> None:
    check_on_hvx(case)
