"""How much VTCM an architecture has, and how it is given out.

The capacities are those of TVM's target tags. They stand here so that a search, which lowers nothing, need not wait
for TVM; `tests/lower/test_vtcm.py` holds them against the tags.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

from hexconv.errors import InputError
from hexconv.spec.plan import Plan

SCOPE = "global.vtcm"
GRANULE_BYTES = 2048  # VTCM is given out in steps and at addresses of 2 KiB
DEFAULT_ARCH = "v68"

_MIB = 1 << 20
CAPACITIES_BYTES: Mapping[str, int] = MappingProxyType(
    {"v65": _MIB // 4, "v66": _MIB // 4, "v68": 4 * _MIB, "v69": 8 * _MIB, "v73": 8 * _MIB, "v75": 8 * _MIB}
)
"""The VTCM of every Hexagon architecture that TVM has a target tag for."""


MOST_QUEUES = 32
"""The queues of asynchronous copies that a platform has for each thread, as in `hexconv_platform.h`."""


def copy_queues(convs: int, plan: Plan) -> int:
    """Return how many queues the copies of some convs take: one for each filter, the input and the output.

    >>> copy_queues(31, Plan(buffering="double")), copy_queues(31, Plan(buffering="single"))
    (33, 0)
    """
    return convs + 2 if plan.buffering == "double" else 0


def capacity_bytes(arch: str, stated_bytes: int | None = None) -> int:
    """Return the VTCM of an architecture in bytes: the stated bytes if there are any, else those of TVM's target tag.

    Raises:
        InputError: TVM has no tag for that architecture, and nothing is stated.
    """
    if stated_bytes is None and arch not in CAPACITIES_BYTES:
        what = f"plan.vtcm_bytes is missing, and TVM knows the VTCM of {', '.join(CAPACITIES_BYTES)} alone"
        raise InputError.because(what, f"give the bytes that {arch} has")
    return CAPACITIES_BYTES[arch] if stated_bytes is None else stated_bytes


def capacity_of(plan: Plan) -> int:
    """Return how many bytes of VTCM a plan may fill.

    Raises:
        InputError: TVM has no tag for its architecture, and the plan doesn't say either.
    """
    return capacity_bytes(plan.arch, plan.vtcm_bytes)


def granules_bytes(buffer_bytes: int, copies: int = 1) -> int:
    """Return the bytes of VTCM that a buffer takes: each of its copies is rounded up to 2 KiB.

    >>> granules_bytes(1), granules_bytes(2048), granules_bytes(2049), granules_bytes(2050, copies=2)
    (2048, 2048, 4096, 4096)
    """
    return copies * math.ceil(buffer_bytes // copies / GRANULE_BYTES) * GRANULE_BYTES
