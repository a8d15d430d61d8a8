"""oneDNN: format tags and memory descriptors."""

from hexconv.layout.onednn.descriptor import MemoryDesc
from hexconv.layout.onednn.errors import DescriptorError
from hexconv.layout.onednn.tags import FormatTag

__all__ = ["MemoryDesc", "FormatTag", "DescriptorError"]
