"""Write the page of every knob, with the loop nests before and after: `hexconv/docs/reference/knobs.md`.

python -m hexconv.docs.mkdocs.knob_pages        # writes it again

The meaning of a knob is its entry in `Plan`'s docstring. Its row in `KNOBS` says which values it is turned to.
What that changes is lowered here.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path

from hexconv.lower import annotated_tir, lower_case
from hexconv.report.costs import own_cost
from hexconv.report.described import attributes
from hexconv.report.listing import Block, module_of
from hexconv.report.words import in_bytes
from hexconv.spec import Case, Chain, Conv2d, Padding, Plan, Requantize
from hexconv.spec.knobs import KNOBS

PAGE = Path(str(files("hexconv"))) / "docs" / "reference" / "knobs.md"
CONV = Conv2d(out_channels=64, kernel=(3, 3))
FLOAT = Chain(input=(1, 36, 36, 64), conv=(CONV, CONV))
QUANTISED = replace(CONV, requantize=Requantize(multiplier=1 << 30, shift=-8))
PADDED = replace(QUANTISED, padding=Padding(top=1, left=1, bottom=1, right=1))
INTEGER = Chain(input=(1, 36, 36, 64), dtype="uint8", conv=(QUANTISED, QUANTISED))
ON_ENGINE = Chain(input=(1, 32, 32, 64), dtype="uint8", conv=(PADDED, PADDED))
PLAIN = Plan(kernel="plain")

MOST_LINES, MOST_CHANGES = 28, 12
HEADER = """# Knobs

Made by `python -m hexconv.docs.mkdocs.knob_pages` from what TVM lowers; a test holds it to that. The chain is
36x36x64, two 3x3 convs of 64 channels, float32 (uint8 for `kernel`; of 32x32x64, with padding, for
`padding_rows`). Parts are named as in the `.tir` files; guards and statements are left out, and where only these
differ, they are shown as a diff.
"""


def knobs_page() -> str:
    """Return the text of the page."""
    return "\n".join([HEADER, *(_section(knob) for knob in (field.name for field in fields(Plan)))])


def _section(knob: str) -> str:
    """Return the section of one knob: its meaning, its values, and what each turn of it changes."""
    told = re.sub(r'`"(\w+)"`', r"`\1`", attributes(Plan)[knob])
    parts = [f"## `{knob}`", "", told[0].upper() + told[1:], ""]
    return "\n".join([*parts, *(line for before, after in _turns(knob) for line in _turn(knob, before, after))])


def _turns(knob: str) -> Iterator[tuple[Plan, Plan]]:
    """Yield the plans before and after each turn of a knob."""
    before = _base(knob)
    for value in KNOBS[knob].turned if KNOBS[knob].has_loops else ():
        yield before, replace(before, **{knob: value})


def _base(knob: str) -> Plan:
    """Return the plan that a knob is turned in, with a kernel that obeys the knob."""
    return replace(PLAIN, **KNOBS[knob].beside)  # pyright: ignore[reportArgumentType]


def _turn(knob: str, before: Plan, after: Plan) -> Iterator[str]:
    """Yield the costs and the loop nests of two plans."""
    kernels = before.kernel, after.kernel
    chain = ON_ENGINE if kernels == ("hmx", "hmx") else INTEGER if "hvx" in kernels else FLOAT
    yield f"| what it costs | `{_stated(knob, before)}` | `{_stated(knob, after)}` |"
    yield "|---|---:|---:|"
    cases = [Case("example", chain, plan) for plan in (before, after)]
    for what, *cells in zip(("footprint", "traffic", "MACs done / needed"), *map(_costs, cases), strict=True):
        yield f"| {what} | {' | '.join(cells)} |"
    listings = [annotated_tir(case, lower_case(case), "") for case in cases]
    nests = [skeleton(listing) for listing in listings]
    for plan, nest in zip((before, after), nests[:1] if nests[0] == nests[1] else nests, strict=False):
        yield from ("", f"`{_stated(knob, plan)}`:", "", "```text", *nest, "```")
    if nests[0] == nests[1]:
        told = f"`{_stated(knob, after)}` has the same loops; other lines differ:"
        yield from ("", told, "", "```diff", *_changes(listings[0], listings[1]), "```")
    yield ""


def _changes(before: str, after: str) -> list[str]:
    """Return the lines in which two modules differ, as a diff."""
    modules = [[line.strip() for line in text.splitlines() if not line.startswith("#")] for text in (before, after)]
    lines = [line for line in difflib.ndiff(modules[0], modules[1]) if line[0] in "+-"]
    short = [line if len(line) <= 110 else f"{line[:107]}..." for line in lines]
    return [
        *short[:MOST_CHANGES],
        *([f"# ... and {len(lines) - MOST_CHANGES} more"] if len(lines) > MOST_CHANGES else []),
    ]


def _stated(knob: str, plan: Plan) -> str:
    """Return the knob as a case file states it, after the knobs that it needs."""
    beside = KNOBS[knob].beside.keys()
    needed = ("kernel",) if "kernel" in beside else ()
    knobs = dict.fromkeys((*needed, *_base(knob).stated, *plan.stated, knob))
    values = ((name, getattr(plan, name)) for name in knobs)
    return ", ".join(f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}" for name, value in values)


def _costs(case: Case) -> tuple[str, str, str]:
    cost = own_cost(case)
    return in_bytes(cost.footprint_bytes), in_bytes(cost.traffic_bytes), f"{cost.recompute:.2f}"


def skeleton(tir: str) -> list[str]:
    """Return the loops of a listing, each part named; a loop that holds no named part is shown without its body."""
    lines = list(_loops(module_of(tir), 0))
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], f"# ... and {len(lines) - MOST_LINES} more"]


def _loops(blocks: Sequence[Block], depth: int) -> Iterator[str]:
    """Yield the lines of loops and names of parts; a block that is no loop is replaced by its contents."""
    for block in blocks:
        is_loop, indent = block.text.startswith("for "), "    " * depth
        if block.comment and (is_loop or not block.holds_parts):
            yield f"{indent}{block.comment}"
        if is_loop:
            yield f"{indent}{block.text}" + ("" if block.holds_parts else " ...")
        if block.holds_parts:
            yield from _loops(block.body, depth + is_loop)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(knobs_page(), encoding="utf-8")
