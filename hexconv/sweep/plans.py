"""Random plans: any legal splits, dividing or not, and any legal mix of the other knobs that the kernel obeys."""

from hexconv.spec import Chain, Plan, tensor_extents
from hexconv.spec.plan import Arch, Halo, Kernel, Order, Simd
from hexconv.sweep.draw import Draw
from hexconv.sweep.scope import Scope

MOST_BANDS = 4
SETS: tuple[Simd, ...] = ("avx2", "avx512", "auto")  # tiles for either run on any machine
ARCHS: tuple[Arch, ...] = ("v65", "v66", "v68", "v69", "v73", "v75")
ORDERS_AND_HALOS: tuple[tuple[Order, Halo], ...] = (
    ("k_outer", "recompute"),
    ("h_outer", "recompute"),
    ("h_outer", "roll"),
)


def drawn_plan(draw: Draw, chain: Chain, kernel: Kernel, scope: Scope) -> Plan:
    """A plan for a chain.

    Args:
        draw: where to draw from.
        chain: what is planned.
        kernel: that the plan asks for.
        scope: where caches may live.
    """
    outputs = tensor_extents(chain)[1:]
    h_split = draw.size(max(output.row_blocks for output in outputs))
    if kernel == "host":
        return Plan(kernel=kernel, h_split=h_split, threads=draw.number(1, MOST_BANDS), simd=draw.one_of(*SETS))
    storage = "vtcm" if "vtcm" in scope.storages and draw.is_one_in(4) else "global"
    if "global" not in scope.storages:
        storage = "vtcm"
    arch: Arch = draw.one_of(*ARCHS) if storage == "vtcm" else "v68"
    if kernel == "hvx" and (chain.dtype == "int16" or draw.is_one_in(3)):
        return Plan(kernel=kernel, h_split=h_split, storage=storage, arch=arch)
    order, halo = draw.one_of(*ORDERS_AND_HALOS)
    return Plan(
        k_split=draw.size(max(output.channel_blocks for output in outputs)),
        h_split=h_split,
        order=order,
        halo=halo,
        filters=draw.one_of("per_tile", "resident"),
        buffering=draw.one_of("single", "double"),
        kernel=kernel,
        storage=storage,
        arch=arch,
    )
