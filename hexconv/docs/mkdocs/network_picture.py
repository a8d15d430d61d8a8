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
from hexconv.network.planned_model import PlannedModel, plan, question_of
from hexconv.network.program_steps import Call, Operation

PICTURE = Path(str(files("hexconv"))) / "docs" / "pictures" / "network.svg"
VTCM_BYTES = 1 << 20
WIDTH, LEFT, BOX, BARS, NUMBERS, HEAD = 740, 8, 288, 318, 628, 58
CONV, LINE, GAP, BAR = 26, 34, 12, 11
"""Pixels: a conv's box, an operator's row, between two rows, a bar."""
STYLE = """
  text { font: 16px system-ui, sans-serif; fill: #1f2328 } .faint { fill: #59636e } .strong { font-weight: 600 }
  .vtcm { fill: #d3f0dc; stroke: #1a7f37 } .conv { fill: #ffffff; stroke: #1a7f37 }
  .operator { fill: #eff2f5; stroke: #818b98 } .apart { fill: #b3bcc6 } .planned { fill: #0969da }
  .ground { fill: #ffffff } .flow { stroke: #818b98; stroke-width: 2; fill: none }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } text { fill: #f0f6fc } .faint { fill: #b1bac4 }
    .vtcm { fill: #12361f; stroke: #3fb950 } .conv { fill: #0d1117; stroke: #3fb950 }
    .operator { fill: #212830; stroke: #656c76 } .apart { fill: #57606a } .planned { fill: #4493f8 }
  }"""


@dataclass(frozen=True)
class Row:
    """One step of the program.

    Attributes:
        title: what the step is, in a line.
        convs: its convs in a line each; empty for an operator.
        apart_bytes: the bytes that it moves with every conv by itself.
        planned_bytes: the bytes that it moves as planned.
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
    chains = {answer.name: answer for answer in planned.network.planned if answer.cuts.best}
    last: Row | None = None
    for step in program.steps:
        if isinstance(step, Operation):
            moved, title = sum(program.moved_bytes(step)), kind_of(step).split()[-1].replace("turn", "change layout")
            if last and last.title == title:
                last = Row(title, (), last.apart_bytes + moved, last.planned_bytes + moved)
                continue
            if last:
                yield last
            last = Row(title, (), moved, moved)
        elif isinstance(step, Call) and (answer := chains.pop(step.case.name, None)):
            if last:
                yield last
            apart, best = answer.separate, answer.cuts.best
            assert apart
            assert best
            size, last = best.footprint_bytes // 1024, None
            yield Row(f"fused, {size} KiB of VTCM", tuple(_convs(step)), apart.traffic_bytes, best.traffic_bytes)
    if last:
        yield last


def _convs(call: Call) -> Iterator[str]:
    """Name the convs of a call."""
    for conv in call.case.chain.conv:
        high, wide = conv.kernel
        stride = f", stride {conv.stride[0]}" if conv.stride != (1, 1) else ""
        yield f"conv {high}x{wide}, {conv.out_channels} channels{stride}"


def picture(planned: PlannedModel) -> str:
    """Return the drawing as SVG, legible in light and in dark."""
    every = list(rows(planned))
    apart, moved = sum(row.apart_bytes for row in every), sum(row.planned_bytes for row in every)
    scale = (NUMBERS - BARS - 10) / max(row.apart_bytes for row in every)
    words = f"A call moves {moved:,} bytes, with every conv by itself {apart:,}: {1 - moved / apart:.1%} less"
    shapes, top = [], HEAD
    for number, row in enumerate(every):
        if number:
            shapes.append(f'<path class="flow" d="M{LEFT + BOX // 2} {top - GAP}v{GAP}"/>')
        shapes.extend(_row(row, top, scale))
        top += row.height + GAP
    height = top + 4
    legend = (
        f'<text x="{LEFT}" y="20" class="strong">{escape(words)}</text>'
        f'<rect x="{BARS}" y="34" width="12" height="12" class="apart"/><text x="{BARS + 18}" y="46">by itself</text>'
        f'<rect x="{BARS + 110}" y="34" width="12" height="12" class="planned"/>'
        f'<text x="{BARS + 128}" y="46">as planned (bytes)</text>'
    )
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"',
        f' role="img" aria-label="{escape(words)}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" rx="6" class="ground"/>',
        legend,
        *shapes,
        "</svg>",
    )
    return "\n".join(lines) + "\n"


def _row(row: Row, top: int, scale: float) -> Iterator[str]:
    """Yield the shapes of one step: its box on the left, its bars and numbers on the right."""
    kind = "vtcm" if row.convs else "operator"
    yield f'<rect x="{LEFT}" y="{top}" width="{BOX}" height="{row.height - 2}" rx="6" class="{kind}"/>'
    yield f'<text x="{LEFT + 10}" y="{top + 22}">{escape(row.title)}</text>'
    for number, conv in enumerate(row.convs):
        at = top + LINE - 4 + number * CONV
        yield f'<rect x="{LEFT + 8}" y="{at}" width="{BOX - 16}" height="{CONV - 4}" rx="4" class="conv"/>'
        yield f'<text x="{LEFT + 16}" y="{at + 16}">{escape(conv)}</text>'
    middle = top + row.height // 2
    bars = (
        [("apart", row.apart_bytes), ("planned", row.planned_bytes)] if row.convs else [("planned", row.planned_bytes)]
    )
    first = middle - len(bars) * BAR
    for number, (name, size) in enumerate(bars):
        at = first + number * 2 * BAR
        yield f'<rect x="{BARS}" y="{at + 4}" width="{size * scale:.0f}" height="{BAR + 2}" class="{name}"/>'
        shade = ' class="faint"' if name == "apart" else ""
        yield f'<text x="{BARS + size * scale + 6:.0f}" y="{at + 16}"{shade}>{size:,}</text>'


def main() -> None:
    """Plan the example and write the picture."""
    model = Path(str(files("hexconv") / "example" / "residual.onnx"))
    PICTURE.write_text(picture(plan(import_model(model), question_of(VTCM_BYTES))), encoding="utf-8")


if __name__ == "__main__":
    main()
