"""Show the stripe moving down the image: for each stripe of the output, the rows of every tensor read and made."""

import json
from dataclasses import dataclass

from markupsafe import Markup

from hexconv.analyze.stripes import Held, stripes
from hexconv.report.page.drawn import Drawing
from hexconv.report.plots.theme import ROLE_COLOURS, WIDTH
from hexconv.spec import Case, tensor_extents

TALLEST, GAP, HEAD = 170, 16, 22
DRAWN = 1
"""The stripe that is drawn before the script moves any, which the page's slider shows as 2."""


@dataclass(frozen=True)
class StripesView:
    """A drawing whose boxes the page's script moves.

    Attributes:
        drawing: the drawing at the second stripe, which may hold rows of the first.
        steps: for every stripe and tensor, the foot and the height of the boxes "held" and "made", as JSON.
        told: the rows of every stripe in words, as JSON.
        count: how many stripes there are.
    """

    drawing: Markup
    steps: str
    told: str
    count: int


def stripes_view(case: Case) -> StripesView | None:
    """Return the view of a case's stripes; None where it has fewer than two stripes."""
    every = stripes(case.chain, case.settled)
    if len(every) < 2:
        return None
    rows = [extents.rows for extents in tensor_extents(case.chain)]
    scale = TALLEST / max(rows)
    boxes = [[_boxes(held, scale) for held in stripe] for stripe in every]
    told = [_told(stripe) for stripe in every]
    words = (
        f"{len(every)} stripes of the output, from top to bottom. Light: rows that a stripe reads, or makes; dark: "
        "those that are new, the others are still there. " + told[DRAWN]
    )
    drawing = _drawn(rows, scale, boxes[DRAWN], words)
    return StripesView(drawing, json.dumps(boxes), json.dumps(told), len(every))


def _boxes(held: Held, scale: float) -> tuple[float, float, float, float]:
    """Return the foot and the height of the rows that are held, then of the rows that are made."""
    found = (held.start, held.end - held.start, held.made, held.end - held.made)
    return tuple(round(rows * scale, 1) for rows in found)  # pyright: ignore[reportReturnType]


def _told(stripe: tuple[Held, ...]) -> str:
    """Describe one stripe in words."""
    source, target = stripe[0], stripe[-1]
    new = source.end - source.made
    return (
        f"Rows {target.start} to {target.end - 1} of the output read rows {source.start} to {source.end - 1} of the "
        f"input, {new} of them new."
    )


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
