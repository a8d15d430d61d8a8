"""Gates of recurrent cells: an axis of weights and biases, in the order in which the library wants them."""

from hexconv.errors import did_you_mean
from hexconv.layout.onednn.descriptor import MemoryDesc
from hexconv.layout.onednn.errors import DescriptorError

GATES = {
    "lstm": ("input", "forget", "candidate", "output"),
    "gru": ("update", "reset", "output"),
}
"""The gates of each cell, in the order of memory (from the document on `ldigo`, `ldgoi` and `ldgo`)."""

GATE_AXIS = {5: 3, 4: 2}
"""The gates' dimension by rank: weights are l,d,i,g,o and biases l,d,g,o, whatever their tag."""


def gate_index(cell: str, gate: str) -> int:
    """The index of a gate along the axis of gates.

    Raises:
        DescriptorError: there is no such cell or gate.

    >>> gate_index("lstm", "candidate"), gate_index("gru", "reset")
    (2, 1)
    """
    if gate not in _gates(cell):
        reason = f"{did_you_mean(gate, _gates(cell))}{gate!r} is none of {', '.join(_gates(cell))}"
        raise DescriptorError(f"find a gate of {cell}", reason)
    return _gates(cell).index(gate)


def gate_of(desc: MemoryDesc, cell: str, gate: str) -> MemoryDesc:
    """The part of weights (l, d, i, g, o) or of a bias (l, d, g, o) that belongs to one gate; a submemory.

    Raises:
        DescriptorError: no such cell or gate, another rank, or another number of gates than the cell has.
    """
    axis, index = gate_axis(desc.dims, cell), gate_index(cell, gate)
    dims = [1 if d == axis else size for d, size in enumerate(desc.dims)]
    return desc.submemory(dims, [index if d == axis else 0 for d in range(desc.ndims)])


def gate_axis(dims: tuple[int, ...], cell: str) -> int:
    """The dimension along which the gates of a cell lie.

    Raises:
        DescriptorError: another rank, or another number of gates.
    """
    wanted = len(_gates(cell))
    axis = GATE_AXIS.get(len(dims))
    if axis is None or dims[axis] != wanted:
        shapes = f"weights l,d,i,{wanted},o or a bias l,d,{wanted},o"
        raise DescriptorError(f"find the gates of {cell}", f"dimensions {list(dims)}; {shapes}")
    return axis


def _gates(cell: str) -> tuple[str, ...]:
    if cell not in GATES:
        raise DescriptorError("find a gate", f"cell {cell!r} is none of {', '.join(GATES)}")
    return GATES[cell]
