"""Say where the steps of convs touch the columns that the next strip reads too (`hexconv.spec.kept`).

Such columns have a cache of their own. Each block that makes rows of an intermediate says that its run may touch all
columns that are kept of it, of all rows; so does the first conv for the columns of the input that it reads:

    for row, column: hexconv_kept(kept1[0, row, .., column, ..])

The statement is a call of no function, for TVM to find the size of the cache and where the block's channels begin.
`hexconv.lower.kept_copies` emits what a step does with them.
"""

from collections.abc import Iterator, Sequence

import tvm
import tvm_ffi
from tvm import s_tir, tirx

from hexconv.compute.chain import output_name
from hexconv.kernel import Forms, has_bytes_apart
from hexconv.kernel.kept import KeptRuns
from hexconv.lower.conv_marks import touch_kept
from hexconv.lower.rings import KEPT
from hexconv.lower.sblock import with_allocated, with_body
from hexconv.spec import Chain, Plan
from hexconv.spec.names import kept_cache


def with_kept(module: tvm.IRModule, chain: Chain, plan: Plan, forms: Forms, every: Sequence[KeptRuns]) -> tvm.IRModule:
    """Allocate the caches of kept columns, and say in blocks what their runs touch of them (a scheduled module)."""
    if not every:
        return module
    caches = {runs.tensor: _cache(chain, plan, forms, runs) for runs in every}
    makers = {output_name(chain, index, forms): index for index in range(len(chain.conv))}
    known = {runs.tensor: runs for runs in every}

    def touches(block: s_tir.SBlock, index: int) -> Iterator[tirx.Stmt]:
        if index == 0 and 0 in known:
            yield _touches(known[0], caches[0], ())
        if index + 1 in known:
            runs = known[index + 1]
            outer = [axis.var for axis in block.iter_vars[2 : 2 + len(runs.outer)]]
            yield _touches(runs, caches[index + 1], outer)

    def touched(block: s_tir.SBlock) -> s_tir.SBlock:
        if block.name_hint == "root":
            return with_allocated(block, [*block.alloc_buffers, *caches.values()])
        if block.name_hint not in makers or not (found := list(touches(block, makers[block.name_hint]))):
            return block
        return with_body(block, tirx.SeqStmt([*found, block.body]))

    main = module["main"]
    body = tvm_ffi.structural_map(main.body, (s_tir.SBlock, touched))
    return tvm.IRModule({"main": main.with_body(body).with_attr(KEPT, [cache.name for cache in caches.values()])})


def _cache(chain: Chain, plan: Plan, forms: Forms, runs: KeptRuns) -> tirx.Var:
    """Declare the cache of kept columns; they lie where intermediates do."""
    dtype = "uint8" if has_bytes_apart(forms.activations[runs.tensor]) else chain.dtype
    return tirx.decl_buffer(runs.shape, dtype, kept_cache(runs.tensor), scope=plan.scope("intermediates"))


def _touches(runs: KeptRuns, cache: tirx.Var, outer: Sequence[tirx.Expr]) -> tirx.Stmt:
    """Say that a run of a block may touch all kept columns, of all rows; of all channels, or of some."""
    around: list[tuple[tirx.Var, int]] = []

    def every(name: str, extent: int) -> tirx.Var:
        around.append((tirx.Var(name, "int32"), extent))
        return around[-1][0]

    row, some = every("row", runs.rows), list(outer) or [every("run", size) for size in runs.outer]
    element = [tirx.const(0, "int32"), row, *some, every("column", runs.columns), every("ci", runs.column_elements)]
    body = touch_kept(tirx.BufferLoad(cache, element))
    for variable, extent in reversed(around):
        body = tirx.For(variable, 0, extent, tirx.ForKind.SERIAL, body)
    return body
