"""Show the stripe moving down the image: for each stripe of the output, the rows of every tensor held and made."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hexconv.analyze.stripes import Held, stripes
from hexconv.report.page.drawn import Drawing
from hexconv.report.plots.theme import ROLE_COLOURS, WIDTH
from hexconv.report.units import counted
from hexconv.spec import Case

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
    counts = _counts(len(making), len(every) - len(making), case.settled.threads)
    words, drawn = f"{counts} {LEGEND}", making[1]
    drawing = _drawn(rows, scale, boxes[drawn], f"{words} {told[drawn]}")
    return StripesView(drawing, drawn + 1, words, json.dumps(boxes), json.dumps(told), len(every))


def _counts(making: int, filling: int, threads: int) -> str:
    """Say how many steps there are.

    >>> _counts(3, 1, threads=1), _counts(8, 0, threads=4)
    ('3 stripes of the output, and 1 warm-up step.', '8 stripes of the output, thread by thread of 4.')
    """
    warm_up = f", and {counted(filling, 'warm-up step')}" if filling else ""
    bands = f", thread by thread of {threads}" if threads > 1 else ""
    return f"{counted(making, 'stripe')} of the output{warm_up}{bands}."


def _boxes(held: Held, scale: float) -> tuple[float, float, float, float]:
    """Return the foot and the height of the rows that are held, then of the rows that are made."""
    found = (held.start, held.end - held.start, held.made, held.end - held.made)
    return tuple(round(rows * scale, 1) for rows in found)  # pyright: ignore[reportReturnType]


def _told(stripe: Sequence[Held]) -> str:
    """Describe one step in words.

    >>> _told([Held(2, 20, 12), Held(8, 16, 8)])
    'Makes rows 8 to 15 of the output; holds rows 2 to 19 of the input, 8 of them new.'
    >>> _told([Held(0, 3, 3), Held(0, 0, 0)])
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
