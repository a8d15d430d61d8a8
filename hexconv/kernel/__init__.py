"""Rules of the kernels, which fill the innermost part of the nest: layouts of tensors, tiles, bands. No TVM."""

from hexconv.kernel.layouts import (
    NestLayouts,
    Packing,
    documented_layouts,
    has_bytes_apart,
    has_runs,
    input_layout,
    output_layout,
)
from hexconv.kernel.row_layouts import layouts_of, rows_layouts

__all__ = [
    "NestLayouts",
    "Packing",
    "documented_layouts",
    "layouts_of",
    "has_bytes_apart",
    "has_runs",
    "input_layout",
    "output_layout",
    "rows_layouts",
]
