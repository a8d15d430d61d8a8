"""How what enters a chain and what leaves it lies in memory."""

from typing import Literal, get_args

EdgeLayout = Literal["NHWC8h8w32c", "NHWC", "NHCW32c"]
EDGE_LAYOUTS: tuple[EdgeLayout, ...] = get_args(EdgeLayout)
IN_BLOCKS: EdgeLayout = "NHWC8h8w32c"
"""The layout that outputs have where nothing is said."""
PIXELS: EdgeLayout = "NHWC"
"""The layout that inputs have where nothing is said."""
