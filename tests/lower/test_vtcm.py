"""VTCM: its capacities come from TVM, its buffers get memory on every target."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from hypothesis import given
from hypothesis import strategies as st
from tvm import te, tirx
from tvm.target import Target, list_tags

from hexconv.errors import InputError
from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.lower.vtcm import place_in_vtcm
from hexconv.spec.capacities import CAPACITIES_BYTES, GRANULE_BYTES, SCOPE, capacity_bytes, granules_bytes

SHAPE = (64, 2048)


def through_vtcm() -> tvm.IRModule:
    """2x + 1, each row through an input cache in VTCM, lowered to flat buffers by TVM."""
    a = te.placeholder(SHAPE, "float32", name="a")
    b = te.compute(SHAPE, lambda i, j: a[i, j] * 2.0 + 1.0, name="b")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func([a, b])}))
    block = schedule.get_sblock("b")
    row, _ = schedule.get_loops(block)
    schedule.compute_at(schedule.cache_read(block, 0, SCOPE), row)
    passes = [
        tvm.s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        tvm.s_tir.transform.ConvertBlocksToOpaque(),
        tvm.s_tir.transform.CompactBufferAllocation(),
        tvm.s_tir.transform.LowerOpaqueBlock(),
        tirx.transform.FlattenBuffer(),
    ]
    return tvm.ir.transform.Sequential(passes)(schedule.mod)


def test_capacities_are_those_of_tvm() -> None:
    tags = (tag for tag in list_tags() or {} if tag.startswith("qcom/hexagon-"))
    told = {tag.removeprefix("qcom/hexagon-"): int(Target(tag).attrs["vtcm-capacity"]) for tag in tags}
    assert list(CAPACITIES_BYTES.items()) == sorted(told.items())
    assert capacity_bytes("v66") == 256 * 1024
    assert capacity_bytes("v68") == 4 * 1024 * 1024


def test_where_tvm_does_not_say_how_much_there_is_somebody_has_to() -> None:
    with pytest.raises(InputError, match=r"plan\.vtcm_bytes is missing, and TVM knows the VTCM of v65, v66, v68"):
        capacity_bytes("v67")
    assert capacity_bytes("v67", 77) == 77


@given(st.integers(1, 2**32))
def test_a_buffer_takes_whole_granules(size: int) -> None:
    taken = granules_bytes(size)
    assert taken % GRANULE_BYTES == 0
    assert size <= taken < size + GRANULE_BYTES


def test_tvm_itself_still_cannot_lower_the_scope() -> None:
    """The reason for `place_in_vtcm`; when this fails it can go."""
    with pytest.raises(tvm.error.InternalError, match="tvm_stack_make_shape"):
        tirx.build(through_vtcm(), target="llvm")


def test_placed_buffers_run_on_the_host() -> None:
    library = tirx.build(place_in_vtcm(through_vtcm()), target="llvm")
    a = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    b = tvm.runtime.tensor(np.full(SHAPE, np.nan, np.float32))
    library["main"](tvm.runtime.tensor(a), b)
    np.testing.assert_array_equal(b.numpy(), a * 2 + 1)


def test_no_buffer_of_the_scope_is_left_to_tvm() -> None:
    left: list[str] = []
    placed = place_in_vtcm(through_vtcm())["main"]
    tvm_ffi.structural_walk(placed.body, (tirx.AllocBuffer, lambda node: left.append(node.buffer.scope())))
    assert SCOPE not in left


def test_a_compiled_kernel_says_what_it_takes_of_vtcm() -> None:
    kernel = compile_for_hexagon(through_vtcm(), "v67")
    assert kernel.vtcm_bytes == (SHAPE[1] * 4,)
    assert kernel.heap_bytes == ()
