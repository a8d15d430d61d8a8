"""The closed forms of the kernel that a chain gets: its caches, who shares memory, what is moved and multiplied."""

from hexconv.analyze.footprint import PredictedCache, plain_footprints
from hexconv.analyze.host import host_footprints
from hexconv.analyze.host_work import host_work
from hexconv.analyze.hvx import hvx_footprints
from hexconv.analyze.hvx_work import hvx_work
from hexconv.analyze.needed import Work
from hexconv.analyze.rows import rows_footprints, rows_work
from hexconv.analyze.sharing import PredictedAllocation, plain_allocations
from hexconv.analyze.traffic import plain_work
from hexconv.kernel import is_nested
from hexconv.spec import Chain, Plan, kernel_of

FOOTPRINTS = {"plain": plain_footprints, "hvx": hvx_footprints, "rows": rows_footprints, "host": host_footprints}
WORKS = {"plain": plain_work, "hvx": hvx_work, "rows": rows_work, "host": host_work}


def cache_footprints(chain: Chain, plan: Plan) -> tuple[PredictedCache, ...]:
    """Every cache of the kernel that a chain gets under a plan, in the order in which they are first written.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 16, 16, 32), conv=(Conv2d(out_channels=32),))
    >>> [[cache.name for cache in cache_footprints(chain, Plan(kernel=kernel))] for kernel in ("plain", "host")]
    [['input_cache', 'filter1_cache', 'output_cache'], ['filter1_cache']]
    """
    return FOOTPRINTS[_form(chain, plan)](chain, plan)


def shared_allocations(chain: Chain, plan: Plan) -> tuple[PredictedAllocation, ...]:
    """Every physical allocation of that kernel, as they are made; only the caches of the plain kernel share any."""
    if kernel_of(chain, plan) == "plain":
        return plain_allocations(chain, plan)
    return tuple(PredictedAllocation((c.name,), c.dtype, c.bytes) for c in cache_footprints(chain, plan))


def planned_work(chain: Chain, plan: Plan) -> Work:
    """All bytes moved and all multiply-accumulates done.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
    >>> chain = Chain(input=(1, 64, 64, 128), conv=(conv, conv))
    >>> [planned_work(chain, Plan(kernel=kernel)).macs["conv1"] for kernel in ("plain", "host")]
    [4242014208, 566820864]
    """
    return WORKS[_form(chain, plan)](chain, plan)


def _form(chain: Chain, plan: Plan) -> str:
    """Whose closed forms a plan follows."""
    return "rows" if is_nested(chain, plan) else kernel_of(chain, plan)
