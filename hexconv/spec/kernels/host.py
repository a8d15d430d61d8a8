"""The rules of the host kernel: AVX instructions for float32 chains, in a nest of its own."""

from hexconv.spec.chain import Chain
from hexconv.spec.edges import IN_BLOCKS, PIXELS
from hexconv.spec.kernels.rules import KernelRules

MOST_THREADS = 256


def _refusals(chain: Chain) -> tuple[str, ...]:
    """Say why the kernel can't serve each conv: it serves all convs of a chain or none."""
    grouped = next((index for index, conv in enumerate(chain.conv) if conv.groups != 1), None)
    why = "" if chain.dtype == "float32" else f"host serves float32 chains, this one is {chain.dtype}"
    if chain.output_layout != IN_BLOCKS:
        why = f"host writes its output as {IN_BLOCKS}, this chain's is {chain.output_layout}"
    if chain.input_layout != PIXELS:
        why = f"host reads its input as {PIXELS}, this chain's is {chain.input_layout}"
    if grouped is not None:
        why = f"host serves convs of one group; chain.conv[{grouped}] has {chain.conv[grouped].groups}"
    return (why,) * len(chain.conv)


HOST = KernelRules(
    name="host",
    home="llvm",
    nest="bands",
    knobs=("h_split", "threads", "simd"),
    instead="it rolls stripes of blocks, stages whole filters and has no VTCM",
    refusals=_refusals,
    unstated=lambda _chain, threads: {"threads": min(threads, MOST_THREADS)},
    obeys_plans=False,
)
