"""For each colour of a plot or a drawn layout, its twin in dark mode, on which text stays legible."""

from hexconv.layout.svg import COLOURS, PADDING
from hexconv.report.plots import theme

ROLES = (
    *("#2f5f94", "#8a5a1c", "#2a6e4c", "#8a3f5f", "#5b4a94", "#565d68", "#6b6524"),
    *("#0b6a6e", "#512500", "#1a4901", "#023559", "#50174d"),
)
HEAT = ("#1d2937", "#1f3145", "#233b56", "#264668", "#2a517b", "#2d5d8e", "#3169a2")
LAYOUT = ("#27486b", "#6b4a1d", "#2b5a3b", "#6b3540", "#4b3d6b", "#5a4a2c", "#5c5620", "#245a59")

DARK = {
    theme.INK: "#e8ecf2",
    theme.FAINT: "#a3adbb",
    theme.GRID: "#2c3541",
    theme.PAPER: "#141a22",
    theme.MARK: "#ff8a7a",
    theme.REFUSED: "#2a2724",
    theme.PEER: "#5a6472",
    theme.BAR: "#77a8d9",
    **dict(zip(theme.ROLE_COLOURS.values(), ROLES, strict=True)),
    **dict(zip(theme.HEAT, HEAT, strict=True)),
    **dict(zip(COLOURS, LAYOUT, strict=True)),
    PADDING: "#20262f",
}
