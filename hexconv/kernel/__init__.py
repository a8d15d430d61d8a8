"""Rules of the kernels, which fill the innermost part of the nest: layouts of tensors, tiles, bands. No TVM."""

from hexconv.kernel.forms import (
    Forms,
    Packing,
    documented_forms,
    has_bytes_apart,
    has_runs,
    input_layout,
    output_layout,
)
from hexconv.kernel.row_forms import forms_of, rows_forms

__all__ = [
    "Forms",
    "Packing",
    "documented_forms",
    "forms_of",
    "has_bytes_apart",
    "has_runs",
    "input_layout",
    "output_layout",
    "rows_forms",
]
