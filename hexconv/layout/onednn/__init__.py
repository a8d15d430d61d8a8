"""The layouts of oneDNN: format tags, memory descriptors and memory objects."""

from hexconv.layout.onednn.choice import tag_for
from hexconv.layout.onednn.descriptor import MemoryDesc
from hexconv.layout.onednn.errors import DescriptorError
from hexconv.layout.onednn.gates import GATES, gate_axis, gate_index, gate_of
from hexconv.layout.onednn.memory_object import Memory, converted
from hexconv.layout.onednn.tags import FormatTag

__all__ = [
    "MemoryDesc",
    "Memory",
    "converted",
    "FormatTag",
    "DescriptorError",
    "tag_for",
    "GATES",
    "gate_axis",
    "gate_index",
    "gate_of",
]
