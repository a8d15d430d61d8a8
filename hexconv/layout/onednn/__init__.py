"""The layouts of oneDNN: format tags, memory descriptors and memory objects."""

from hexconv.layout.onednn.description import tag_for
from hexconv.layout.onednn.descriptor import GATES, MemoryDesc, gate_axis, gate_index, gate_of
from hexconv.layout.onednn.memory_object import Memory, converted
from hexconv.layout.onednn.onednn_types import DescriptorError
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
