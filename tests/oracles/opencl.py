"""OpenCL images on pocl: kernels of our own, one per kind of MACE image, on real `image2d_t` objects.

Each kernel goes the other way round than the layouts do: it takes a pixel and asks which elements of the
buffer belong into its four lanes, as MACE's kernels do.
"""

from functools import cache

import numpy as np

from .where import missing

# Per kind: which (x, y, lane) is which element; a lane whose element isn't in the tensor stays 0.
_INDEX = {
    "in-out-channel": ("NHWC", "n = y / H; h = y % H; w = x % W; c = x / W * 4 + lane;"),
    "in-out-height": ("NHWC", "n = y / D(H); h = y % D(H) * 4 + lane; w = x % W; c = x / W;"),
    "in-out-width": ("NHWC", "n = y / H; h = y % H; w = x % D(W) * 4 + lane; c = x / D(W);"),
    "conv2d-filter": ("OIHW", "o = y / (H * W) * 4 + lane; i = x; h = y % (H * W) / W; w = y % W;"),
    "dw-conv2d-filter": ("MIHW", "m = 0; i = y * 4 + lane; h = x / W; w = x % W;"),
    "argument": ("W", "w = x * 4 + lane;"),
    "weight-height": ("OIHW", "o = y * 4 + lane; i = x % I; h = x / I / W; w = x / I % W;"),
    "weight-width": ("OIHW", "o = y; i = x % D(I) * 4 + lane; h = x / D(I) / W; w = x / D(I) % W;"),
    "winograd-filter-2": ("OIAB", "o = y % O; i = x * 4 + lane; a = y / O / B; b = y / O % B;"),
    "winograd-filter-4": ("OIAB", "o = y % O; i = x * 4 + lane; a = y / O / B; b = y / O % B;"),
    "winograd-filter-6": ("OIAB", "o = y % O; i = x * 4 + lane; a = y / O / B; b = y / O % B;"),
}

KINDS = tuple(_INDEX)


def _kernels() -> str:
    return "#define D(size) ((size + 3) / 4)\n" + "\n".join(_kernel(kind) for kind in KINDS)


def _kernel(kind: str) -> str:
    letters, index = _INDEX[kind]
    small = letters.lower()
    sizes = ", ".join(f"int {letter}" for letter in letters)
    inside = " && ".join(f"{low} < {high}" for low, high in zip(small, letters, strict=True))
    offset = small[0]
    for low, high in zip(small[1:], letters[1:], strict=True):
        offset = f"({offset}) * {high} + {low}"
    name = kind.replace("-", "_")
    return f"""
kernel void {name}(global const float *buffer, write_only image2d_t image, {sizes}) {{
    int x = get_global_id(0), y = get_global_id(1);
    float pixel[4];
    for (int lane = 0; lane < 4; ++lane) {{
        int {", ".join(small)};
        {index}
        pixel[lane] = {inside} ? buffer[{offset}] : 0.0f;
    }}
    write_imagef(image, (int2)(x, y), (float4)(pixel[0], pixel[1], pixel[2], pixel[3]));
}}
"""


@cache
def device():
    """A platform that compiles the kernels: pocl's older compilers refuse processors that they don't know."""
    try:
        import pyopencl  # pyright: ignore[reportMissingImports] -- installed by hand
    except ImportError:
        return missing("pyopencl isn't installed")
    for platform in pyopencl.get_platforms():
        context = pyopencl.Context(platform.get_devices()[:1])
        try:
            program = pyopencl.Program(context, _kernels()).build()
        except pyopencl.RuntimeError:
            continue
        return pyopencl, context, pyopencl.CommandQueue(context), program
    return missing("no OpenCL platform that compiles for this processor")


def to_image(kind: str, buffer: np.ndarray, width: int, height: int, *, half: bool = False) -> np.ndarray:
    """Fill an RGBA image (float, or half) from a float32 buffer and read it back: (height, width, 4)."""
    cl, context, queue, program = device()
    channel = cl.channel_type.HALF_FLOAT if half else cl.channel_type.FLOAT
    image_format = cl.ImageFormat(cl.channel_order.RGBA, channel)
    image = cl.create_image(context, cl.mem_flags.WRITE_ONLY, image_format, shape=(width, height))
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    source = cl.Buffer(context, flags, hostbuf=np.ascontiguousarray(buffer, np.float32))
    kernel = cl.Kernel(program, kind.replace("-", "_"))
    # A local size of its own keeps pocl from compiling the kernel anew for every global size.
    kernel(queue, (width, height), (1, 1), source, image, *(np.int32(size) for size in buffer.shape))
    pixels = np.empty((height, width, 4), np.float16 if half else np.float32)
    cl.enqueue_copy(queue, pixels, image, origin=(0, 0), region=(width, height))
    queue.finish()
    return pixels
