"""The draw is fair, complete and the same for everybody."""

from collections import Counter
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from hexconv.compute.limits import check_supported
from hexconv.errors import Unsupported
from hexconv.spec import Case, tensor_extents
from hexconv.spec.chain import FILTER_DTYPES
from hexconv.sweep.random_case import random_case

CASES = [random_case(seed, index) for seed in range(3) for index in range(200)]


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_a_case_has_a_generator_of_its_own(seed: int, index: int) -> None:
    case = random_case(seed, index)
    assert case == random_case(seed, index)
    assert case != random_case(seed, index + 1)
    assert case != random_case(seed + 1, index)
    assert Case.parse(case.to_toml(), case.name) == case


def features(case: Case) -> Iterator[str]:
    """What of the scope a case covers."""
    chain, plan, outputs = case.chain, case.plan, tensor_extents(case.chain)[1:]
    yield from (plan.order, plan.halo, plan.filters, f"{plan.kernel} kernel", f"{plan.threads} threads", plan.simd)
    yield from (chain.dtype, plan.storage, f"{len(chain.conv)} convs", f"batch {chain.input[0]}")
    for axis, size in zip(("height", "width"), chain.input[1:3], strict=True):
        yield f"{axis} {'1' if size == 1 else 'in whole blocks' if size % 8 == 0 else 'with a rest'}"
    for shape in chain.shapes:
        yield f"channels {'1' if shape[3] == 1 else 'in whole blocks' if shape[3] % 32 == 0 else 'with a rest'}"
    for split, most in (
        (plan.k_split, [output.channel_blocks for output in outputs]),
        (plan.h_split, [output.row_blocks for output in outputs]),
    ):
        yield "split in one" if split == 1 else "split in many"
        yield from ("split that leaves a rest" for blocks in most if blocks % split and split < blocks)
    for index, conv in enumerate(chain.conv):
        yield from (f"kernel rows {conv.kernel[0]}", f"kernel columns {conv.kernel[1]}", f"bias {conv.bias}")
        yield from (f"stride {conv.stride}", f"dilation {conv.dilation}", f"activation {conv.activation}")
        sides = {conv.padding.top, conv.padding.left, conv.padding.bottom, conv.padding.right}
        yield f"padding of conv {index}: {'none' if sides == {0} else 'asymmetric' if len(sides) > 1 else 'even'}"
        inputs = chain.filter_shapes[index][1]
        yield "one group" if conv.groups == 1 else "depthwise" if inputs == 1 else "groups"
        if conv.groups > 1:
            yield f"groups of {'whole blocks' if inputs % 32 == 0 else 'other sizes'}"
        if chain.is_integer:
            yield f"{chain.dtype} with {chain.dtype_of_filters} filters"
            yield f"rounding {conv.requantize.rounding if conv.requantize else 'none'}"
            yield f"{chain.dtype_of_filters} filter zero point {'0' if conv.filter_zero_point == 0 else 'other'}"


def test_every_part_of_the_scope_is_drawn() -> None:
    seen = Counter(feature for case in CASES for feature in set(features(case)))
    pairs = [(rows, columns) for rows in (1, 2, 3) for columns in (1, 2, 3)]
    expected = {
        *("k_outer", "h_outer", "recompute", "roll", "per_tile", "resident", "plain kernel", "host kernel"),
        *("avx2", "avx512", "1 threads", "4 threads"),
        *(
            "float32",
            "float16",
            "int8",
            "uint8",
            "int16",
            "global",
            "vtcm",
            "split in many",
            "split that leaves a rest",
        ),
        *(f"{count} convs" for count in (1, 2, 3, 4)),
        *(f"batch {count}" for count in (1, 2, 3, 4)),
        *(
            f"{axis} {kind}"
            for axis in ("height", "width", "channels")
            for kind in ("1", "in whole blocks", "with a rest")
        ),
        *(f"kernel {axis} {size}" for axis in ("rows", "columns") for size in range(1, 8)),
        *(f"{name} {pair}" for name in ("stride", "dilation") for pair in pairs),
        *(f"padding of conv {index}: {kind}" for index in range(4) for kind in ("none", "asymmetric")),
        *("bias True", "bias False", "activation relu", "activation relu6", "activation none"),
        *("one group", "depthwise", "groups", "groups of whole blocks", "groups of other sizes"),
        *(f"{dtype} with {other} filters" for dtype, others in FILTER_DTYPES.items() for other in others),
        *("rounding away", "rounding up", "rounding none"),
        *("int8 filter zero point 0", "int8 filter zero point other", "uint8 filter zero point other"),
    }
    assert {feature: seen[feature] for feature in expected if seen[feature] < 5} == {}


def test_hardly_anything_is_refused() -> None:
    refused = 0
    for case in CASES:
        try:
            check_supported(case.chain)
        except Unsupported:
            refused += 1
    assert refused < len(CASES) / 100
