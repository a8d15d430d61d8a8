"""Rules of the kernels, which fill the innermost part of the nest: layouts of tensors, tiles, bands. No TVM."""

from hexconv.kernel.documented import documented_forms
from hexconv.kernel.forms import Forms, Packing, has_bytes_apart, has_runs, input_layout, output_layout
from hexconv.kernel.hvx.rows import forms_of, rows_forms

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
