"""The same loops, counting instead of computing: how often each statement of a lowered module runs.

before:  for ...: if ...: input_cache[...] = input[...]
after:   for ...: if ...: counts[7] = counts[7] + 1

Every loop and every guard stays, so that running the result gives exact figures, whatever decides them. What a
statement moves or multiplies stands in the statement itself: a load of an argument is an element copied in, a store to
the output one copied out, and a sum that loads from a filter cache is a multiply-accumulate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, TensorLoad

from hexconv.lower.guards import IF_THEN_ELSE
from hexconv.lower.lowered import Lowered
from hexconv.lower.names import stores


@dataclass(frozen=True)
class Counts:
    """What a run of a module counted.

    Attributes:
        traffic_bytes: by argument: what was loaded from it into caches, or stored to it.
        macs: multiply-accumulates by conv: `conv1`, ...
    """

    traffic_bytes: dict[str, int]
    macs: dict[str, int]


def counting_module(lowered: Lowered) -> tvm.IRModule:
    """A module whose `main` takes an int64 vector, one element a store, and adds how often each store would run."""
    main = lowered.unmerged["main"]
    total = len(stores(lowered.unmerged))
    counts = tirx.decl_buffer((total,), "int64", "counts")
    places = iter(range(total))

    def count(_store: tirx.BufferStore) -> tirx.Stmt:
        place = [next(places)]
        return tirx.BufferStore(counts, tirx.BufferLoad(counts, place) + tirx.const(1, "int64"), place)

    body = tvm_ffi.structural_map(main.body, [(tirx.BufferStore, count), (tirx.SeqStmt, _without_buffers)])
    func = tirx.PrimFunc([counts], body).with_attr("global_symbol", "main").with_attr("tirx.noalias", True)
    return tvm.IRModule({"main": func})


def _without_buffers(sequence: tirx.SeqStmt) -> tirx.Stmt:
    """A sequence that allocates and declares nothing: no statement of it touches memory any more."""
    kept = [step for step in sequence.seq if not isinstance(step, (tirx.AllocBuffer, tirx.DeclBuffer))]
    return tirx.SeqStmt(kept) if len(kept) > 1 else kept[0]


def counts_of(lowered: Lowered, runs: Sequence[int]) -> Counts:
    """What a module moved and multiplied, from how often each of its stores ran."""
    main = lowered.unmerged["main"]
    traffic = {argument.name: 0 for argument in main.params if not argument.name.startswith("bias")}
    macs = {f"conv{i}": 0 for i in range(1, len(traffic) - 1)}
    for store, times in zip(stores(lowered.unmerged), runs, strict=True):
        assert not _chooses(store.value), "guards are statements by now"
        for buffer in (store.buffer, *_loaded(store)):
            if buffer.name in traffic:
                traffic[buffer.name] += times * tvm.DataType(buffer.dtype).itemsize
            if (conv := _multiplies(store, buffer)) in macs:
                macs[conv] += times
    return Counts(traffic, macs)


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
