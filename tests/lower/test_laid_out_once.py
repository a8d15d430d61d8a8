"""No call lays weights out: filters arrive in the order of their loads, and what is loaded of them is multiplied."""

from dataclasses import replace
from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from hypothesis import assume, given
from hypothesis import strategies as st
from tvm import tirx
from tvm.ir import Call, TensorLoad

from hexconv.kernel import layouts_of
from hexconv.kernel.dense import DenseForm
from hexconv.kernel.depthwise import moved_words, taps_of, variants
from hexconv.kernel.pixels import PixelForm
from hexconv.kernel.row_conv import row_conv
from hexconv.lower import lower_case
from hexconv.lower.buffers import contents_of, is_register
from hexconv.lower.counting import PRODUCTS_OF_LANE, _intrinsic
from hexconv.run.tensors import packed_arguments, random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.dtypes import INTEGER_RANGE
from tests.draws import LOWERED

HOW = Requantize(multiplier=1518025757, shift=-9, zero_point=3)
DTYPES = (("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8"))
WEIGHTS = ("filter", "words")


def one_conv(channels: int, dtypes: tuple[str, str], zero: int, columns: int = 40, **fields) -> Chain:
    """A chain of one conv, whose filter has the zero point `zero` as uint8."""
    dtype, filters = dtypes
    conv = Conv2d(filter_zero_point=zero + INTEGER_RANGE[filters][0], requantize=HOW, **fields)  # pyright: ignore[reportArgumentType]
    return Chain(input=(1, 17, columns, channels), dtype=dtype, filter_dtype=filters, zero_point=5, conv=(conv,))  # pyright: ignore[reportArgumentType]


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """A conv of any kind that HVX instructions compute: depthwise, with pixels as lanes, on dense rows, in groups."""
    kind = draw(st.sampled_from(("depthwise", "few", "dense", "groups", "tiles")))
    dtypes = draw(st.sampled_from(DTYPES))
    taps, stride = draw(st.sampled_from([(3, 3), (5, 5), (2, 4), (1, 1), (3, 7)])), draw(st.sampled_from([1, 2]))
    geometry: dict[str, Any] = {
        "kernel": taps,
        "stride": (stride, stride),
        "dilation": (1, draw(st.sampled_from([1, 1, 2, 3]))),
    }
    geometry["padding"] = Padding(**{side: draw(st.integers(0, 1)) for side in ("top", "left", "bottom", "right")})
    zero = draw(st.sampled_from([0, 128, 90]))
    if kind == "depthwise":
        channels = draw(st.sampled_from([12, 40, 96]))
        return one_conv(channels, dtypes, zero, out_channels=channels, groups=channels, **geometry)
    if kind == "groups":
        return one_conv(16, dtypes, zero, out_channels=24, groups=2, **geometry)
    inputs = draw({"few": st.integers(1, 13), "dense": st.integers(1, 3), "tiles": st.just(40)}[kind])
    outputs = draw(st.sampled_from({"few": [3, 12, 40], "dense": [32, 64, 96], "tiles": [32, 70]}[kind]))
    return one_conv(inputs, dtypes, zero, out_channels=outputs, **geometry)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan of the HVX kernel with any knobs that matter to filters."""
    words = {
        "filters": draw(st.sampled_from(["per_tile", "resident"])),
        "buffering": draw(st.sampled_from(["single", "double"])),
        "storage": draw(st.sampled_from(["vtcm", "global", "filters+output", "input+output"])),
        "activations": draw(st.sampled_from(["words", "splats"])),
        "threads": draw(st.sampled_from([1, 2])),
        "k_split": draw(st.integers(1, 3)),
    }
    return Plan(kernel="hvx", order="h_outer", **words)


def of_blocks(chain: Chain, plan: Plan) -> Case:
    """A case whose steps have no more blocks than there are."""
    blocks = ceil(chain.conv[0].out_channels / 32)
    return Case("once", chain, replace(plan, k_split=min(plan.k_split, blocks)), target="hexagon")


@LOWERED
@given(chains(), plans())
def test_what_is_loaded_of_a_filter_reaches_memory_through_products_alone(chain: Chain, plan: Plan) -> None:
    case = of_blocks(chain, plan)
    assume(case.kernels[0].used == "hvx")
    lowered = lower_case(case)
    assert _stored_weights(lowered.unmerged["main"]) == set()
    assert {each.name for each in lowered.caches} & {"taps1", "filter1_cache", "words1"} <= {"filter1_cache", "words1"}


@pytest.mark.parametrize("storage", ["vtcm", "global"])
def test_a_filter_has_one_cache_and_words_lie_outside_of_vtcm(storage: str) -> None:
    for channels, outputs, name, scope in ((3, 64, "filter1_cache", None), (12, 12, "words1", "global")):
        chain = one_conv(channels, DTYPES[0], 128, out_channels=outputs, kernel=(3, 3))
        case = Case("one", chain, Plan(kernel="hvx", order="h_outer", storage=storage), target="hexagon")  # pyright: ignore[reportArgumentType]
        caches = {each.name: each.scope for each in lower_case(case).caches if held_by_name(each.name) in WEIGHTS}
        assert caches == {name: scope or case.settled.scope("filters")}


def held_by_name(name: str) -> str:
    """The role that a name tells."""
    return contents_of(tirx.Var(name, "handle")).role


def _stored_weights(main: tirx.PrimFunc) -> set[str]:
    """Name the memory that weights are stored to as they were loaded, but for the caches that they are copied to."""
    tainted: set[tirx.Var] = set()
    found: set[str] = set()

    def is_weight(value: tirx.Expr) -> bool:
        rest = tvm_ffi.structural_map(value, (Call, _no_product))
        loads: list[TensorLoad] = []
        variables: list[tirx.Var] = []
        tvm_ffi.structural_walk(rest, [(TensorLoad, loads.append), (tirx.Var, variables.append)])
        of_filters = any(contents_of(load.source).role in WEIGHTS for load in loads)
        return of_filters or any(variable in tainted for variable in variables)

    def bound(bind: tirx.Bind) -> None:
        if is_weight(bind.value):
            tainted.add(bind.var)

    def stored(store: tirx.BufferStore) -> None:
        if not is_weight(store.value):
            return
        if is_register(store.buffer):
            tainted.add(store.buffer)
        elif contents_of(store.buffer).role not in WEIGHTS:
            found.add(str(store.buffer.name))

    for _ in range(2):  # a register may be read in a loop before it is written
        tvm_ffi.structural_walk(main.body, [(tirx.Bind, bound), (tirx.BufferStore, stored)])
    return found


def _no_product(call: Call) -> tirx.Expr:
    if call.op.name == "tirx.call_llvm_pure_intrin" and _intrinsic(int(call.args[0])).startswith(
        tuple(PRODUCTS_OF_LANE)
    ):
        return tirx.const(0, "int32").astype(str(call.ty)) if "x" not in str(call.ty) else _zeros(call)
    return call


def _zeros(call: Call) -> tirx.Expr:
    return tirx.Broadcast(tirx.const(0, "int32"), int(str(call.ty).partition("x")[2]))


@given(
    width=st.integers(1, 9),
    rows=st.integers(1, 7),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 4),
    seed=st.integers(0, 1 << 30),
)
def test_shifted_words_of_a_filter_are_its_taps(width: int, rows: int, stride: int, dilation: int, seed: int) -> None:
    """Each variant, put together by shifts of words of 32 bits, has each tap in its byte, and 0 in the others."""
    conv = Conv2d(out_channels=8, kernel=(rows, width), stride=(1, stride), dilation=(1, dilation))
    taps = np.random.default_rng(seed).integers(1, 256, width)
    words = [int.from_bytes(bytes(int(tap) for tap in taps[at : at + 4]), "little") for at in range(0, width, 4)]
    for variant in variants(conv):
        value = 0
        for part in moved_words(conv, variant):
            moved = words[part.word] << 8 * part.up if part.up >= 0 else words[part.word] >> -8 * part.up
            kept = 15 if part.kept is None else part.kept
            moved &= int.from_bytes(bytes(255 if kept >> byte & 1 else 0 for byte in range(4)), "little")
            assert not value & moved  # so that a sum is what is put together
            value |= moved
        wanted = [0] * 4
        for tap, byte in taps_of(conv, variant):
            wanted[byte] = int(taps[tap])
        assert list(value.to_bytes(4, "little")) == wanted


@LOWERED
@given(chains(), st.integers(1, 3))
def test_a_packed_filter_has_the_weights_in_the_order_of_loads(chain: Chain, k_split: int) -> None:
    """Of a depthwise conv, of pixels as lanes and of dense rows: from the definition of what a product reads."""
    plan = Plan(kernel="hvx", order="h_outer", k_split=k_split)
    case = of_blocks(chain, plan)
    assume(case.kernels[0].used == "hvx")
    layouts, tensors = layouts_of(chain, case.settled), random_tensors(chain, 3)
    conv, packing = chain.conv[0], layouts.packings[0]
    filter = np.asarray(packed_arguments(chain, tensors, case.settled)[1])
    assert str(filter.dtype) == packing.dtype
    assert packing.dtype == "uint8" or conv.filter_zero_point + packing.shift in range(-127, 128)
    weights = tensors.filters[0].astype(int) + packing.shift
    is_depthwise = conv.groups == conv.out_channels > 1
    side = 1 if is_depthwise else filter.shape[-3]
    bytes_of = filter.reshape(filter.shape[0], -1, side, 32, 4).astype(int)
    if is_depthwise:
        _check(bytes_of, conv, lambda row, step: [(0, row, step * 4 + byte) for byte in range(4)], weights)
        return
    assume(conv.groups == 1)
    form = row_conv(chain, 0, layouts, case.settled).form
    assume(isinstance(form, PixelForm | DenseForm))
    assert isinstance(form, PixelForm | DenseForm)
    planes = form.planes

    def of_step(row: int, step: int) -> list[tuple[int, int, int]]:
        group, read = divmod(step, len(planes.reads))
        places = [(4 * group + channel, row, tap) for tap, channel in planes.reads[read].taps]
        return places + [(-1, row, 0)] * (4 - len(places))

    _check(bytes_of, conv, of_step, weights)


def _check(filter: np.ndarray, conv: Conv2d, of_step, weights: np.ndarray) -> None:
    """Compare each byte of a packed filter with the weight that its product wants; 0 where there is no weight."""
    groups, steps, side, *_ = filter.shape
    of_row = steps // conv.kernel[0]
    assert groups * side >= ceil(conv.out_channels / 32)
    for output, step in product(range(conv.out_channels), range(steps)):
        block, lane = divmod(output, 32)
        group, beside = divmod(block, side)
        for byte, (channel, row, tap) in enumerate(of_step(*divmod(step, of_row))):
            there = 0 <= channel < weights.shape[1] and tap < conv.kernel[1]
            wanted = weights[output, channel, row, tap] if there else 0
            assert filter[group, step, beside, lane, byte] == wanted, (output, step, byte)
