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
    unobeyed={
        "k_split": "the registers of the CPU say how many channels a tile has",
        "w_split": "a CPU's caches fetch by themselves what a tile reads, so a stripe has whole rows",
        "order": "it makes each row once, for all channels, so stripes are always the outermost loop",
        "halo": "its stripes always roll, for the rows that two of them read are still in a cache of the CPU",
        "filters": "a CPU's caches fetch by themselves what a tile reads, so each filter is laid out whole",
        "buffering": "a CPU has no copy engine, which could fill a second slot meanwhile",
        "storage": "a CPU has no VTCM",
        "arch": "it runs on a CPU, not on a Hexagon",
        "vtcm_bytes": "a CPU has no VTCM",
        "activations": "AVX instructions load one number into all lanes, so there is nothing to spread",
    },
    refusals=_refusals,
    unstated=lambda _chain, threads: {"threads": min(threads, MOST_THREADS)},
    obeys_plans=False,
)
