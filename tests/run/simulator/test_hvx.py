"""Vector code: HVX multiply-accumulates are exact, dense, and may keep vectors in workspaces.

TVM's own tensor intrinsics are left alone: importing them parses the kernels of every GPU, which takes most of a
minute inside pytest.
"""
# TVMScript states a buffer's shape where Python states a type.
# pyright: reportInvalidTypeForm=false

import numpy as np
import pytest
import tvm
from tvm.script import tirx as T  # noqa: N812 -- TVMScript is written with this name

from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.run.simulator.runner import Simulator

pytestmark = pytest.mark.simulator

PIXELS, WORDS, LANES, WORD = 64, 16, 32, 4


@T.prim_func(s_tir=True)
def main(
    data: T.Buffer((64, 16, 4), "uint8"),
    filters: T.Buffer((16, 128), "uint8"),
    output: T.Buffer((64, 32), "int32"),
):
    total = T.alloc_buffer((64, 32), "int32")
    for p in range(64):
        total[p, T.ramp(0, 1, 32)] = T.broadcast(0, 32)
        for w in range(16):
            total[p, T.ramp(0, 1, 32)] = T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id("llvm.hexagon.V6.vrmpyub.acc.128B"),
                total[p, T.ramp(0, 1, 32)],
                T.reinterpret(filters[w, T.ramp(0, 1, 128)], dtype="int32x32"),
                T.reinterpret(data[p, w, T.ramp(0, 1, 4)], dtype="int32"),
                dtype="int32x32",
            )
        output[p, T.ramp(0, 1, 32)] = total[p, T.ramp(0, 1, 32)]


def test_a_product_of_vectors_is_exact_and_dense() -> None:
    rng = np.random.default_rng(5)
    data = rng.integers(0, 256, (PIXELS, WORDS, WORD), dtype="uint8")
    filters = rng.integers(0, 256, (WORDS, LANES, WORD), dtype="uint8")
    operands = [data, filters.reshape(WORDS, -1)]
    measured = Simulator().run(tvm.IRModule({"main": main}), operands, [((PIXELS, LANES), "int32")])
    expected = np.einsum("pwb,wkb->pk", data.astype("int64"), filters.astype("int64"))
    np.testing.assert_array_equal(measured.outputs[0], expected)
    assert measured.counts is not None
    assert measured.counts.hvx_instructions >= PIXELS * WORDS
    assert PIXELS * WORDS * LANES * WORD / measured.counts.packets > 10


def test_a_vector_in_a_workspace_is_counted_before_the_run() -> None:
    kernel = compile_for_hexagon(tvm.IRModule({"main": main}), "v67")
    assert kernel.heap_bytes == (PIXELS * LANES * 4,)
