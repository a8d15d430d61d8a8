"""What the packets of a nest are spent on: laws that tie its counts to those of multiplications and of copies."""

import re
from collections import Counter
from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.analyze.row_grid import nest_parts, parts_of_stages, rows_macs, rows_of_plan, rows_touched
from hexconv.analyze.row_nest import planned_rows
from hexconv.kernel.channels import ChannelForm
from hexconv.kernel.depthwise import DepthwiseForm, variants
from hexconv.kernel.pixels import PixelForm
from hexconv.lower import lower_case
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.knobs import Buffering
from hexconv.sweep.random_case import drawn_plan
from hexconv.sweep.random_chains import Scope
from tests.draws import LOWERED
from tests.strategies import Shrinking

HOW = Requantize(multiplier=0x5A7B3C1D, shift=-7)


@st.composite
def nests(draw: st.DrawFn) -> tuple[Chain, Plan]:
    """Chains of dense convs without zero points, and plans of theirs."""
    numbers = Shrinking(draw)
    kernels = st.sampled_from(((1, 1), (3, 3), (1, 3), (5, 1)))
    convs = [
        Conv2d(
            out_channels=numbers.size(160),
            kernel=draw(kernels),
            padding=Padding(top=numbers.number(0, 1), left=numbers.number(0, 1)),
            requantize=HOW,
        )
        for _ in range(numbers.number(1, 3))
    ]
    size = (1, numbers.number(13, 40), numbers.number(13, 40), numbers.size(160))
    chain = Chain(input=size, dtype="uint8", conv=tuple(convs))
    plan = drawn_plan(
        numbers, chain, "hvx", Scope(dtypes=("uint8",), storages=("global",), turned=("filters", "buffering"))
    )
    return chain, replace(plan, order="h_outer")


@LOWERED
@given(st.integers(1, 2), st.integers(13, 70), st.integers(1, 70), st.sampled_from([(3, 3), (1, 5)]))
def test_tiles_of_a_depthwise_conv_are_those_of_its_own_columns(
    stride: int, columns: int, channels: int, kernel: tuple[int, int]
) -> None:
    """Behind a conv that halves the columns or not, it takes the parts that it takes alone."""
    first = Conv2d(out_channels=channels, kernel=(1, 3), stride=(1, stride), requantize=HOW)
    depthwise = Conv2d(out_channels=channels, kernel=kernel, groups=channels, requantize=HOW)
    assume(channels > 1)
    behind = Chain(input=(1, 9, columns, 40), dtype="uint8", conv=(first, depthwise))
    alone = Chain(input=behind.shapes[1], dtype="uint8", conv=(depthwise,))
    plan = Plan(kernel="hvx", order="h_outer")
    forms = [planned_rows(chain, plan).convs[-1].form for chain in (behind, alone)]
    parts = [form.row_parts() for form in forms if isinstance(form, DepthwiseForm)]
    assert dict(parts[0]) == dict(parts[1])
    assert any(parts[0].values())


@given(nests())
def test_inner_loops_have_room_for_every_multiplication(nest: tuple[Chain, Plan]) -> None:
    """Two a packet where tiles are whole, and one at least: a tile of few pixels loads more than it multiplies."""
    chain, plan = nest
    axes = rows_of_plan(chain, plan)
    parts = nest_parts(axes)
    rows = [axes.made(index + 1)[0].item() for index in axes.convs]
    forms = [conv.form for conv in axes.one.convs]
    again = sum(
        form.begun_again * of_conv for form, of_conv in zip(forms, rows, strict=True) if isinstance(form, ChannelForm)
    )
    multiplied = sum(macs.item() for macs in rows_macs(axes).values()) // 128 - again
    of_channels = (f"multiply{blocks}" for blocks in range(1, 5))
    packets = sum(parts[name] for name in (*of_channels, "begun", "of_pixels", "of_windows", "of_windows1"))
    assert multiplied / 2 <= packets <= multiplied
    widths = [shape[2] for shape in chain.shapes[1:]]
    if all(width % 8 == 0 for width in widths):
        assert packets == multiplied / 2


@given(nests())
def test_who_copies_is_a_matter_of_buffering_alone(nest: tuple[Chain, Plan]) -> None:
    chain, plan = nest
    single, double = (nest_parts(rows_of_plan(chain, replace(plan, buffering=how))) for how in ("single", "double"))
    started = ("start", "row_start", "padded_start", "block_start", "ring_row", "group")
    engine = (*started, "asked", "asked_side", "handed", "ring_handed")
    in_pixels = ("pixel_line", "pixel_loop")
    by_kernel = ("line", "open", "vector", "unit", "rolled", "filter", "output", "output_line", *in_pixels)
    moved = ("read", "ring_read", "write", "side", "output_part", *by_kernel)
    assert all(double[name] == 0 for name in moved)
    assert all(single[name] == 0 for name in engine)
    axes = rows_of_plan(chain, plan)
    sizes = enumerate(_filter_bytes(chain, plan))
    assert single["filter"] * 128 == sum(axes.stagings(index).item() * size for index, size in sizes)
    others = set(single) | set(double)
    assert all(single[name] == double[name] for name in others if name not in (*moved, *engine))


def _filter_bytes(chain: Chain, plan: Plan) -> list[int]:
    shapes = [layout.physical_shape for layout in planned_rows(chain, plan).layouts.filters]
    sizes = []
    for shape in shapes:
        size = 1
        for extent in shape:
            size *= extent
        sizes.append(size)
    return sizes


@pytest.mark.parametrize(("pixels", "blocks"), [(16, 4), (20, 4), (18, 2)])
def test_a_row_of_pixels_is_cut_into_tiles(pixels: int, blocks: int) -> None:
    """Of 4 pixels where there are 4 blocks, of 8 where there are 2; what is left is one tile more."""
    conv = Conv2d(out_channels=32 * blocks, requantize=HOW)
    chain = Chain(input=(1, 8, pixels, 32), dtype="uint8", conv=(conv,))
    parts = nest_parts(rows_of_plan(chain, Plan(kernel="hvx", k_split=blocks, order="h_outer")))
    width = 4 if blocks == 4 else 8
    assert parts["tile"] == 8 * -(-pixels // width)
    assert parts["sum"] == 8 * pixels * blocks


@pytest.mark.parametrize(("k_split", "runs"), [(1, 1), (2, 1), (4, 1), (6, 3), (7, 4), (8, 1)])
def test_blocks_that_do_not_lie_side_by_side_are_runs_of_their_own(k_split: int, runs: int) -> None:
    """Of 8 blocks: 6 come as twice 3 and 2, 7 as 4 and 3 and 1, and no two of them lie side by side throughout."""
    conv = Conv2d(out_channels=256, requantize=HOW)
    chain = Chain(input=(1, 8, 8, 64), dtype="uint8", conv=(conv,))
    parts = nest_parts(rows_of_plan(chain, Plan(kernel="hvx", k_split=k_split, order="h_outer")))
    blocks = next(blocks for blocks in (4, 3, 2, 1) if parts[f"multiply{blocks}"])
    trips = parts[f"multiply{blocks}"] / (blocks * (8 if blocks <= 2 else 4))
    assert parts[f"apart{blocks}"] == trips * (runs - 1)


@LOWERED
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))
def test_depthwise_tiles_load_what_they_read(high: int, wide: int, stride: int, dilation: int, h_split: int) -> None:
    """The vectors of pixels and taps are those of the count of what kernels read in their caches."""
    conv = Conv2d(
        out_channels=40, groups=40, kernel=(high, wide), stride=(stride, stride), dilation=(dilation, 1), requantize=HOW
    )
    chain = Chain(input=(2, 37, 41, 40), dtype="uint8", conv=(conv,))
    axes, read = rows_of_plan(chain, Plan(kernel="hvx", order="h_outer", h_split=h_split)), Counter[str]()
    for name, size in rows_touched(axes):
        read[name] += np.asarray(size).item()
    parts = nest_parts(axes)
    loaded = read["filter1_cache"] / 128 / ceil(conv.kernel[1] / 4)
    assert (parts["quad"] * 128, parts["tap"]) == (read["input_cache"], loaded * len(variants(conv)))
    assert parts["half"] <= parts["quad"] * 2
    assert parts["lane"] == rows_macs(axes)["conv1"].item() // 128


@pytest.mark.parametrize(("channels", "vectors", "pairs"), [(5, 69, 8), (8, 0, 0), (13, 139, 0)])
def test_rows_of_pixels_are_filled_where_the_input_has_fewer_channels(channels: int, vectors: int, pairs: int) -> None:
    """As TVM lowers it, copies then write over what vectors and doublewords hold of all rows."""
    conv = Conv2d(out_channels=32, kernel=(1, 3), padding=Padding(left=1, right=1), requantize=HOW)
    case = Case("rows", Chain(input=(1, 8, 137, channels), dtype="uint8", conv=(conv,)), Plan(kernel="hvx"))
    parts = nest_parts(rows_of_plan(case.chain, case.settled))
    sides = 0 if vectors else 8 * 2
    filled = vectors + pairs * 8 / 128
    assert (parts["blank"], parts["blank_pair"], parts["store"]) == (filled, sides, 0)
    text = lower_case(case).module.script()
    stored = [re.findall(rf"for {name} in range\((\d+)\):\n.*Broadcast", text) for name in ("vector", "pair")]
    assert stored == [[str(vectors)] * (vectors > 0), [str(pairs)] * (pairs > 0)]


@pytest.mark.parametrize("buffering", ["single", "double"])
def test_fringe_of_the_last_plane_is_filled_by_vectors(buffering: Buffering) -> None:
    """As TVM lowers it: rows of 20 + 4 pixels of 44 channels, of which the second plane is filled with its padding."""
    conv = Conv2d(out_channels=44, kernel=(3, 3), groups=11, padding=Padding(left=1, right=1), requantize=HOW)
    chain = Chain(input=(1, 8, 20, 44), dtype="uint8", conv=(conv,))
    case = Case("planes", chain, Plan(kernel="hvx", buffering=buffering))
    parts, text = nest_parts(rows_of_plan(chain, case.settled)), lower_case(case).module.script()
    assert (parts["blank"], parts["blank_pair"], parts["store"]) == (8 * 6, 8 * 4 * 32 // 8, 0)
    assert "for vector in range(6):" in text
    assert not re.search(r"for ci in range\(trips", text), "no byte by byte"
    assert not re.search(r"T\.(max|min)\(.*\bco\b", text), "lengths of runs are numbers"


def test_pixels_of_a_depthwise_input_lie_in_planes_of_32_channels() -> None:
    """Of 70 channels: two full planes, and 6 channels of the third; the others, which nobody reads, stay unfilled."""
    conv = Conv2d(out_channels=70, groups=70, requantize=HOW)
    chain = Chain(input=(1, 8, 8, 70), dtype="uint8", conv=(conv,))
    parts = nest_parts(rows_of_plan(chain, Plan(kernel="hvx")))
    assert (parts["pixel_line"], parts["pixel_loop"], parts["line"]) == (64 * 3, 8 * 3, 3), (
        "a line for each filter's tile"
    )
    assert (parts["output_line"], parts["store"]) == (3, 0)
    assert parts["unit"] == 64 * (16 + 16 + 3), "halfwords: pixels are 70 bytes apart"


@LOWERED
@given(st.sampled_from((1, 2, 4)), st.integers(1, 3), st.integers(20, 120), st.integers(1, 60))
def test_rows_of_blocks_are_written_in_runs_of_a_block(rows: int, k_split: int, channels: int, width: int) -> None:
    """Runs of rows x 8 columns x 32 channels make up the output, whole blocks of it."""
    conv = Conv2d(out_channels=channels, requantize=HOW)
    chain = Chain(input=(1, 16, width, 32), dtype="uint8", conv=(conv,))
    axes = rows_of_plan(chain, Plan(kernel="hvx", order="h_outer", rows=rows, k_split=k_split))
    written = parts_of_stages(axes)["write output"]
    assert written["output_line"] * rows * 8 * 32 == written["output_part"] * 128
    assert not written["output"]


@LOWERED
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 2), st.integers(1, 40))
def test_lanes_of_pixels_lay_out_and_scale_all_that_they_have(
    inputs: int, taps: int, stride: int, channels: int
) -> None:
    """Dealt vectors, merged words and others are what a row of planes takes; each sum of a channel is scaled."""
    conv = Conv2d(out_channels=channels, kernel=(1, taps), stride=(1, stride), requantize=replace(HOW, rounding="up"))
    axes = rows_of_plan(Chain(input=(1, 8, 140, inputs), dtype="uint8", conv=(conv,)), Plan(kernel="hvx"))
    form = axes.one.convs[0].form
    assume(isinstance(form, PixelForm))
    assert isinstance(form, PixelForm)
    parts = nest_parts(axes)
    rows = 8 * axes.one.convs[0].tiles.total()
    assert parts["dealt"] + parts["merged"] + parts["plane"] == rows * form.planes.laid
    assert parts["phased"] == rows * (stride > 1 and form.planes.laid > 0)
    assert bool(parts["merged"]) == bool(form.planes.merged)
    assert parts["lane_scale"] == parts["sum"]
    assert not parts["scale"]
    assert not parts["initial"]


@pytest.mark.parametrize(
    ("channels", "taps", "part", "lacking"),
    [(4, 3, "straight_short", 0), (16, 3, "twice_short", 0), (64, 3, "short", 0), (16, 1, "twice_short", 6)],
)
def test_short_trips_tell_what_they_lack(channels: int, taps: int, part: str, lacking: int) -> None:
    """A trip of 8 pixels and a block of channels has 8 packets; where a tile has 2 pixels, it lacks 6."""
    conv = Conv2d(out_channels=32, kernel=(taps, taps), dilation=(1, 2), requantize=HOW)
    width = 8 if lacking == 0 else 2
    size = (1, 8 + taps, width + 2 * (taps - 1), channels)
    parts = nest_parts(rows_of_plan(Chain(input=size, dtype="uint8", conv=(conv,)), Plan(kernel="hvx")))
    assert parts[part] == lacking * parts["run"]
    assert parts["twice"] == parts["run"] * (part == "twice_short")


@LOWERED
@given(nests())
def test_rings_that_hold_intermediates_take_beside_what_other_caches_take(nest: tuple[Chain, Plan]) -> None:
    """A step of several rows of each intermediate, and a row of tiles where lanes are pixels; none of the last conv."""
    chain, plan = nest
    axes = rows_of_plan(chain, replace(plan, halo="roll"))
    parts, others = nest_parts(axes), axes.convs[:-1]
    rings = bool(axes.rows(lambda counts: counts.streams).item())
    made = [[figure.item() for figure in axes.made(index + 1)] for index in others]
    tiles = [axes.one.channel_tiles(index) for index in others]
    lanes = [axes.one.convs[index].form.has_pixels for index in others]
    counts = [
        (rows * of, steps * of, is_lane) for (rows, _, steps), of, is_lane in zip(made, tiles, lanes, strict=True)
    ]
    assert parts["ring_made"] == rings * sum(rows for rows, _, is_lane in counts if is_lane)
    assert parts["ring_step"] == rings * (plan.stripe_rows > 1) * sum(steps for _, steps, _ in counts)
    assert bool(parts["ring_handed"]) == (rings and len(others) > 0 and plan.buffering == "double")
    assert not nest_parts(rows_of_plan(chain, replace(plan, halo="recompute")))["ring_step"]


@LOWERED
@given(st.integers(0, 2), st.integers(9, 70), st.integers(1, 4), st.sampled_from(("single", "double")))
def test_strips_fill_what_they_have_outside_of_the_image(
    padding: int, columns: int, w_split: int, buffering: Buffering
) -> None:
    """In each row the columns that a strip doesn't read, and those of an intermediate that it makes for nothing."""
    conv = Conv2d(out_channels=32, kernel=(1, 5), padding=Padding(left=padding, right=padding), requantize=HOW)
    chain = Chain(input=(1, 12, columns, 32), dtype="uint8", output_layout="NHWC", conv=(conv, conv))
    plan = Plan(kernel="hvx", order="h_outer", w_split=w_split, buffering=buffering)
    assume(chain.shapes[-1][2] > 0)
    axes = rows_of_plan(chain, plan)
    parts, strips = nest_parts(axes), axes.one.strips
    assert strips
    rows = [axes.made(tensor)[0].item() for tensor in (0, 1)]
    valid = sum(end - first for first, end in (strips.valid_columns(0, number) for number in range(strips.count)))
    held = axes.one.layouts.activations[0].stored_extent("W") * strips.count
    spare = 0 if strips.is_inside(0) else (held - valid) * 32 / 8
    assert parts["strip_pair"] == pytest.approx(spare * rows[0] / strips.count)
    assert parts["edge_pair"] == pytest.approx(axes.one.filled_bytes(1, rows[1]) / 8)


@pytest.mark.parametrize("width", range(50, 58))
def test_columns_behind_the_last_window_are_filled_and_rows_copied_apart(width: int) -> None:
    """As TVM lowers it: where a row has columns that the image lacks, each is filled, and no copy spans two rows."""
    conv = Conv2d(out_channels=16, kernel=(3, 3), stride=(2, 2), groups=16, requantize=HOW)
    plan = Plan(kernel="hvx", order="h_outer", rows=4, buffering="double")
    case = Case("rows", Chain(input=(1, 22, width, 16), dtype="int8", conv=(conv,)), plan)
    parts, text = (
        parts_of_stages(rows_of_plan(case.chain, case.settled))["read input"],
        lower_case(case).module.script(),
    )
    by_row = [bool(loop) for loop in re.findall(r"(for ho in range\(.*\n *)?T\.dma_copy\(0,", text)]
    filled = {int(pairs) for pairs in re.findall(r"for ho, pair in T\.grid\(\w+, (\d+)\)", text)}
    assert by_row
    assert {*by_row} == {bool(parts["padded_start"] + parts["row_start"])}
    assert filled == ({parts["blank_pair"] / parts["filled"]} if parts["filled"] else set())


def test_a_ring_whose_windows_share_no_rows_is_filled_by_one_copy_a_step() -> None:
    conv, image = Conv2d(out_channels=32, kernel=(1, 1), requantize=HOW), (1, 27, 110, 3)
    plan = Plan(kernel="hvx", order="h_outer", halo="roll", h_split=2)
    one, two = (
        parts_of_stages(rows_of_plan(Chain(input=image, dtype="uint8", conv=convs), plan))["read input"]
        for convs in ((conv,), (replace(conv, kernel=(3, 1)),))
    )
    assert (one["ring_read"], one["line"], one["read"]) == (0, 2, 2)
    assert two["ring_read"] == two["read"]


@pytest.mark.parametrize(("channels", "width"), [(1, 140), (7, 32), (12, 70), (16, 24), (23, 32), (48, 140)])
def test_channels_of_lanes_are_scaled_some_at_a_time(channels: int, width: int) -> None:
    """As TVM lowers it: each scaling is a loop of one trip, whose number LLVM doesn't know."""
    conv = Conv2d(out_channels=channels, kernel=(3, 3), requantize=replace(HOW, rounding="up"))
    case = Case("lanes", Chain(input=(1, 8, width, 2), dtype="uint8", conv=(conv,)), Plan(kernel="hvx"))
    axes = rows_of_plan(case.chain, case.settled)
    form = axes.one.convs[0].form
    assert isinstance(form, PixelForm)
    loops = len(re.findall(r"for once\w* in ", lower_case(case).module.script()))
    assert loops == sum(form.row.scalings(tile) for tile, _ in form.row.tiles)
    scaled = 6 * sum(times * form.row.scalings(tile) for tile, times in form.row.tiles)
    assert nest_parts(axes)["lane_channel"] == scaled


@pytest.mark.parametrize("channels", [16, 32, 40])
@pytest.mark.parametrize("rows", [1, 2, 8])
def test_depthwise_tiles_fill_a_loop_for_rows_made_together_unless_they_go_down(channels: int, rows: int) -> None:
    conv = Conv2d(out_channels=channels, kernel=(3, 3), groups=channels, requantize=HOW)
    axes = rows_of_plan(
        Chain(input=(1, 34, 34, channels), dtype="uint8", conv=(conv,)), Plan(kernel="hvx", order="h_outer", rows=rows)
    )
    parts, form = nest_parts(axes), axes.one.convs[0].form
    assert isinstance(form, DepthwiseForm)
    assert bool(parts["lane_fill"]) == (not form.goes_down)
    assert bool(parts["tap_halved"]) == (channels != 32)
    assert parts["tap_halved"] <= parts["tap"]
    assert not parts["blank_row"]


@pytest.mark.parametrize(("channels", "taps"), [(2, 3), (3, 3), (2, 5), (3, 5)])
def test_rows_of_taps_of_dense_windows_are_runs_where_they_are_a_loop(channels: int, taps: int) -> None:
    """As TVM lowers it: a window of up to 12 words is straight code."""
    conv = Conv2d(out_channels=64, kernel=(taps, taps), requantize=HOW)
    case = Case("dense", Chain(input=(1, 12, 70, channels), dtype="uint8", conv=(conv,)), Plan(kernel="hvx"))
    parts = nest_parts(rows_of_plan(case.chain, case.settled))
    assert parts["of_windows"] + parts["of_windows1"]
    is_loop = bool(re.search(r"for row\w* in ", lower_case(case).module.script()))
    assert parts["run"] == taps * parts["tile"] * is_loop
    assert is_loop == (taps > 3)


@pytest.mark.parametrize(("width", "runs"), [(33, 1), (34, 7)])
def test_rows_that_end_in_columns_that_nobody_reads_are_copied_one_by_one(width: int, runs: int) -> None:
    """A stride of 2 leaves the last of 34 columns out, so that rows don't lie one behind the other in memory."""
    conv = Conv2d(out_channels=32, kernel=(1, 1), stride=(2, 2), requantize=HOW)
    chain = Chain(input=(1, 7, width, 32), dtype="uint8", conv=(conv,))
    assert parts_of_stages(rows_of_plan(chain, Plan(kernel="hvx")))["read input"]["line"] == runs


@pytest.mark.parametrize(("channels", "runs"), [(8, 0), (16, 1)])
def test_a_window_of_one_trip_enters_no_loop(channels: int, runs: int) -> None:
    conv = Conv2d(out_channels=32, requantize=HOW)
    parts = nest_parts(rows_of_plan(Chain(input=(1, 8, 10, channels), dtype="uint8", conv=(conv,)), Plan(kernel="hvx")))
    assert parts["run"] == runs * parts["tile"]
    assert parts["straight_short"] == 0


@pytest.mark.parametrize(("channels", "packets"), [(48, 6 * 2 + 1), (64, 8 * 2 + 1), (80, 10 * 2 + 2)])
def test_trips_of_one_pixel_and_its_window_end_once_in_so_many_as_llvm_makes_one(channels: int, packets: float) -> None:
    conv = Conv2d(out_channels=32, filter_zero_point=3, requantize=HOW)
    chain = Chain(input=(1, 8, 1, channels), dtype="uint8", conv=(conv,))
    assert nest_parts(rows_of_plan(chain, Plan(kernel="hvx")))["within"] == pytest.approx(8 * packets)
