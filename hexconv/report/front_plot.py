"""Draw the front of footprint against traffic as an SVG picture."""

from pathlib import Path

import pandas as pd

from hexconv.errors import InputError
from hexconv.report.words import plan_name
from hexconv.search.answer import Answer
from hexconv.written import whole_file

MIB = 1 << 20
WIDTH, HEIGHT = 640, 400


def write_front_plot(answer: Answer, path: Path) -> None:
    """Write the picture of a front: steps from plan to plan, the VTCM limit as a line, the best plan marked.

    Raises:
        InputError: its name doesn't end in .svg.
        NotWritten: the file can't be written.
    """
    if path.suffix != ".svg":
        raise InputError("--plot", str(path), "a file that ends in .svg")
    points = _points(answer)
    picture = _picture(answer, points)
    with whole_file(path) as made:
        picture.save(str(made), format="svg")


def _points(answer: Answer) -> pd.DataFrame:
    """Return the data of the picture: one row for each plan of the front, in MiB."""
    best, limit = answer.found.best, answer.question.vtcm_bytes
    kinds = [
        (figures, "fits" if figures.footprint_bytes <= limit else "does not fit")
        for figures in answer.found.front
        if figures != best
    ]
    rows = [
        {
            "plan": plan_name(figures.plan),
            "footprint": figures.footprint_bytes / MIB,
            "traffic": figures.traffic_bytes / MIB,
            "kind": kind,
        }
        for figures, kind in (*kinds, *([(best, "answer")] if best else []))
    ]
    return pd.DataFrame(rows)


def _picture(answer: Answer, points: pd.DataFrame):
    """The chart: steps, points, and the limit as a line."""
    import altair as alt  # imported here: it takes half a second, and no other command needs it

    x = alt.X("footprint:Q", title="footprint, MiB of VTCM", scale=alt.Scale(zero=True, padding=20))
    y = alt.Y("traffic:Q", title="traffic, MiB", scale=alt.Scale(type="log", nice=False, padding=20))
    kinds = ["answer", "fits", "does not fit"]
    color = alt.Color("kind:N", title="", scale=alt.Scale(domain=kinds, range=["#d62728", "#1f77b4", "#bbbbbb"]))
    front = alt.Chart(points)
    steps = front.mark_line(interpolate="step-after", color="#cccccc").encode(x=x, y=y)
    marks = alt.Chart(points).mark_point(filled=True, size=60).encode(x=x, y=y, color=color, tooltip="plan:N")
    limit = pd.DataFrame({"footprint": [answer.question.vtcm_bytes / MIB]})
    rule = alt.Chart(limit).mark_rule(strokeDash=[4, 4]).encode(x="footprint:Q")
    title = f"{answer.name}: plans that none beats in both"
    return (steps + rule + marks).properties(width=WIDTH, height=HEIGHT, title=title)
