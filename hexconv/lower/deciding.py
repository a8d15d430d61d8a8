"""Find what decides how often statements run: variables of loops and guards, and all that these are computed from.

A buffer is a variable too: where a loop's extent is loaded from one, what is stored there decides as well.
"""

from collections import defaultdict

import tvm_ffi
from tvm import tirx

from hexconv.lower import queues
from hexconv.schedule.trees import all_of


def deciding(body: tirx.Stmt) -> frozenset[tirx.Var]:
    """Find the variables and buffers without whose values some loop or guard of `body` could not be evaluated."""
    known: set[tirx.Var] = set()
    sources = _sources(body)
    pending = _asked(body)
    while pending:
        variable = pending.pop()
        if variable not in known:
            known.add(variable)
            pending += sources[variable]
    return frozenset(known)


def _asked(body: tirx.Stmt) -> list[tirx.Var]:
    """Find the variables in extents, in conditions, and in the amounts that operations on queues state."""
    asked: list[tirx.Var] = []

    def ask(*values: tirx.Expr) -> None:
        asked.extend(found for value in values for found in all_of(value, tirx.Var))

    loop = (tirx.For, lambda node: ask(node.min, node.extent))
    guard = (tirx.IfThenElse, lambda node: ask(node.condition))
    queue = (tirx.Evaluate, lambda node: ask(*queues.amounts_of(node)))
    tvm_ffi.structural_walk(body, [loop, guard, queue])
    return asked


def _sources(body: tirx.Stmt) -> defaultdict[tirx.Var, list[tirx.Var]]:
    """Map each variable and buffer to those that its value is computed from."""
    sources: defaultdict[tirx.Var, list[tirx.Var]] = defaultdict(list)

    def store(node: tirx.BufferStore) -> None:
        sources[node.buffer] += [found for part in (node.value, *node.indices) for found in all_of(part, tirx.Var)]

    def bind(node: tirx.Bind) -> None:
        sources[node.var] += all_of(node.value, tirx.Var)

    tvm_ffi.structural_walk(body, [(tirx.BufferStore, store), (tirx.Bind, bind)])
    return sources
