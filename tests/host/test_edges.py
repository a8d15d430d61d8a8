"""Where the bands of an image begin: as much to compute for each as whole rows allow, each row once."""

from dataclasses import replace
from itertools import accumulate, pairwise
from math import prod

from hypothesis import assume, example, given
from hypothesis import strategies as st

from hexconv.host.edges import BandEdges, balanced_edges, first_stripe_ends
from hexconv.host.planned import PlannedBands
from hexconv.spec import Chain, Conv2d, Padding, Plan

STRIPE_ROWS = 8


@st.composite
def convs(draw: st.DrawFn) -> Conv2d:
    """Which read every row."""
    rows = draw(st.integers(1, 5))
    padding = Padding(top=draw(st.integers(0, rows - 1)), bottom=draw(st.integers(0, rows - 1)))
    stride = draw(st.integers(1, min(rows, 2)))
    return Conv2d(out_channels=draw(st.integers(1, 99)), kernel=(rows, 1), stride=(stride, 1), padding=padding)


@st.composite
def tall_chains(draw: st.DrawFn, most_convs: int = 4) -> Chain:
    image = (1, draw(st.integers(100, 600)), 1, 3)
    return Chain(input=image, conv=tuple(draw(convs()) for _ in range(draw(st.integers(2, most_convs)))))


def needed(conv: Conv2d, rows: range, height: int) -> range:
    """Rows that a conv reads for those of its output, tap by tap."""
    read = {row * conv.stride[0] - conv.padding.top + tap for row in rows for tap in range(conv.kernel[0])}
    inside = read & set(range(height))
    return range(min(inside, default=height), max(inside, default=height - 1) + 1)


def made(chain: Chain, bands: BandEdges) -> list[list[range]]:
    """Per band, rows of its own of every tensor but the input: up to the first that the bands below need or make."""
    heights = [shape[1] for shape in chain.shapes]
    starts = []
    for band in bands.all:
        rows = [range(band.first, heights[-1])]
        for index in range(len(chain.conv) - 1, 0, -1):
            read = needed(chain.conv[index], rows[0], heights[index])
            before = band.ahead if index == len(chain.conv) - 1 else 0
            rows.insert(0, range(max(read.start - before, 0), heights[index]))
        starts.append([tensor.start for tensor in rows])
    ends = [range(heights[-1])]
    for index in range(len(chain.conv) - 1, 0, -1):
        ends.insert(0, needed(chain.conv[index], ends[0], heights[index]))
    starts.append([rows.stop for rows in ends])
    return [list(map(range, *edges)) for edges in pairwise(starts)]


def products(chain: Chain, rows: list[range]) -> int:
    return sum(len(made) * prod(taps) for made, taps in zip(rows, chain.filter_shapes, strict=True))


@given(tall_chains(), st.integers(2, 8))
def test_bands_are_in_order_and_have_all_rows(chain: Chain, count: int) -> None:
    bands = balanced_edges(chain, count, STRIPE_ROWS)
    assume(bands.are_all_wide)
    assert (bands.output[0], bands.output[-1], bands.bands) == (0, chain.shapes[-1][1], count)
    for tensor in zip(*made(chain, bands), strict=True):
        assert all(rows.start <= rows.stop for rows in tensor)


BELOW_ITS_SHARE = Chain(
    input=(1, 465, 1, 3),
    conv=(
        Conv2d(out_channels=35, kernel=(3, 1), stride=(2, 1), padding=Padding(top=2, bottom=2)),
        Conv2d(out_channels=1, kernel=(5, 1), stride=(2, 1), padding=Padding(bottom=1)),
        Conv2d(out_channels=2, kernel=(4, 1)),
        Conv2d(out_channels=11, kernel=(5, 1), padding=Padding(top=1)),
    ),
)
"""The second of seven bands makes a row more than its share, and rows that the first one leaves to it."""


@example(BELOW_ITS_SHARE, 7)
@given(tall_chains(), st.integers(2, 8))
def test_bands_above_an_edge_do_their_share_but_for_a_row(chain: Chain, count: int) -> None:
    bands = balanced_edges(chain, count, STRIPE_ROWS)
    assume(bands.are_all_wide)
    done = [*accumulate(products(chain, rows) for rows in made(chain, bands))]
    strides = [prod(conv.stride[0] for conv in chain.conv[index + 1 :]) for index in range(len(chain.conv))]
    of_a_row = products(chain, [range(rows) for rows in strides])
    over = [above - done[-1] * band // count for band, above in enumerate(done[:-1], start=1)]
    assert all(-of_a_row / 2 <= more < of_a_row for more in over)  # rows that are handed up leave half a row at most


def test_rows_of_the_last_intermediate_even_out_what_rows_of_the_output_leave() -> None:
    conv = Conv2d(out_channels=128, kernel=(3, 3))
    chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    bands = balanced_edges(chain, 2, STRIPE_ROWS)
    assert [[len(rows) for rows in band] for band in made(chain, bands)] == [[30, 31], [32, 29]]
    # Two that are read again, and the one ahead.
    assert PlannedBands(chain, Plan(kernel="host", threads=2)).seam_rows == {1: 3}


@given(tall_chains(most_convs=2), st.integers(2, 8))
def test_first_stripes_make_as_many_rows_of_the_last_intermediate(chain: Chain, count: int) -> None:
    bands = balanced_edges(chain, count, STRIPE_ROWS)
    assume(bands.are_all_wide and PlannedBands(chain, Plan(kernel="host", threads=count)).seam_rows)
    own = [rows[0] for rows in made(chain, bands)]
    ends = [first_stripe_ends(chain, band, STRIPE_ROWS)[1] for band in bands.all]
    first = [end - rows.start for end, rows in zip(ends, own, strict=True)]
    assert first == [min(max(first), len(rows)) for rows in own]


def test_rows_ahead_leave_the_bands_above_their_first_stripes() -> None:
    """A row of the output is worth many of the intermediates here."""
    convs = [Conv2d(out_channels=channels, kernel=(rows, 1)) for channels, rows in ((1, 1), (31, 3), (99, 2))]
    chain = Chain(input=(1, 97, 1, 3), conv=tuple(convs))
    bands = balanced_edges(chain, 5, STRIPE_ROWS)
    assert all(bands.ahead[1:])
    for above, rows in zip(bands.all, made(chain, bands), strict=True):
        ends = first_stripe_ends(chain, above, STRIPE_ROWS)[1:]
        assert all(end <= tensor.stop for end, tensor in zip(ends, rows, strict=True))
    assert PlannedBands(chain, Plan(kernel="host", threads=5)).seam_rows


@given(tall_chains(), st.integers(2, 8), st.integers(1, 3))
def test_no_band_makes_early_what_the_last_stride_steps_over(chain: Chain, count: int, unread: int) -> None:
    *convs, last = chain.conv
    leaping = replace(last, stride=(last.kernel[0] + unread, 1))
    bands = balanced_edges(replace(chain, conv=(*convs, leaping)), count, STRIPE_ROWS)
    assert not any((*bands.ahead, *bands.behind))


UNREAD = Chain(
    input=(1, 59, 1, 3),
    conv=(Conv2d(out_channels=99, kernel=(3, 1)), Conv2d(out_channels=31, kernel=(4, 1), stride=(2, 1))),
)
"""Nothing reads the last row of the intermediate."""


@example(UNREAD, 3)
@given(tall_chains(), st.integers(2, 8))
def test_rows_that_are_handed_up_are_computed_once(chain: Chain, count: int) -> None:
    bands, one = (PlannedBands(chain, Plan(kernel="host", threads=threads)) for threads in (count, 1))
    assume(bands.seam_rows)
    assert bands.computed_rows[1:] == one.computed_rows[1:]
