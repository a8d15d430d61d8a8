"""List the workspaces that compiled code will ask its runtime for, and the threads that ask at the same time."""

from dataclasses import dataclass

import tvm
from tvm import tirx
from tvm.ir import Call

from hexconv.errors import Unsupported
from hexconv.lower import vtcm
from hexconv.schedule.trees import all_of

_ALLOCATE = tvm.ir.Op.get("tirx.TVMBackendAllocWorkspace")


@dataclass(frozen=True)
class Workspaces:
    """What a function asks for.

    Attributes:
        heap_bytes: the size of every workspace in the heap, in the order of the code.
        vtcm_bytes: the size of every workspace in VTCM.
    """

    heap_bytes: tuple[int, ...]
    vtcm_bytes: tuple[int, ...]


@dataclass(frozen=True)
class _Workspace:
    size_bytes: int
    in_vtcm: bool


def workspaces_of(finished: tvm.IRModule) -> Workspaces:
    """List every workspace that the code asks for, as often as it exists at the same time.

    Workspaces in VTCM name their device by a number, others don't.

    Raises:
        Unsupported: a workspace whose size isn't known before the run.
    """
    again = [each for loop in _parallel(finished) for each in _asked_for(loop.body) * (int(loop.extent) - 1)]
    found = [*_asked_for(finished), *again]
    heap, fast = (tuple(each.size_bytes for each in found if each.in_vtcm is in_vtcm) for in_vtcm in (False, True))
    return Workspaces(heap, fast)


def threads_of(finished: tvm.IRModule) -> int:
    """Return the number of threads, one for each trip of a parallel loop; 0 without such a loop."""
    return max((int(loop.extent) for loop in _parallel(finished)), default=0)


def _parallel(finished: tvm.IRModule) -> list[tirx.For]:
    """Find the loops whose trips run at the same time."""
    return [loop for loop in all_of(finished, tirx.For) if loop.kind == tirx.ForKind.PARALLEL]


def _asked_for(part: tvm.IRModule | tirx.Stmt) -> list[_Workspace]:
    """List the workspaces that some code asks for."""
    return [_workspace(call) for call in all_of(part, Call) if call.op.same_as(_ALLOCATE)]


def _workspace(call: Call) -> _Workspace:
    """Read the call that asks for a workspace."""
    _device_type, device, size, *_dtype = call.args
    if not isinstance(size, tirx.IntImm):
        raise Unsupported(f"a workspace of {size} bytes: its size has to be a constant")
    return _Workspace(int(size), in_vtcm=isinstance(device, tirx.IntImm) and int(device) == vtcm.DEVICE_ID)
