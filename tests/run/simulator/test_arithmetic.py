"""Arithmetic that Hexagon has no instruction for comes from a library, and equals numpy's bit for bit."""

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import te, tirx

from hexconv.run.measurement import Array
from hexconv.run.simulator.runner import Simulator

pytestmark = pytest.mark.simulator

RNG = np.random.default_rng(3)
COUNT = 4096

Expression = Callable[..., tirx.Expr]


def integers(dtype: str, divisors: bool = False) -> Array:
    """All magnitudes; divisors are never 0 or -1."""
    limits = np.iinfo(dtype)
    values = RNG.integers(limits.min, limits.max, COUNT, dtype=dtype) >> RNG.integers(0, limits.bits - 1, COUNT).astype(
        dtype
    )
    return (
        np.where((values == 0) | (values == np.asarray(-1).astype(dtype)), np.asarray(7, dtype), values)
        if divisors
        else values
    )


def floats(dtype: str) -> Array:
    """Over the whole range, subnormals, infinities and NaN among them."""
    values = RNG.standard_normal(COUNT) * 10.0 ** RNG.integers(-42, 38, COUNT)
    values[:7] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38]
    return values.astype(dtype)


def requantised(x: tirx.Expr, multiplier: tirx.Expr) -> tirx.Expr:
    """Fixed point, as in int8 networks: the high half of a 64-bit product, rounded."""
    return ((x.astype("int64") * multiplier.astype("int64") + tirx.const(1 << 30, "int64")) >> 31).astype("int32")


@np.errstate(all="ignore")
def cases() -> dict[str, tuple[Expression, list[Array], Array]]:
    """Name: what the kernel computes, its operands, what numpy says."""
    i32, i32_divisors = integers("int32"), integers("int32", divisors=True)
    u32, u32_divisors = integers("uint32"), integers("uint32", divisors=True)
    i64, i64_divisors = integers("int64"), integers("int64", divisors=True)
    u64, u64_divisors = integers("uint64"), integers("uint64", divisors=True)
    f32, f32_other = floats("float32"), floats("float32")[::-1].copy()
    f64, f64_other = floats("float64"), floats("float64")[::-1].copy()
    small_f32 = (RNG.standard_normal(COUNT) * 1000).astype("float32")
    every_f16 = np.arange(1 << 16, dtype="uint16").view("float16")
    f16_other = RNG.permutation(every_f16)
    near_f16 = np.concatenate(
        [every_f16.astype("float32") * np.float32(factor) for factor in (1, 1.0003, 1.00048828125, 0.9997)]
    )
    return {
        "i32-floordiv": (tirx.floordiv, [i32, i32_divisors], i32 // i32_divisors),
        "i32-floormod": (tirx.floormod, [i32, i32_divisors], i32 % i32_divisors),
        "u32-div": (tirx.div, [u32, u32_divisors], u32 // u32_divisors),
        "u32-mod": (tirx.truncmod, [u32, u32_divisors], u32 % u32_divisors),
        "i64-floordiv": (tirx.floordiv, [i64, i64_divisors], i64 // i64_divisors),
        "i64-floormod": (tirx.floormod, [i64, i64_divisors], i64 % i64_divisors),
        "u64-div": (tirx.div, [u64, u64_divisors], u64 // u64_divisors),
        "i64-multiply": (lambda x, y: x * y, [i64, i64_divisors], i64 * i64_divisors),
        "requantise": (
            requantised,
            [i32, i32_divisors],
            ((i32.astype("i8") * i32_divisors + (1 << 30)) >> 31).astype("i4"),
        ),
        "f32-divide": (lambda x, y: x / y, [f32, f32_other], f32 / f32_other),
        "f32-multiply": (lambda x, y: x * y, [f32, f32_other], f32 * f32_other),
        "f32-add": (lambda x, y: x + y, [f32, f32_other], f32 + f32_other),
        "f32-max": (tirx.max, [small_f32, small_f32[::-1].copy()], np.maximum(small_f32, small_f32[::-1])),
        "f32-sqrt": (tirx.sqrt, [np.abs(f32)], np.sqrt(np.abs(f32))),
        "f32-round-even": (tirx.nearbyint, [small_f32], np.rint(small_f32)),
        "f32-floor": (tirx.floor, [small_f32], np.floor(small_f32)),
        "f32-to-i32": (lambda x: x.astype("int32"), [small_f32], small_f32.astype("int32")),
        "i64-to-f32": (lambda x: x.astype("float32"), [i64], i64.astype("float32")),
        "f64-divide": (lambda x, y: x / y, [f64, f64_other], f64 / f64_other),
        "f64-to-f32": (lambda x: x.astype("float32"), [f64], f64.astype("float32")),
        "f16-to-f32": (lambda x: x.astype("float32"), [every_f16], every_f16.astype("float32")),
        "f32-to-f16": (lambda x: x.astype("float16"), [near_f16], near_f16.astype("float16")),
        "f16-add": (lambda x, y: x + y, [every_f16, f16_other], every_f16 + f16_other),
        "f16-multiply": (lambda x, y: x * y, [every_f16, f16_other], every_f16 * f16_other),
        "f16-divide": (lambda x, y: x / y, [every_f16, f16_other], every_f16 / f16_other),
    }


CASES = cases()


@pytest.fixture(scope="module")
def answers() -> dict[str, Array]:
    """Every case's result, all from one kernel."""
    operands = {id(operand): operand for _, of_case, _ in CASES.values() for operand in of_case}
    tensors = {key: te.placeholder(operand.shape, str(operand.dtype)) for key, operand in operands.items()}

    def result(expression: Expression, of_case: list[Array], expected: Array) -> te.Tensor:
        arguments = [tensors[id(operand)] for operand in of_case]
        return te.compute(expected.shape, lambda i: expression(*(argument[i] for argument in arguments)))

    results = [result(*case) for case in CASES.values()]
    module = tvm.IRModule({"main": te.create_prim_func([*tensors.values(), *results])})
    outputs = [(expected.shape, str(expected.dtype)) for *_, expected in CASES.values()]
    return dict(zip(CASES, Simulator().run(module, list(operands.values()), outputs).outputs, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_arithmetic_equals_numpy(name: str, answers: dict[str, Array]) -> None:
    np.testing.assert_array_equal(answers[name], CASES[name][2])
