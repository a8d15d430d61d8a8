"""Draw the example network as its program: fused chains in VTCM, operators, and the bytes of each step.

`python -m hexconv.docs.mkdocs.network_picture` writes `hexconv/docs/pictures/network.svg`, which README and the site
show. Every figure is of the plan that `hexconv best residual.onnx --vtcm 1MiB` answers with.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from hexconv.model import import_model
from hexconv.network.call_costs import kind_of
from hexconv.network.hand_over import handed_bytes
from hexconv.network.planned_model import PlannedModel, plan, question_of
from hexconv.network.program_steps import Call, Operation
from hexconv.report.plots.plot import BAR as PLANNED
from hexconv.report.plots.plot import FAINT, FONT, INK, PAPER, REFUSED, ROLE_COLOURS, in_both_schemes
from hexconv.report.plots.plot import PEER as APART

PICTURE = Path(str(files("hexconv"))) / "docs" / "pictures" / "network.svg"
VTCM_BYTES = 1 << 20
WIDTH, LEFT, BOX, BARS, NUMBERS, HEAD = 480, 4, 244, 260, 402, 80
CONV, LINE, GAP, BAR = 26, 34, 12, 11
"""Pixels: a conv's box, an operator's row, between two rows, a bar. A phone shows the text in 11 pixels."""
VTCM, OPERATOR = ROLE_COLOURS["intermediate"], REFUSED


@dataclass(frozen=True)
class Row:
    """One step of the program.

    Attributes:
        title: what the step is, in a line.
        convs: its convs in a line each; empty for an operator.
        apart_bytes: the bytes that it moves with every conv by itself.
        planned_bytes: the bytes that it moves as planned: without those of tensors that stay in VTCM.
    """

    title: str
    convs: tuple[str, ...]
    apart_bytes: int
    planned_bytes: int

    @property
    def height(self) -> int:
        """The pixels of its box."""
        return LINE + CONV * len(self.convs)


def rows(planned: PlannedModel) -> Iterator[Row]:
    """Yield a row for each step: operators of one kind in a row are one."""
    program = planned.open_program
    names = {each.tensor for each in program.residents}
    chains = {answer.name: answer for answer in planned.network.planned if answer.cuts.best}
    last: Row | None = None
    for step in program.steps:
        if isinstance(step, Operation):
            apart, title = sum(program.moved_bytes(step)), kind_of(step).split()[-1].replace("turn", "change layout")
            moved = apart - sum(handed_bytes(step, names))
            if last and last.title == title:
                last = Row(title, (), last.apart_bytes + apart, last.planned_bytes + moved)
                continue
            if last:
                yield last
            last = Row(title, (), apart, moved)
        elif isinstance(step, Call) and (answer := chains.pop(step.case.name, None)):
            if last:
                yield last
            separate, best = answer.separate, answer.cuts.best
            assert separate
            assert best
            size, last = best.footprint_bytes // 1024, None
            planned_bytes = best.traffic_bytes - sum(handed_bytes(step, names))
            yield Row(f"fused, {size} KiB of VTCM", tuple(_convs(step)), separate.traffic_bytes, planned_bytes)
    if last:
        yield last


def _convs(call: Call) -> Iterator[str]:
    """Name the convs of a call."""
    for conv in call.case.chain.conv:
        high, wide = conv.kernel
        stride = f", stride {conv.stride[0]}" if conv.stride != (1, 1) else ""
        yield f"conv {high}x{wide} to {conv.out_channels}{stride or ' channels'}"


def picture(planned: PlannedModel) -> str:
    """Return the drawing as SVG, legible in light and in dark."""
    every, total = list(rows(planned)), planned.account.total
    apart, moved = sum(row.apart_bytes for row in every), sum(row.planned_bytes for row in every)
    assert (apart, moved) == (total.before_bytes, total.after_bytes), "the steps add up to what best says of the call"
    scale = (NUMBERS - BARS - 10) / max(row.apart_bytes for row in every)
    words = f"A call moves {moved:,} bytes,", f"{1 - moved / apart:.1%} less than {apart:,}, each conv by itself"
    shapes, top = [], HEAD
    for number, row in enumerate(every):
        if number:
            shapes.append(f'<path stroke="{FAINT}" stroke-width="2" d="M{LEFT + BOX // 2} {top - GAP}v{GAP}"/>')
        shapes.extend(_row(row, top, scale))
        top += row.height + GAP
    height = top + 4
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"',
        f' role="img" aria-label="{escape(" ".join(words))}" font-family="{FONT}" font-size="15px">',
        _box(0, 0, WIDTH, height, PAPER, 6),
        *(_text(LEFT, 20 + 20 * number, line, weight="600") for number, line in enumerate(words)),
        *(_box(BARS, 54, 12, 12, APART), _text(BARS + 18, 66, "apart")),
        *(_box(BARS + 74, 54, 12, 12, PLANNED), _text(BARS + 92, 66, "planned (bytes)")),
        *shapes,
        "</svg>",
    )
    return in_both_schemes("\n".join(lines) + "\n")


def _row(row: Row, top: int, scale: float) -> Iterator[str]:
    """Yield the shapes of one step: its box on the left, its bars and numbers on the right."""
    yield _box(LEFT, top, BOX, row.height - 2, VTCM if row.convs else OPERATOR, 6)
    yield _text(LEFT + 10, top + 22, row.title)
    for number, conv in enumerate(row.convs):
        at = top + LINE - 4 + number * CONV
        yield _box(LEFT + 6, at, BOX - 12, CONV - 4, PAPER, 4)
        yield _text(LEFT + 12, at + 16, conv)
    bars = [(APART, row.apart_bytes)] if row.apart_bytes != row.planned_bytes else []
    bars.append((PLANNED, row.planned_bytes))
    first = top + row.height // 2 - len(bars) * BAR
    for number, (colour, size) in enumerate(bars):
        at = first + number * 2 * BAR
        yield _box(BARS, at + 4, round(size * scale), BAR + 2, colour)
        yield _text(BARS + round(size * scale) + 6, at + 16, f"{size:,}")


def _box(left: int, top: int, width: int, height: int, colour: str, round_by: int = 0) -> str:
    return f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="{round_by}" fill="{colour}"/>'


def _text(left: int, base: int, words: str, weight: str = "400") -> str:
    return f'<text x="{left}" y="{base}" font-weight="{weight}" fill="{INK}">{escape(words)}</text>'


def main() -> None:
    """Plan the example and write the picture."""
    model = Path(str(files("hexconv") / "example" / "residual.onnx"))
    PICTURE.write_text(picture(plan(import_model(model), question_of(VTCM_BYTES))), encoding="utf-8")


if __name__ == "__main__":
    main()
