"""Channels with next to no weights, whose biases lie at the ends of int32, as of quantisers: taken and right."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from hypothesis import given
from hypothesis import strategies as st

from hexconv.model import Imported
from hexconv.spec import choose_kernels
from hexconv.spec.case import beyond_int32, largest_sum
from hexconv.spec.dtypes import LARGEST_INT32
from hexconv.sweep.judging import judge
from tests.model.answers import integer_errors, saved
from tests.model.quantised import Quantised

IMAGE_SCALE, OUTPUT_SCALE, INPUTS, ZERO = 0.02, 0.05, 8, 128
QUANTISERS_MOST = round((2**31 - 1) / 1.0001)
BIASES = st.one_of(st.sampled_from([QUANTISERS_MOST, 2**31 - 2, 2**30]), st.integers(2**29, 2**31 - 2))


@dataclass(frozen=True)
class Channel:
    """One output channel: its largest weight, its bias, and the code that the bias alone makes, zero point apart."""

    weight: int
    bias: int
    code: float

    @property
    def scale(self) -> float:
        """The scale of its weights."""
        return abs(self.code) * OUTPUT_SCALE / (abs(self.bias) * IMAGE_SCALE)


DEAD = st.builds(
    lambda weight, bias, code: Channel(weight, bias if code > 0 else -bias, code),
    st.sampled_from([0, 1, 127]),
    BIASES,
    st.one_of(st.floats(1e-9, 0.4), st.floats(1, 120), st.floats(-120, -1), st.floats(300, 900)),
)
LIVE = st.just(Channel(127, 4000, 20.0))


def network(channels: list[Channel], seed: int = 0) -> onnx.ModelProto:
    """A QDQ conv of these channels."""
    net, random = Quantised("dead", (1, INPUTS, 4, 5), "uint8"), np.random.default_rng(seed)
    weights = np.stack([random.integers(-each.weight, each.weight + 1, (INPUTS, 3, 3)) for each in channels])
    scales = np.array([each.scale for each in channels], np.float32)
    units = net.constant([each.bias for each in channels], "int32")
    inputs = [
        net.dequantize("image", IMAGE_SCALE, ZERO),
        net.node("DequantizeLinear", [net.constant(weights, "int8"), net.constant(scales, "float32")], axis=0),
        net.node("DequantizeLinear", [units, net.constant(np.float32(IMAGE_SCALE) * scales, "float32")], axis=0),
    ]
    return net.model(net.quantize(net.node("Conv", inputs), OUTPUT_SCALE, ZERO))


def imported(channels: list[Channel], seed: int = 0) -> tuple[Imported, list[int]]:
    """A QDQ conv of these channels as it is imported, and how far it is from ONNX's own answer."""
    model = network(channels, seed)
    with tempfile.TemporaryDirectory() as folder:
        found = saved(model, Path(folder))
    return found, integer_errors(model, found)


@given(st.lists(DEAD, min_size=1, max_size=5), st.lists(LIVE, max_size=2), st.integers(0, 9))
def test_dead_channels_are_taken_and_right(dead: list[Channel], live: list[Channel], seed: int) -> None:
    found, errors = imported([*dead, *live], seed)
    assert max(errors) <= 1
    [case], weights = found.cases, found.weights(0)
    [conv], [choice] = case.chain.conv, choose_kernels(case.chain, None, "hexagon")
    most = largest_sum(case.chain, 0, weights["filter1"], weights["bias1"])
    assert conv.sum_limit == most
    assert choice.used == "plain" or most <= LARGEST_INT32 or case.chain.saturates(0)
    assert bool(choice.cost) == (choice.used == "plain")


def test_a_channel_whose_sums_leave_int32_is_told_with_its_figure() -> None:
    live, wide = Channel(127, 4000, 20), Channel(127, 2**31 - 2, 126.5)
    found, _ = imported([live, wide])
    [case], weights = found.cases, found.weights(0)
    taps = map(int, weights["filter1"][1].ravel())
    farthest = int(weights["bias1"][1]) + sum(max(-ZERO * tap, (255 - ZERO) * tap) for tap in taps)
    assert list(beyond_int32(case.chain, weights)) == [
        f"conv1: sums of channel 1 reach {farthest}, {farthest - LARGEST_INT32} beyond int32"
    ]
    assert not list(beyond_int32(imported([live])[0].cases[0].chain, weights))


def test_dead_channels_run_on_every_kernel_as_numpy_says() -> None:
    found, errors = imported([Channel(0, QUANTISERS_MOST, 60), Channel(127, 2**31 - 2, 1e-4), Channel(127, 4000, 20)])
    assert errors == [0]
    [case] = found.cases
    assert choose_kernels(case.chain, None, "hexagon")[0].used == "hvx"
    assert judge(case).outcome == "agrees"
    wide, _ = imported([Channel(127, 2**31 - 2, 1.5), Channel(127, 4000, 20)])
    assert wide.cases[0].chain.sum_dtype(0) == "int64"
    assert judge(wide.cases[0]).outcome == "agrees"
