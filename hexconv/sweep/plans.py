"""Draw random plans: any legal splits, dividing or not, and any legal mix of the other knobs that the kernel obeys."""

from typing import Any, get_args

from hexconv.spec import Chain, Plan, tensor_extents
from hexconv.spec.edges import IN_BLOCKS
from hexconv.spec.extents import ROW_BLOCK
from hexconv.spec.kernels import Kernel
from hexconv.spec.kernels.hvx import most_threads
from hexconv.spec.knobs import KNOBS, Arch, Halo, Order, acts
from hexconv.spec.places import MIXED, Storage
from hexconv.spec.plan import WITHOUT_TAG
from hexconv.spec.strips import why_no_strips
from hexconv.sweep.draw import Draw
from hexconv.sweep.scope import Scope

ARCHS: tuple[Arch, ...] = get_args(Arch)
TAGGED = tuple(arch for arch in ARCHS if arch not in WITHOUT_TAG)
"""The architectures of which TVM knows how much VTCM they have."""
LEAST_VTCM_BYTES, DOUBLINGS = 1 << 18, 5
"""Where a plan states how much VTCM there is: from 256 KiB to 8 MiB."""
ORDERS_AND_HALOS: tuple[tuple[Order, Halo], ...] = (
    ("k_outer", "recompute"),
    ("h_outer", "recompute"),
    ("h_outer", "roll"),
)


def drawn_plan(draw: Draw, chain: Chain, kernel: Kernel, scope: Scope) -> Plan:
    """Draw a plan for a chain.

    Args:
        draw: the source of the draws.
        chain: the chain that is planned.
        kernel: the kernel that the plan asks for.
        scope: where caches may live, and which knobs are drawn.
    """
    outputs = tensor_extents(chain)[1:]
    knobs: dict[str, Any] = {"h_split": draw.size(max(output.row_blocks for output in outputs))}
    if acts("rows", kernel) and "rows" in scope.turned and draw.is_one_in(2):
        knobs = {"rows": _rows(draw, chain)}
    if acts("storage", kernel):
        knobs["storage"] = _storage(draw, scope)
        knobs |= _vtcm(draw, scope) if knobs["storage"] != "global" else {"arch": Plan.arch}
    if acts("halo", kernel):
        knobs["order"], knobs["halo"] = draw.one_of(*ORDERS_AND_HALOS)
    if acts("k_split", kernel):
        knobs["k_split"] = draw.size(max(output.channel_blocks for output in outputs))
    for name, knob in KNOBS.items():
        if knob.drawn and acts(name, kernel) and name in scope.turned:
            knobs[name] = draw.one_of(*knob.drawn)
    if kernel == "hvx":
        knobs["threads"] = min(knobs.get("threads", 1), most_threads(knobs["arch"]))
    if acts("w_split", kernel) and "w_split" in scope.turned and draw.is_one_in(3):
        knobs |= _strip(draw, chain, knobs["halo"])
    return Plan(kernel=kernel, **knobs)


def _vtcm(draw: Draw, scope: Scope) -> dict[str, Any]:
    """Draw whose VTCM there is, and how much: where that isn't known, and in one case of four."""
    if "vtcm_bytes" not in scope.turned:
        return {"arch": draw.one_of(*TAGGED)}
    arch = draw.one_of(*ARCHS)
    is_stated = draw.is_one_in(4) or arch in WITHOUT_TAG
    return {"arch": arch, "vtcm_bytes": LEAST_VTCM_BYTES << draw.number(0, DOUBLINGS) if is_stated else None}


def _strip(draw: Draw, chain: Chain, halo: Halo) -> dict[str, Any]:
    """Blocks of columns of a strip, any where the chain can be computed in strips; and whether shared ones are kept."""
    w_split = draw.size(tensor_extents(chain)[-1].column_blocks)
    if why_no_strips(chain, w_split):
        return {}
    keeps = halo == "roll" and not why_no_strips(chain, w_split, "keep") and draw.is_one_in(2)
    return {"w_split": w_split, "column_halo": "keep" if keeps else "recompute"}


def _rows(draw: Draw, chain: Chain) -> int:
    """Rows of a stripe: any, where the output lies row by row."""
    rows = tensor_extents(chain)[-1].rows
    if chain.output_layout != IN_BLOCKS:
        return draw.size(rows)
    return draw.one_of(*(some for some in (1, 2, 4, ROW_BLOCK) if some <= rows))


def _storage(draw: Draw, scope: Scope) -> Storage:
    """Draw where caches lie: all outside of VTCM, all in it, or some of them in it."""
    mixed: list[Storage] = [storage for storage in scope.storages if storage in MIXED]
    if "global" in scope.storages and (len(scope.storages) == 1 or not draw.is_one_in(2 if mixed else 4)):
        return "global"
    if "vtcm" in scope.storages and (not mixed or draw.is_one_in(2)):
        return "vtcm"
    return draw.one_of(*mixed)
