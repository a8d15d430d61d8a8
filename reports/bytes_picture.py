"""`python -m reports.bytes_picture`: draws the board of bytes, a small plot for each net.

A curve goes over the MiB of VTCM, one for each tool. Its height is how many times the bytes move that are needed, so
that 1 is the lower bound, which is drawn as a line.
"""

from pathlib import Path

import altair as alt
import pandas as pd

TABLE = Path("reports/bytes.csv")
PICTURE = Path(__file__).parents[1] / "hexconv" / "docs" / "pictures" / "bytes.svg"
TOOLS = {
    "traffic_bytes": "hexconv",
    "qnn_v73_bytes": "QNN v73",
    "qnn_v75_bytes": "QNN v75",
    "defines_bytes": "DeFiNES' model",
}
COLOURS = ["#d62728", "#1f77b4", "#17becf", "#7f7f7f"]
WIDTH, HEIGHT, COLUMNS = 130, 100, 5


def points(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each net, tool and MiB of VTCM: how many times the needed bytes the tool moves.

    Where a tool has no figure for a chain of a net, the net has no point.
    """
    figures = ["needed_bytes", *TOOLS]
    sums = table.groupby(["net", "vtcm_mib"], sort=False)[figures].agg(lambda column: column.sum(skipna=False))
    times = pd.DataFrame({tool: sums[column] / sums["needed_bytes"] for column, tool in TOOLS.items()})
    return times.reset_index().melt(["net", "vtcm_mib"], var_name="tool", value_name="times").dropna()


def chart(data: pd.DataFrame) -> alt.FacetChart:
    """Return the small plots, five in a row."""
    x = alt.X("vtcm_mib:O", title="MiB of VTCM", axis=alt.Axis(labelAngle=0))
    y = alt.Y("times:Q", title="times needed", scale=alt.Scale(type="log", nice=False, padding=6))
    colour = alt.Color("tool:N", title="", scale=alt.Scale(domain=list(TOOLS.values()), range=COLOURS))
    curves = alt.Chart().mark_line(point=True).encode(x=x, y=y, color=colour)
    bound = alt.Chart().mark_rule(strokeDash=[3, 3], color="#999999").encode(y=alt.datum(1))
    layers = alt.layer(bound, curves, data=data).properties(width=WIDTH, height=HEIGHT)
    order = list(dict.fromkeys(data["net"]))
    facets = layers.facet(facet=alt.Facet("net:N", title=None, sort=order), columns=COLUMNS)
    return facets.resolve_scale(y="independent").configure_legend(orient="top").configure(background="white")


if __name__ == "__main__":
    chart(points(pd.read_csv(TABLE))).save(str(PICTURE))
