"""`python -m reports.bytes_picture`: draws the board of bytes, a small plot for each net.

A curve goes over the MiB of VTCM, one for each tool. Its height is how many times the bytes move that are needed, so
that 1 is the lower bound, which is drawn as a line.
"""

from io import StringIO
from pathlib import Path

import altair as alt
import pandas as pd

from hexconv.report.plots.plot import BAR, FAINT, INK, MARK, OTHER, TEXT_PIXELS, in_both_schemes, themed

TABLE = Path("reports/bytes.csv")
PICTURE = Path(__file__).parents[1] / "hexconv" / "docs" / "pictures" / "bytes.svg"
TOOLS = {
    "traffic_bytes": "hexconv",
    "qnn_v73_bytes": "QNN v73",
    "qnn_v75_bytes": "QNN v75",
    "defines_bytes": "DeFiNES' model",
}
COLOURS = [MARK, BAR, OTHER, FAINT]
WIDTH, HEIGHT, COLUMNS = 140, 100, 4


def points(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each net, tool and MiB of VTCM: how many times the needed bytes the tool moves.

    Where a tool has no figure for a chain of a net, the net has no point.
    """
    figures = ["needed_bytes", *TOOLS]
    sums = table.groupby(["net", "vtcm_mib"], sort=False)[figures].agg(lambda column: column.sum(skipna=False))
    times = pd.DataFrame({tool: sums[column] / sums["needed_bytes"] for column, tool in TOOLS.items()})
    return times.reset_index().melt(["net", "vtcm_mib"], var_name="tool", value_name="times").dropna()


def chart(data: pd.DataFrame) -> alt.TopLevelMixin:
    """Return the small plots, four in a row."""
    x = alt.X("vtcm_mib:O", title="MiB of VTCM", axis=alt.Axis(labelAngle=0))
    y = alt.Y("times:Q", title="times needed", scale=alt.Scale(type="log", nice=False, padding=6))
    colours = alt.Scale(domain=list(TOOLS.values()), range=COLOURS)
    colour = alt.Color("tool:N", title="", legend=alt.Legend(orient="top"), scale=colours)
    curves = alt.Chart().mark_line(point=True).encode(x=x, y=y, color=colour)
    bound = alt.Chart().mark_rule(strokeDash=[3, 3], color=FAINT).encode(y=alt.datum(1))
    layers = alt.layer(bound, curves, data=data).properties(width=WIDTH, height=HEIGHT)
    order = list(dict.fromkeys(data["net"]))
    header = alt.Header(labelColor=INK, labelFontSize=TEXT_PIXELS)
    facets = layers.facet(facet=alt.Facet("net:N", title=None, sort=order, header=header), columns=COLUMNS)
    return themed(facets.resolve_scale(y="independent"))


if __name__ == "__main__":
    drawn = StringIO()
    chart(points(pd.read_csv(TABLE))).save(drawn, format="svg", engine="vl-convert")
    PICTURE.write_text(in_both_schemes(drawn.getvalue()), encoding="utf-8")
