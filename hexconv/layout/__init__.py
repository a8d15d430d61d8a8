"""Map elements to places: one kind of layout, made of digits, for packed tensors, oneDNN, MACE and OKKernel.

This package does not use TVM. Compute definitions take their index maths from these layouts, so what is proven is what
is scheduled.
"""

from hexconv.layout.digits import Axis, Digit, Output
from hexconv.layout.mapping import Layout
from hexconv.layout.packed import PackedTag, packed
from hexconv.layout.picture import Picture, picture, svg, text

__all__ = ["Layout", "Axis", "Digit", "Output", "packed", "PackedTag", "Picture", "picture", "text", "svg"]
