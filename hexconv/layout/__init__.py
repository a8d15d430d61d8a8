"""Map elements to places: one kind of layout, made of digits, for packed tensors, oneDNN, MACE and OKKernel.

This package does not use TVM. Compute definitions take their index maths from these layouts, so what is proven is what
is scheduled.
"""

from hexconv.layout.digit import Axis, Digit, Output
from hexconv.layout.layout import Layout
from hexconv.layout.packed import PackedTag, packed
from hexconv.layout.picture import Picture, picture
from hexconv.layout.svg import svg
from hexconv.layout.text import text

__all__ = ["Layout", "Axis", "Digit", "Output", "packed", "PackedTag", "Picture", "picture", "text", "svg"]
