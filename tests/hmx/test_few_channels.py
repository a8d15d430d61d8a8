"""Taps of a first conv of few channels lie in channels: fewer taps, rows copied to the byte, exact in any plan."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import tirx

from hexconv.analyze.block_grid import blocks_of_plan, blocks_traffic, crosses_lines, engine_packets
from hexconv.analyze.needed import needed_macs
from hexconv.analyze.planned import Planned
from hexconv.compute.reference import convolution
from hexconv.errors import HexconvError
from hexconv.lower import lower_case
from hexconv.lower.crouton_rows import CroutonRow
from hexconv.lower.unfolded_rows import EXCHANGES, UnfoldedRows, gathered
from hexconv.run.host import count
from hexconv.run.tensors import Array, packed_arguments, random_tensors
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize, tensor_extents
from hexconv.spec.choices import Engine
from hexconv.spec.dtypes import Dtype
from hexconv.spec.phases import in_phases, unfolded_conv, unfolding_of
from hexconv.spec.unfolded import Unfolding
from hexconv.sweep.random_chains import Seeded
from tests.deep import one_in
from tests.hmx.test_crouton_rows import accesses
from tests.hmx.test_kernel import check

HOW = Requantize(multiplier=1518500250, shift=-8)
VECTOR_BYTES, CHANNEL_BLOCK = 128, 32
SIDES = ("top", "left", "bottom", "right")


def drawn(draw: Seeded) -> Case | None:
    """Draw a case of a few channels with any knobs; None where the engine doesn't serve it."""
    dtype: Dtype = draw.one_of("uint8", "int8")
    least, channels = 0 if dtype == "uint8" else -128, draw.one_of(1, 1, 2, 3, 3, 3, 4, 5, 8, 10)
    filter_dtype: Dtype = draw.one_of("int8", "int8", dtype)
    zero_point = least if draw.is_one_in(3) else least + draw.number(0, 255)
    convs = list[Conv2d]()
    for number in range(draw.one_of(1, 1, 2)):
        engine: Engine = draw.one_of("fast", "exact")
        how = replace(HOW, shift=-draw.number(6, 9), zero_point=least + draw.number(0, 255), engine=engine)
        kernel = draw.number(1, 7), draw.number(1, 7)
        convs.append(
            Conv2d(
                out_channels=draw.one_of(1, 8, 20, 32, 40, 64),
                kernel=draw.one_of((3, 3), (3, 3), (7, 7), (5, 5), kernel)
                if not number
                else draw.one_of((1, 1), (3, 3)),
                stride=draw.one_of((1, 1), (2, 2), (1, 2), (2, 1), (3, 3))
                if not number
                else draw.one_of((1, 1), (2, 2), (3, 3)),
                dilation=draw.one_of((1, 1), (1, 1), (1, 1), (2, 2), (1, 2), (3, 1)) if not number else (1, 1),
                padding=Padding(**{side: draw.number(0, 4) for side in SIDES}),
                bias=True,
                filter_zero_point=draw.one_of(0, 0, 3, -5) if filter_dtype == "int8" else draw.one_of(0, 128, 131),
                requantize=how,
            )
        )
    chain = Chain(
        input=(draw.one_of(1, 1, 2), draw.number(1, 30), draw.number(1, 40), channels),
        dtype=dtype,
        filter_dtype=filter_dtype,
        zero_point=zero_point,
        conv=tuple(convs),
        input_layout=draw.one_of("NHWC", "NHWC", "NHWC", "NHWC", "NHWC", "NHCW32c"),
        output_layout=draw.one_of("NHWC", "NHWC8h8w32c"),
    )
    plan = Plan(
        kernel="hmx",
        k_split=draw.one_of(1, 2),
        h_split=draw.one_of(1, 1, 2),
        order=draw.one_of("k_outer", "h_outer"),
        halo=draw.one_of("recompute", "roll"),
        filters=draw.one_of("per_tile", "resident"),
        buffering=draw.one_of("single", "single", "double"),
        padding_rows=draw.one_of("read", "slabs"),
        threads=draw.one_of(1, 1, 2, 4),
    )
    case = Case("few", chain, plan)
    return case if all(choice.used == "hmx" for choice in case.kernels) else None


def cases(number: int) -> Iterator[Case]:
    """Yield a stream of cases that can be lowered, unfolded, and whose caches don't cross a line of VTCM."""
    for attempt in range(1000):
        try:
            case = drawn(Seeded(11, number, attempt))
            if case and unfolding_of(case.chain) and not crosses_lines(Planned.of(case).blocks).any():
                lower_case(case)
                yield case
        except HexconvError:
            continue


@pytest.mark.simulator
@pytest.mark.parametrize("number", one_in(12, range(96)))
def test_few_channels_are_exact_in_any_plan(number: int) -> None:
    """Results are numpy's, fringe too, and caches, bytes, MACs and packets are as predicted."""
    check(next(cases(number)))


@pytest.mark.simulator
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("engine", ["exact", "fast"])
def test_the_stem_of_a_resnet_is_exact(engine: Engine, threads: int) -> None:
    """7x7 with stride 2, unfolded along columns, in rings."""
    check(stem(48, engine, threads))


def stem(size: int, engine: Engine = "fast", threads: int = 1) -> Case:
    """Return a case of a ResNet's first conv over square images of a size."""
    padding = Padding(top=3, left=3, bottom=3, right=3)
    how = replace(HOW, shift=-9, zero_point=3, engine=engine)
    conv = Conv2d(out_channels=64, kernel=(7, 7), stride=(2, 2), padding=padding, bias=True, requantize=how)
    chain = Chain(input=(1, size, size, 3), dtype="uint8", filter_dtype="int8", zero_point=114, conv=(conv,))
    plan = Plan(kernel="hmx", k_split=2, order="h_outer", halo="roll", filters="resident", threads=threads)
    return Case("stem", chain, plan)


def test_columns_that_no_later_conv_reads_are_not_counted() -> None:
    """Of ten columns a stride of 3 reads nine: those hold 18 columns of 19 in memory, in 17 rows of taps."""
    before = Conv2d(out_channels=64, stride=(2, 2), padding=Padding(top=1, left=1, right=1), requantize=HOW)
    behind = Conv2d(out_channels=3, kernel=(2, 3), stride=(3, 3), padding=Padding(bottom=1), requantize=HOW)
    convs = (replace(before, kernel=(3, 3)), behind)
    case = Case("unread", Chain(input=(1, 19, 19, 2), dtype="uint8", conv=convs), Plan(kernel="hmx"))
    assert count(lower_case(case)).traffic_bytes["input"] == 17 * 18 * 2
    check(case)


def test_a_stem_takes_seven_taps_and_the_bytes_of_its_channels() -> None:
    """14 by 14 tiles, two blocks of outputs, 7 taps of 21 channels, which are 6 vectors of weights."""
    axes = blocks_of_plan(stem(224).chain, stem(224).plan)
    did, moved = engine_packets(axes).of_one, {name: int(each.max()) for name, each in blocks_traffic(axes).items()}
    assert did.taps == 14 * 14 * 2 * 7
    assert moved["filter1"] == 2 * 7 * 6 * VECTOR_BYTES
    assert moved["input"] == 224 * 224 * 3
    assert needed_macs(stem(224).chain) / did.macs == pytest.approx(7 * 21 / (7 * 32))


def three_by_three(**more: object) -> Chain:
    """Return a chain of a 3x3 conv over 3 channels, but for what is stated."""
    conv = Conv2d(out_channels=8, kernel=(3, 3), requantize=HOW)
    known = {"input": (1, 16, 16, 3), "dtype": "uint8", "filter_dtype": "int8", "conv": (conv,)}
    return Chain(**{**known, **more})  # pyright: ignore[reportArgumentType]


def test_as_many_taps_are_unfolded_as_fill_a_block() -> None:
    """All of a kernel if they fit, else its columns, else its rows; of two ways alike the one that reads fewer rows."""
    kernels = {(3, 3): (3, 3), (7, 7): (1, 7), (10, 3): (1, 3), (8, 11): (8, 1), (1, 11): (1, 1), (5, 5): (1, 5)}
    for kernel, expected in kernels.items():
        found = unfolding_of(three_by_three(input=(1, 32, 32, 3), conv=(Conv2d(out_channels=8, kernel=kernel),)))
        assert (found.kernel if found else (1, 1)) == expected, kernel


def test_other_inputs_stay_as_they_are() -> None:
    """Those in blocks, of many channels, of a conv in groups, of floats, and those that fill no vector."""
    grouped = Conv2d(out_channels=3, kernel=(3, 3), groups=3)
    others = [
        {"input_layout": "NHWC8h8w32c"},
        {"input": (1, 16, 16, 11)},
        {"conv": (grouped,)},
        {"dtype": "float32", "filter_dtype": None, "conv": (replace(grouped, groups=1),)},
        {"input": (1, 6, 7, 3)},
    ]
    assert unfolding_of(three_by_three())
    for other in others:
        chain = three_by_three(**other)
        assert unfolding_of(chain) is None
        assert in_phases(chain, "hmx").input == chain.input
    assert in_phases(three_by_three(), "plain").input == three_by_three().input


SIZES, PAIRS = st.integers(1, 12), st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Draw a chain whose input is unfolded."""
    channels = draw(st.integers(1, 10))
    most = CHANNEL_BLOCK // channels
    ways = [(a, b) for a, b in product(range(1, 8), range(1, 12)) if 1 < a <= most or 1 < b <= most]
    kernel, stride, dilation = draw(st.sampled_from(ways)), draw(PAIRS), draw(PAIRS)
    padding = Padding(**{side: draw(st.integers(0, 5)) for side in SIDES})
    conv = Conv2d(out_channels=3, kernel=kernel, stride=stride, dilation=dilation, padding=padding)
    sizes = [
        made * by + reach for made, by, reach in zip(draw(st.tuples(SIZES, SIZES)), stride, conv.reach, strict=True)
    ]
    return three_by_three(input=(1, sizes[0], sizes[1] + VECTOR_BYTES, channels), conv=(conv,), zero_point=7)


def by_definition(image: Array, by: Unfolding, zero_point: int) -> Array:
    """Unfold an input element by element."""
    found = np.full(by.shape, zero_point, image.dtype)
    for row, column, down, across in product(*map(range, (*by.outputs, *by.kernel))):
        y = row * by.stride[0] + down * by.dilation[0] - by.before[0]
        x = column * by.stride[1] + across * by.dilation[1] - by.before[1]
        if 0 <= y < image.shape[1] and 0 <= x < image.shape[2]:
            first = (down * by.kernel[1] + across) * image.shape[3]
            found[:, row, column, first : first + image.shape[3]] = image[:, y, x]
    return found


@given(chains(), st.integers(0, 9))
def test_the_conv_of_the_unfolded_input_is_the_conv(chain: Chain, seed: int) -> None:
    """Its filter as it is packed, over the input unfolded by definition, gives numpy's sums of the chain itself."""
    by, random = unfolding_of(chain), np.random.default_rng(seed)
    assert by
    image, filter = random.integers(0, 255, chain.input), random.integers(-128, 127, chain.filter_shapes[0])
    expected = convolution(chain.conv[0], image, filter, 7)
    of_nest = in_phases(chain, "hmx")
    assert of_nest.conv[0] == unfolded_conv(chain.conv[0], by)
    outputs, inputs, rows, columns = of_nest.filter_shapes[0]
    split = filter.reshape(outputs, chain.input[3], by.kernel[0], rows, by.kernel[1], columns)
    unfolded = split.transpose(0, 2, 4, 1, 3, 5).reshape(outputs, inputs, rows, columns)
    assert np.array_equal(convolution(of_nest.conv[0], by_definition(image, by, 7), unfolded, 7), expected)


@given(chains())
def test_rows_and_columns_that_are_copied_are_those_that_taps_meet(chain: Chain) -> None:
    """As the definition of the unfolded input meets them."""
    by = unfolding_of(chain)
    assert by
    rows, columns = (np.arange(size) for size in by.outputs)
    for tap, (first, end) in enumerate(by.rows_there):
        place = rows * by.stride[0] + tap * by.dilation[0] - by.before[0]
        assert [*rows[(place >= 0) & (place < by.image[1])]] == [*range(first, end)]
    met = {int(x) * by.stride[1] + tap * by.dilation[1] - by.before[1] for x in columns for tap in range(by.kernel[1])}
    assert by.columns_read(range(by.outputs[1])) == len(met & {*range(by.image[2])})


@given(chains(), st.integers(1, 3))
def test_exchanges_take_every_tap_to_its_channels(chain: Chain, phases: int) -> None:
    """All taps of four pixels once, whatever the channels, strides and dilations are, by loads of one vector each."""
    by = unfolding_of(chain)
    assert by
    channels, apart, found = by.image[3], phases * by.stride[1] * by.image[3], list[tuple[int, int, int]]()
    for each in gathered(by, apart):
        lanes = np.arange(VECTOR_BYTES)
        for over in EXCHANGES:
            lanes = np.where(np.array(each.way) & over, lanes[np.arange(VECTOR_BYTES) ^ over], lanes)
        assert len({move.row for move in each.moves}) == 1
        for move in each.moves:
            source = move.pixel * apart + move.column * by.dilation[1] * channels
            target = move.pixel * CHANNEL_BLOCK + (move.row * by.kernel[1] + move.column) * channels
            assert [*lanes[target : target + channels] + each.begin] == [*range(source, source + channels)]
            found.append((move.pixel, move.row, move.column))
    assert sorted(found) == [*product(range(4), range(by.kernel[0]), range(by.kernel[1]))]


@pytest.mark.parametrize("number", one_in(4, range(16)))
def test_no_byte_outside_of_an_image_is_read(number: int) -> None:
    """Whatever rows of taps it lacks, and however far its first and last taps leave it."""
    chain = next(cases(200 + number)).chain
    tensor, size = tensor_extents(in_phases(chain, "hmx"))[0], prod(chain.input)
    assert tensor.unfolded
    pixels, croutons = (tirx.decl_buffer((1 << 20,), chain.dtype, name) for name in ("pixels", "croutons"))
    begin, crouton = (tirx.BufferLoad(buffer, [tirx.IntImm("int32", 0)]) for buffer in (pixels, croutons))
    reader, seen = UnfoldedRows(tensor, tensor.unfolded, chain.dtype), list[tuple[int, int]]()
    for image in range(len(tensor.images)):
        for at in {0, tensor.unfolded.outputs[0] // 2, tensor.unfolded.outputs[0] - 1}:
            row = tirx.IntImm("int32", tensor.unfolded.place(0, at, 0))
            known = CroutonRow(begin, crouton, None, None, image, 7, int(chain.dtype == "int8"), 1, row)
            seen += accesses(reader.emit_read(known), pixels, {})
    assert seen
    assert all(0 <= first < last <= size for first, last in seen)


def test_a_filter_is_packed_by_fours_of_its_channels() -> None:
    """21 channels are 24 in the filter, the last three zeros; the other 8 of a block aren't there."""
    case = stem(32)
    tensors = random_tensors(case.chain)
    filter = packed_arguments(case.chain, tensors, case.settled)[1]
    assert filter.shape == (2, 1, 7, 1, 6, 32, 4)
    assert not filter[..., 5, :, 1:].any()
    # Taps of one phase lie together: rows 0, 2, 4, 6, then 1, 3, 5.
    assert np.array_equal(filter[1, 0, 4, 0, 3, 9], tensors.filters[0][41, [0, 1, 2, 0], 1, [4, 4, 4, 5]])
