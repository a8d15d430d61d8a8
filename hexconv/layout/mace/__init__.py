"""The layouts of MACE: OpenCL images and CPU buffers."""

from hexconv.layout.mace.images import buffer_index, check_readable, cpu_buffer, image, image_shape, kind, purpose
from hexconv.layout.mace.kinds import CPU_BUFFERS, KINDS, LANES
from hexconv.layout.mace.winograd import winograd_filter

__all__ = [
    "image",
    "image_shape",
    "buffer_index",
    "cpu_buffer",
    "winograd_filter",
    "check_readable",
    "kind",
    "purpose",
    "KINDS",
    "CPU_BUFFERS",
    "LANES",
]
