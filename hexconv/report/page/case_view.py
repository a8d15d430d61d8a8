"""The section of one case on the page: facts, plots, stripes, hottest loops, and the listing as HTML.

for ho in range(3):          ->  <details><summary>for ho in range(3):</summary>
        body                             body
                                     </details>

The comment above a loop (`# conv2d #1`) goes into its summary. Loops that hold such a part stand open; the parts
themselves are folded, so that what shows first is the order of things.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup, escape
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Operator, _TokenType

from hexconv.analyze import cache_usage, needed_macs, needed_work
from hexconv.analyze.block_nest import BlockStripes
from hexconv.analyze.fit import vtcm_fit
from hexconv.analyze.planned import Planned
from hexconv.analyze.row_stripes import StripeCounts
from hexconv.lower import annotated_tir, lower_case
from hexconv.report.costs import BySplits, PlanCost, own_cost
from hexconv.report.listing import Block, header_of, module_of
from hexconv.report.page.limit import Drawing, limit_words, reached
from hexconv.report.page.worst_cases import Known
from hexconv.report.plots import (
    Plot,
    Reached,
    front_plot,
    lifetimes_plot,
    roofline_plot,
    split_plots,
    timeline_plot,
    vtcm_plot,
)
from hexconv.report.plots.plot import ROLE_COLOURS, WIDTH
from hexconv.report.tables import Rate
from hexconv.report.words import chain_words, counted, fit_words, in_bytes, plan_effects, plan_words, share, times
from hexconv.run.profile import Profile
from hexconv.spec import Case, Chain, Extents, Plan, nest_of, tensor_extents
from hexconv.spec.extents import slab_convs
from hexconv.spec.kernel_choice import kernel_columns, kernel_words


@dataclass(frozen=True)
class HotPacket:
    """One packet: its instructions, and the cause of its stall, if it stalls."""

    text: str
    stall: str


@dataclass(frozen=True)
class HotView:
    """Packets that ran one after the other.

    Attributes:
        title: how often they ran, and the share of the issue slots that they took.
        packets: the packets, in order.
    """

    title: str
    packets: tuple[HotPacket, ...]


def hot_views(profile: Profile) -> tuple[HotView, ...]:
    """Return the runs of packets that took the most issue slots, the hottest first."""
    every = profile.slots.issue_slots
    return tuple(
        HotView(
            f"{len(hot.packets)} packets, {hot.times:,} times: {hot.slots / every:.0%} of the slots, "
            f"{sum(map(bool, hot.stalls))} stalls each time",
            tuple(HotPacket("; ".join(texts), stall) for texts, stall in zip(hot.packets, hot.stalls, strict=True)),
        )
        for hot in profile.slots.hottest
    )


LEXER = PythonLexer(stripnl=False, ensurenl=False)
CLASSES = ((Comment, "c"), (Keyword, "k"), (Operator.Word, "k"), (Name.Decorator, "d"))


def listing_html(tir: str) -> Markup:
    """Return the module of a `.tir` file as foldable, coloured HTML."""
    return _html(module_of(tir))


def _html(blocks: Sequence[Block]) -> Markup:
    """Return the HTML of blocks beneath each other: one that has a body folds, lines between such stand together."""
    runs = groupby(blocks, key=lambda block: block.folds)
    return Markup("").join(Markup("").join(map(_folding, run)) if folds else _lines(run) for folds, run in runs)


def _folding(block: Block) -> Markup:
    label = Markup("<b>{}</b>").format(block.comment[2:]) if block.comment else ""
    state, inside = Markup(" open") if block.holds_parts else "", _html(block.body)
    return Markup("<details{}><summary>{}{}</summary>{}</details>").format(state, label, _lines([block]), inside)


def _lines(blocks: Iterable[Block]) -> Markup:
    return Markup("<code>{}</code>").format(Markup("\n").join(_coloured(block.text) for block in blocks))


def _coloured(text: str) -> Markup:
    """The HTML of a line of Python, its keywords and comments marked; numbers, thousands in a network, are not."""
    runs = groupby(LEXER.get_tokens(text), lambda token: _class(token[0]))
    return Markup("").join(_marked(kind, "".join(value for _, value in tokens)) for kind, tokens in runs)


def _marked(kind: str, text: str) -> Markup:
    told = Markup(str(escape(text)).replace("&#34;", '"'))  # noqa: S704 (between tags, a quote is a quote)
    return Markup('<i class="{}">{}</i>').format(kind, told) if kind else told


def _class(token: _TokenType) -> str:
    return next((name for kind, name in CLASSES if token in kind), "")


@dataclass(frozen=True)
class HeldRows:
    """The rows of one logical tensor that are held while one stripe of the output is made; padding is no row of it.

    Attributes:
        start: the first row that is held.
        end: one past the last row that is held.
        made: the first row that is made, or copied in, for this stripe; the rows above it are held already.
    """

    start: int
    end: int
    made: int


def stripes(chain: Chain, plan: Plan) -> tuple[tuple[HeldRows, ...], ...]:
    """For every stripe of one image's output, the rows held of the input, of each intermediate and of the output.

    Where stripes stream, those of the warm-up come first: they make no row of the output. Threads follow each other.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> first, second, *_ = stripes(chain, Plan(order="h_outer", halo="roll"))
    >>> [(held.start, held.made, held.end) for held in second]
    [(16, 24, 32), (8, 16, 24), (8, 8, 16)]
    """
    planned = Planned(chain, plan)
    if planned.nest == "rows":
        stored = _in_rows(*planned.axes.counts.values())
    else:
        stored = _in_blocks(*planned.blocks.stripes.values())
    return tuple(tuple(map(_logical, stripe, tensor_extents(chain))) for stripe in stored)


def _in_rows(counts: StripeCounts) -> Iterator[tuple[HeldRows, ...]]:
    """Yield the stored rows that a thread holds of each tensor once it has made the rows of a step."""
    for band in counts.bands:
        end = np.minimum(band.end, band.last)
        first = np.maximum(end - counts.cache_rows, band.first)
        first[-1] = band.begin[-1]  # no later step reads the output
        tensors = zip(first.tolist(), end.tolist(), band.begin.tolist(), strict=True)
        yield from zip(*(map(HeldRows, *rows) for rows in tensors), strict=True)


def _in_blocks(stripes: BlockStripes) -> Iterator[tuple[HeldRows, ...]]:
    """Yield the stored rows that each stripe of blocks reads and makes of each tensor."""
    for start in range(0, stripes.stored[-1], stripes.h_splits[0]):
        slabs = _stripe(stripes, start)
        units = [tensor.slab_rows for tensor in stripes.extents]
        yield tuple(HeldRows(*(rows * slab for slab in each)) for rows, each in zip(units, slabs, strict=True))


def _logical(held: HeldRows, tensor: Extents) -> HeldRows:
    """The logical rows among stored rows."""
    first, last = tensor.valid_rows
    start, end, made = (min(max(row, first), last) - first for row in (held.start, held.end, held.made))
    return HeldRows(min(start, end), end, min(max(start, made), end))


def _stripe(stripes: BlockStripes, start: int) -> tuple[tuple[int, int, int], ...]:
    """For one stripe of the output, the first slab and one past the last of each tensor, and how many were there."""

    def read(index: int, made: tuple[int, int, int]) -> tuple[int, int, int]:
        (first, end, there), conv = made, slab_convs(stripes.chain)[index]
        last = min(conv.rows_read(end), stripes.stored[index])
        return max(first, there) * conv.stride[0], last, conv.rows_read(there) if there else 0

    end = min(start + stripes.h_splits[0], stripes.stored[-1])
    return stripes.chain.backwards((start, end, start if stripes.rings[0] else 0), read)


TALLEST, GAP, HEAD = 170, 16, 22
LEGEND = "Light: rows that are held. Dark: those of them that the step reads or makes anew."


@dataclass(frozen=True)
class StripesView:
    """A drawing whose boxes the page's script moves.

    Attributes:
        drawing: the drawing at one step.
        drawn: the number of that step, from 1 on: the second of those that make rows, which may hold rows of the first.
        words: how many steps there are, and what the colours mean.
        steps: for every step and tensor, the foot and the height of the boxes "held" and "made", as JSON.
        told: the rows of every step in words, as JSON.
        count: how many steps there are.
    """

    drawing: Markup
    drawn: int
    words: str
    steps: str
    told: str
    count: int


def stripes_view(case: Case) -> StripesView | None:
    """Return the view of a case's stripes; None where it has fewer than two stripes."""
    every = stripes(case.chain, case.settled)
    making = [number for number, stripe in enumerate(every) if stripe[-1].end > stripe[-1].made]
    if len(making) < 2:
        return None
    rows = [shape[1] for shape in case.chain.shapes]
    scale = TALLEST / max(rows)
    boxes = [[_boxes(held, scale) for held in stripe] for stripe in every]
    told = [_told(stripe) for stripe in every]
    bands = case.settled.threads if nest_of(case.chain, case.settled) == "rows" else 1
    counts = _counts(len(making), len(every) - len(making), bands)
    words, drawn = f"{counts} {LEGEND}", making[1]
    drawing = _drawn(rows, scale, boxes[drawn], f"{words} {told[drawn]}")
    return StripesView(drawing, drawn + 1, words, json.dumps(boxes), json.dumps(told), len(every))


def _counts(making: int, filling: int, bands: int) -> str:
    """Say how many steps there are.

    >>> _counts(3, 1, bands=1), _counts(8, 0, bands=4)
    ('3 stripes of the output, and 1 warm-up step.', '8 stripes of the output, thread by thread of 4.')
    """
    warm_up = f", and {counted(filling, 'warm-up step')}" if filling else ""
    by_thread = f", thread by thread of {bands}" if bands > 1 else ""
    return f"{counted(making, 'stripe')} of the output{warm_up}{by_thread}."


def _boxes(held: HeldRows, scale: float) -> tuple[float, float, float, float]:
    """Return the foot and the height of the rows that are held, then of the rows that are made."""
    found = (held.start, held.end - held.start, held.made, held.end - held.made)
    return tuple(round(rows * scale, 1) for rows in found)  # pyright: ignore[reportReturnType]


def _told(stripe: Sequence[HeldRows]) -> str:
    """Describe one step in words.

    >>> _told([HeldRows(2, 20, 12), HeldRows(8, 16, 8)])
    'Makes rows 8 to 15 of the output; holds rows 2 to 19 of the input, 8 of them new.'
    >>> _told([HeldRows(0, 3, 3), HeldRows(0, 0, 0)])
    'Makes no row of the output; holds rows 0 to 2 of the input, none of them new.'
    """
    source, target = stripe[0], stripe[-1]
    new = source.end - source.made
    fresh = f", {new or 'none'} of them new" if source.end > source.start else ""
    made, held = _rows(target.made, target.end), _rows(source.start, source.end)
    return f"Makes {made} of the output; holds {held} of the input{fresh}."


def _rows(start: int, end: int) -> str:
    """Name rows, the last one included.

    >>> _rows(0, 0), _rows(3, 4), _rows(3, 6)
    ('no row', 'row 3', 'rows 3 to 5')
    """
    if start >= end:
        return "no row"
    return f"row {start}" if end - start == 1 else f"rows {start} to {end - 1}"


def _drawn(rows: list[int], scale: float, boxes: list[tuple[float, ...]], words: str) -> Markup:
    """Draw every tensor as a sheet, side by side."""
    names = ["input", *(f"after conv {number}" for number in range(1, len(rows) - 1)), "output"]
    roles = ["input", *["intermediate"] * (len(rows) - 2), "output"]
    across = (WIDTH - GAP * (len(rows) - 1)) / len(rows)
    drawing = Drawing(WIDTH, TALLEST + HEAD + 4, words, "stripes")
    for place, (name, role, height, box) in enumerate(zip(names, roles, rows, boxes, strict=True)):
        left, colour = place * (across + GAP), ROLE_COLOURS[role]
        if across >= 60 or place in (0, len(rows) - 1):
            drawing.text((left, 14), name)
        drawing.frame((left, HEAD), (across, height * scale))
        held = {"data_tensor": str(place), "data_top": str(HEAD)}
        drawing.box((left, HEAD + box[0]), (across, box[1]), colour, fill_opacity="0.45", data_box="held", **held)
        drawing.box((left, HEAD + box[2]), (across, box[3]), colour, data_box="made", **held)
    return drawing.markup()


UNKNOWN = "—"


@dataclass(frozen=True)
class CaseView:
    """One case, ready to be shown.

    Attributes:
        name: the name of the case.
        chain: its shapes in a line.
        toml: the case file.
        row: its cells of the overview, after the name.
        facts: its facts, each a name and a value.
        verdict: whether the closed form agrees with TVM's allocations.
        known: what the head of the page needs to know about it.
        plots: all its plots.
        header: the comments above its listing.
        listing: its annotated TIR.
        stripes: how its stripe moves over the image; None where there is only one stripe.
        hot: the packets that took the most issue slots, where the case was run.
    """

    name: str
    chain: str
    toml: str
    row: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    verdict: str
    known: Known
    plots: tuple[Plot, ...]
    header: str
    listing: Markup
    stripes: StripesView | None
    hot: tuple[HotView, ...]


HEADINGS = ("case", "kernel", "footprint", "of VTCM", "traffic / needed", "MACs / needed", "MACs / packet")
ON_THE_SIMULATOR = "On the simulator"


@dataclass(frozen=True)
class Measured:
    """What was measured of a case, by tables, sweeps or a run for the page.

    Attributes:
        rate: the rate of its run on the simulator, out of a table.
        splits: what a sweep measured of its plan with other splits.
        profile: the profile of its run, if it was run for the page.
        others: the rates that the page's other cases reached.
    """

    rate: Rate | None
    splits: BySplits
    profile: Profile | None
    others: Sequence[Reached]


def case_view(case: Case, measured: Measured) -> CaseView:
    """Lower a case and put its section together."""
    lowered, cost = lower_case(case), own_cost(case)
    usage = cache_usage(case, lowered)
    agreement = usage.verdict
    tir = annotated_tir(case, lowered, agreement)
    return CaseView(
        name=case.name,
        chain=chain_words(case.chain),
        toml=case.to_toml(),
        row=_row(case, cost, measured),
        facts=tuple(_facts(case, cost, measured)),
        verdict=f"TVM allocates {agreement}",
        known=Known(case, cost, usage.agrees),
        plots=tuple(_plots(case, measured)),
        header=header_of(tir),
        listing=listing_html(tir),
        stripes=stripes_view(case),
        hot=hot_views(measured.profile) if measured.profile else (),
    )


def _plots(case: Case, measured: Measured) -> Iterator[Plot]:
    """Make the plots of a case that say something, in the order of the page."""
    if measured.profile:
        yield timeline_plot(measured.profile)
        yield roofline_plot(reached(case, measured.profile), measured.others)
    yield vtcm_plot(case)
    lives = lifetimes_plot(case)
    if _differs(lives, slice(1, 3)):
        yield lives
    yield from (plot for plot in split_plots(case, measured.splits) if _differs(plot, slice(2, None)))
    yield front_plot(case)


def _differs(plot: Plot, columns: slice) -> bool:
    """Whether the rows of a plot differ in these columns.

    Caches that all live for the whole run, and splits that all cost the same, need no drawing.
    """
    return len({row[columns] for row in plot.numbers.rows}) > 1


def _row(case: Case, cost: PlanCost, measured: Measured) -> tuple[str, ...]:
    """Return the cells of the overview."""
    fit = vtcm_fit(case.chain, case.settled)
    part = f"{share(cost.footprint_bytes, fit.capacity_bytes)} of {in_bytes(fit.capacity_bytes)}"
    needed = sum(needed_work(case.chain).traffic_bytes.values())
    return (
        kernel_columns(case.kernels)["kernel_used"],
        in_bytes(cost.footprint_bytes),
        part if cost.fits else f"✗ {part}",
        times(cost.traffic_bytes, needed),
        times(cost.recompute, 1),
        _rate(case, measured),
    )


def _rate(case: Case, measured: Measured) -> str:
    """Return the MACs per packet of the page's own run, else of a table."""
    if measured.profile:
        return f"{needed_macs(case.chain) / measured.profile.slots.packets:.4g}"
    return UNKNOWN if measured.rate is None else f"{measured.rate.macs_per_packet:.4g}"


def _facts(case: Case, cost: PlanCost, measured: Measured) -> Iterator[tuple[str, str]]:
    """Yield the facts of a case, each a name and a value."""
    needed = needed_work(case.chain)
    yield "Plan", plan_effects(case.chain, case.settled)
    yield "Knobs", plan_words(case.settled)
    yield "Kernel", kernel_words(case.kernels)
    yield "Footprint", in_bytes(cost.footprint_bytes)
    yield "VTCM", fit_words(case)
    least = sum(needed.traffic_bytes.values())
    yield "Traffic", f"{in_bytes(cost.traffic_bytes)}, {times(cost.traffic_bytes, least)} times the least"
    yield "MACs needed", f"{sum(needed.macs.values()):,}"
    yield "MACs done", f"{times(cost.recompute, 1)} times those needed"
    rate, profile = measured.rate, measured.profile
    if profile:
        right = "right" if profile.run.check.passed else "WRONG"
        slots = f"{profile.slots.packets:,} packets, {profile.slots.issue_slots:,} issue slots"
        yield ON_THE_SIMULATOR, f"{right}; {slots}, {reached(case, profile).macs_per_slot:.4g} needed MACs per slot"
        yield "Limit", limit_words(case, profile)
    elif rate is not None:
        packets = "" if rate.packets is None else f", {rate.packets:,} packets"
        yield ON_THE_SIMULATOR, f"{rate.macs_per_packet:.4g} needed MACs per packet{packets}"
