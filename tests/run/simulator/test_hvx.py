"""Vector code: TVM's own HVX intrinsics, exact, and many multiply-accumulates per packet."""

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.s_tir.tensor_intrin import hexagon as hexagon_intrinsics

from hexconv.lower.hexagon import compile_for_hexagon
from hexconv.run.simulator.runner import Simulator

pytestmark = pytest.mark.simulator

PIXELS, CHANNELS, LANES, WORD = 64, 64, 32, 4


def product(filter_dtype: str, intrinsic: str) -> tvm.IRModule:
    """A 1x1 conv over packed filters, one vrmpy an inner step."""
    data = te.placeholder((PIXELS, CHANNELS), "uint8", name="data")
    filters = te.placeholder((CHANNELS // WORD, LANES, WORD), filter_dtype, name="filters")
    word, byte = te.reduce_axis((0, CHANNELS // WORD), "word"), te.reduce_axis((0, WORD), "byte")

    def pixel(p: tvm.tirx.Var, k: tvm.tirx.Var) -> tvm.tirx.Expr:
        terms = data[p, word * WORD + byte].astype("int32") * filters[word, k, byte].astype("int32")
        return te.sum(terms, axis=[word, byte])

    output = te.compute((PIXELS, LANES), pixel, name="output")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([data, filters, output])}))
    p, k, w, b = schedule.get_loops(schedule.get_sblock("output"))
    schedule.reorder(p, w, k, b)
    schedule.decompose_reduction(schedule.get_sblock("output"), w)
    schedule.tensorize(k, intrinsic)
    return schedule.mod


@pytest.mark.parametrize(
    ("filter_dtype", "intrinsic"),
    [
        ("uint8", hexagon_intrinsics.VRMPY_u8u8i32_INTRIN),
        ("int8", hexagon_intrinsics.VRMPY_u8i8i32_INTRIN),
    ],
)
def test_a_tensorised_product_is_exact_and_dense(filter_dtype: str, intrinsic: str) -> None:
    rng = np.random.default_rng(5)
    limits = np.iinfo(filter_dtype)
    data = rng.integers(0, 256, (PIXELS, CHANNELS), dtype="uint8")
    filters = rng.integers(limits.min, limits.max, (CHANNELS // WORD, LANES, WORD), dtype=filter_dtype, endpoint=True)
    measured = Simulator().run(product(filter_dtype, intrinsic), [data, filters], [((PIXELS, LANES), "int32")])
    words = data.reshape(PIXELS, -1, WORD).astype("int64")
    np.testing.assert_array_equal(measured.outputs[0], np.einsum("pwb,wkb->pk", words, filters.astype("int64")))
    assert measured.counts is not None
    assert measured.counts.hvx_instructions >= PIXELS * CHANNELS // WORD
    assert PIXELS * CHANNELS * LANES / measured.counts.packets > 10


def test_an_intrinsic_vectors_become_workspaces_that_are_counted_before_the_run() -> None:
    kernel = compile_for_hexagon(product("int8", hexagon_intrinsics.VRMPY_u8i8i32_INTRIN), "v67")
    assert 128 in kernel.heap_bytes
