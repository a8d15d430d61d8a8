"""The arithmetic of activations against numpy in float64: over all float16 values, and over all sizes of float32."""

import numpy as np
import pytest
import tvm
from tvm import tirx

from hexconv.compute.activation_code import CALLED, FUNCTIONS
from hexconv.lower.stages import with_arithmetic
from hexconv.run.host import TARGET
from hexconv.spec import Conv2d
from hexconv.spec.activations import CLAMPS, CURVES
from hexconv.spec.curves import activated

LARGEST = float(np.finfo(np.float32).max)
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
"""All values of float16, which has infinities and what is no number, too."""
SIZES = np.geomspace(np.finfo(np.float32).smallest_subnormal, LARGEST, 200_001)
DENSE = np.concatenate([np.linspace(-20, 20, 400_001), np.linspace(-110, 110, 200_001), SIZES, -SIZES, [-0.0, 0.0]])
NEAR = {
    "leaky_relu": 2e-7,
    "prelu": 2e-7,
    "elu": 3e-7,
    "sigmoid": 2e-7,
    "hardsigmoid": 2e-7,
    "tanh": 3e-7,
    "silu": 3e-7,
    "hardswish": 3e-7,
    "gelu": 3e-7,
    "gelu_tanh": 4e-7,
}
"""By activation, the largest error that is allowed, relative to the larger of the result and 1."""


def conv_of(name: str) -> Conv2d:
    """A conv with this activation; leaky_relu has a slope that multiplies errors."""
    slope = -1.75 if name == "leaky_relu" else None
    return Conv2d(out_channels=1, activation=name, activation_slope=slope)  # pyright: ignore[reportArgumentType]


def computed(name: str, values: np.ndarray) -> np.ndarray:
    """What the arithmetic of an activation makes of float32 values."""
    conv, count = conv_of(name), len(values)
    source, target = (tirx.decl_buffer((count,), "float32", each) for each in ("source", "target"))
    place = tirx.Var("i", "int32")
    slope, offset = (tirx.const(each, "float32") for each in (conv.slope or 0.5, conv.offset))
    called = tirx.call_pure_extern("float32", f"{CALLED}{name}", tirx.BufferLoad(source, [place]), slope, offset)
    loop = tirx.For(place, 0, count, tirx.ForKind.SERIAL, tirx.BufferStore(target, called, [place]))
    function = tirx.PrimFunc([source, target], loop).with_attr("global_symbol", "main").with_attr("tirx.noalias", True)
    module = with_arithmetic(tvm.IRModule({"main": function}))
    made = tvm.runtime.tensor(np.zeros(count, np.float32))
    tvm.compile(module, target=TARGET)["main"](tvm.runtime.tensor(values.astype(np.float32)), made)
    return made.numpy().astype(np.float64)


def expected(name: str, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return activated(values.astype(np.float32).astype(np.float64), conv_of(name), np.array([0.5]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_error_is_a_few_roundings_of_float32(name: str) -> None:
    values = np.concatenate([HALVES.astype(np.float64)[np.isfinite(HALVES)], DENSE])
    true, found = expected(name, values), computed(name, values)
    error = np.abs(found - true)
    allowed = NEAR[name] * np.maximum(np.abs(true), 1)
    overflows = np.abs(true) > LARGEST  # a slope takes some sums beyond float32
    assert np.isinf(found[overflows]).all()
    assert (error[~overflows] <= allowed[~overflows]).all(), values[np.argmax(np.where(overflows, 0, error / allowed))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinities_and_what_is_no_number(name: str) -> None:
    """What numpy makes of them; what is no number stays none."""
    values = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(np.isnan(computed(name, values)), np.isnan(expected(name, values)))
    with np.errstate(all="ignore"):
        finite = expected(name, values)[:2]
    np.testing.assert_array_equal(computed(name, values)[:2], finite)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "elu"])
def test_small_results_are_exact_in_their_own_size(name: str) -> None:
    """Sigmoids of numbers far below zero; tanh and elu near it."""
    values = np.linspace(-87, 0, 50_001) if name == "sigmoid" else -SIZES[(SIZES > 1e-30) & (SIZES < 1)]
    true = expected(name, values)
    assert np.max(np.abs(computed(name, values) - true) / np.abs(true)) < 6e-7


@pytest.mark.parametrize("name", sorted(set(CURVES) - {"none"}))
def test_what_is_known_of_a_curve(name: str) -> None:
    """It never rises or falls more steeply, leaves no bound, and has that value at 0."""
    conv, values = conv_of(name), np.linspace(-12, 12, 96_001)
    made, curve = activated(values, conv, np.array([0.5])), conv.curve
    steepest = np.max(np.abs(np.diff(made) / np.diff(values)))
    slope = conv.slope or 0.5
    assert steepest <= curve.steepest(slope) * (1 + 1e-3)
    assert steepest >= 0.9 * min(curve.steepest(slope), 1.75)
    assert np.abs(made).max() <= curve.bound
    assert activated(np.zeros(1), conv, np.array([0.5]))[0] <= curve.at_zero


def test_every_activation_of_floats_has_its_arithmetic() -> None:
    assert {*FUNCTIONS, *CLAMPS} == set(CURVES) == {*NEAR, *CLAMPS}
