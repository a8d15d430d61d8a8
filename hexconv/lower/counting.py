"""The same loops, counting instead of computing: how often each statement of a lowered module runs.

before:  for ...: if ...: input_cache[...] = input[...]
after:   for ...: if ...: counts[7] = counts[7] + 1

Every loop and every guard stays, so that running the result gives exact figures, whatever decides them. What a
statement moves or multiplies stands in the statement itself: a load of an argument is an element copied in, a store to
the output one copied out, and a sum that loads from a filter cache is a multiply-accumulate. Of asynchronous copies the
bytes are counted, and the groups that are under way in each queue: a start adds one, a wait leaves as many as it says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad

from hexconv.lower import queues
from hexconv.lower.guards import IF_THEN_ELSE
from hexconv.lower.lowered import Lowered
from hexconv.lower.names import stores


@dataclass(frozen=True)
class Counts:
    """What a run of a module counted.

    Attributes:
        traffic_bytes: by argument: what was loaded from it into caches, or stored to it.
        macs: multiply-accumulates by conv: `conv1`, ...
        copies_in_flight: by argument: the most groups of asynchronous copies that were under way.
    """

    traffic_bytes: dict[str, int]
    macs: dict[str, int]
    copies_in_flight: dict[str, int]


def counting_module(lowered: Lowered) -> tvm.IRModule:
    """A module whose `main` takes an int64 vector and counts there: how often each store runs, what each queue does."""
    main = lowered.unmerged["main"]
    total = len(stores(lowered.unmerged))
    counts = tirx.decl_buffer((total + len(QUEUE_COUNTS) * len(_tensors(lowered)),), "int64", "counts")
    places = iter(range(total))

    def count(_store: tirx.BufferStore) -> tirx.Stmt:
        return _added(counts, next(places), tirx.const(1, "int64"))

    def follow(node: tirx.Evaluate) -> tirx.Stmt:
        return _followed(counts, total, node)

    body = tvm_ffi.structural_map(main.body, [(tirx.BufferStore, count), (tirx.SeqStmt, _without_buffers)])
    body = tvm_ffi.structural_map(body, (tirx.Evaluate, follow))
    func = tirx.PrimFunc([counts], body).with_attr("global_symbol", "main").with_attr("tirx.noalias", True)
    return tvm.IRModule({"main": func})


QUEUE_COUNTS = ("bytes", "under way", "most under way")
"""What is counted of each queue."""


def _followed(counts: tirx.Var, first: int, node: tirx.Evaluate) -> tirx.Stmt:
    """What an operation on a queue does to its counts, which stand behind `first` others."""
    call = node.value
    if not isinstance(call, Call) or call.op not in (queues.COPY, queues.START, queues.END, queues.WAIT):
        return node
    moved, current, most = (first + int(call.args[0]) * len(QUEUE_COUNTS) + offset for offset in range(3))
    if call.op.same_as(queues.COPY):
        return _added(counts, moved, call.args[3].astype("int64"))
    if call.op.same_as(queues.START):
        larger = tirx.max(tirx.BufferLoad(counts, [current]), tirx.BufferLoad(counts, [most]))
        return tirx.SeqStmt([_added(counts, current, tirx.const(1, "int64")), tirx.BufferStore(counts, larger, [most])])
    if call.op.same_as(queues.WAIT):
        left = tirx.min(tirx.BufferLoad(counts, [current]), call.args[1].astype("int64"))
        return tirx.BufferStore(counts, left, [current])
    return tirx.Evaluate(tirx.const(0, "int32"))


def _added(counts: tirx.Var, place: int, more: tirx.Expr) -> tirx.BufferStore:
    """Add to one count."""
    return tirx.BufferStore(counts, tirx.BufferLoad(counts, [place]) + more, [place])


def _without_buffers(sequence: tirx.SeqStmt) -> tirx.Stmt:
    """A sequence that allocates and declares nothing: no statement of it touches memory any more."""
    kept = [step for step in sequence.seq if not isinstance(step, (tirx.AllocBuffer, tirx.DeclBuffer))]
    return tirx.SeqStmt(kept) if len(kept) > 1 else kept[0]


def counts_of(lowered: Lowered, runs: Sequence[int]) -> Counts:
    """What a module moved and multiplied, from what its counting module counted."""
    found, tensors = stores(lowered.unmerged), _tensors(lowered)
    traffic = dict.fromkeys(tensors, 0)
    macs = {f"conv{i}": 0 for i in range(1, len(traffic) - 1)}
    for store, times in zip(found, runs, strict=False):
        assert not _chooses(store.value), "guards are statements by now"
        for buffer in (store.buffer, *_loaded(store)):
            if buffer.name in traffic:
                traffic[buffer.name] += times * tvm.DataType(buffer.dtype).itemsize
            if (conv := _multiplies(store, buffer)) in macs:
                macs[conv] += times
    by_queue = np.reshape(runs[len(found) :], (len(tensors), len(QUEUE_COUNTS)))
    moved = {name: traffic[name] + int(row[0]) for name, row in zip(tensors, by_queue, strict=True)}
    return Counts(moved, macs, {name: int(row[2]) for name, row in zip(tensors, by_queue, strict=True)})


def _tensors(lowered: Lowered) -> list[str]:
    """The arguments that are copied, in the order of their queues."""
    return [argument.name for argument in lowered.unmerged["main"].params if not argument.name.startswith("bias")]


def _multiplies(store: tirx.BufferStore, buffer: tirx.Var) -> str | None:
    """The conv whose filter cache `buffer` is, where the store is no copy into it."""
    name = buffer.name
    is_filter = name.startswith("filter") and name.endswith("_cache") and not buffer.same_as(store.buffer)
    return "conv" + name.removeprefix("filter").removesuffix("_cache") if is_filter else None


def _loaded(store: tirx.BufferStore) -> list[tirx.Var]:
    """The buffers that a store's value is loaded from, one entry a load."""
    found: list[tirx.Var] = []
    tvm_ffi.structural_walk(store.value, (TensorLoad, lambda load: found.append(load.source)))
    return found


def _chooses(value: tirx.Expr) -> bool:
    """Whether part of a value is only evaluated under a condition."""
    found: list[Call] = []
    tvm_ffi.structural_walk(value, (Call, found.append))
    return any(call.op.same_as(IF_THEN_ELSE) for call in found)
