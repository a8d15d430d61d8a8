"""The documented strategy: stripes of the output, every earlier conv computed inside the step that needs it.

Pattern: input -> conv2d #1 -> ... -> conv2d #n -> output, as `hexconv.compute.chain_module` writes it.

    for n, ko_outer, ho_outer:                      k_split x h_split blocks of the output
        for n, ko_outer, ho_outer:                  conv2d #1: all channels, the rows that conv2d #2 needs
            input cache read, filter #1 cache read
            conv2d #1 -> intermediate
        filter #2 cache read
        conv2d #2 -> output cache
        write back output cache

1. Stage filters and output: a cache read per filter, a cache write of the output; all caches in the plan's scope.
2. Declare that convs read whole blocks, so that everything computed for them is whole blocks (`read_whole_blocks`).
3. Tile the write-back: this is the outermost nest.
4. From the last conv to the first: fuse it into the nest of the one after it, give it outer loops of its own, and read
   its filter there. The cache read that comes last is placed first, since each new stage lands just before the
consumer. 5. Set sums to zero apart from summing them (decompose_reduction), at rc_outer as the document has it.

Why not split the consumer's rows so that they always divide: the document's caches hold the rows of a whole step, and a
step that divides would be another schedule. The rest of a split is a guard (T.where) on the loop.

Source: seed document 003, "Schedule" of each section.
"""

from dataclasses import dataclass

import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from hexconv.compute.chain import has_epilogue, output_name
from hexconv.schedule import steps
from hexconv.spec import Chain, Plan

INPUT_LOOPS = ("n", "ho", "wo", "co", "hi", "wi", "ci")
FILTER_LOOPS = ("ko", "co", "rh", "rw", "cio", "ki", "cii")


@dataclass(frozen=True)
class ConvBlocks:
    """The blocks of one conv.

    Attributes:
        number: 1 for the first conv.
        sums: the block with the reduction.
        epilogue: the block that turns sums into the output, where there is one.
        filter_cache: the cache read of its filter.
    """

    number: int
    sums: SBlockRV
    epilogue: SBlockRV | None
    filter_cache: SBlockRV

    @property
    def result(self) -> SBlockRV:
        """The block that writes the conv's output."""
        return self.epilogue or self.sums


def stripe(module: tvm.IRModule, chain: Chain, plan: Plan) -> Schedule:
    """Schedule a chain's module (`chain_module(chain)`) by `plan`."""
    sch = Schedule(module, debug_mask="none")
    input_cache = sch.get_sblock("input_cache")
    convs = [_conv_blocks(sch, chain, index, plan.scope) for index in range(len(chain.conv))]
    sch.set_scope(input_cache, 0, plan.scope)
    for conv in convs:
        _declare_reads(sch, conv)

    output = sch.cache_write(convs[-1].result, 0, plan.scope)
    at = steps.write_back(sch, output, plan.k_split, plan.h_split).ho_outer
    steps.name_part(sch, sch.get_loops(output)[3:], "write back output cache")

    zeroed_at: list[LoopRV] = []
    places = [at]
    for conv in reversed(convs):
        is_last = conv is convs[-1]
        at, rc_outer = _place_conv(sch, conv, places[-1], None if is_last else plan)
        zeroed_at.append(rc_outer)
        places.append(at)
    steps.stage_read(sch, input_cache, places[-1], INPUT_LOOPS, "input cache read")
    for conv, place in zip(convs, reversed(places[1:]), strict=True):
        steps.stage_read(sch, conv.filter_cache, place, FILTER_LOOPS, f"filter #{conv.number} cache read")
    for conv, rc_outer in zip(reversed(convs), zeroed_at, strict=True):
        _zero_apart(sch, conv, rc_outer)
    return sch


def _conv_blocks(sch: Schedule, chain: Chain, index: int, scope: str) -> ConvBlocks:
    """Find a conv's blocks by name, stage its filter, put what it writes into `scope`."""
    name = output_name(chain, index)
    epilogue = sch.get_sblock(name) if has_epilogue(chain, index) else None
    sums = sch.get_sblock(f"accumulator{index + 1}") if epilogue else sch.get_sblock(name)
    if epilogue:
        sch.set_scope(sums, 0, scope)
    if name != "output":
        sch.set_scope(epilogue or sums, 0, scope)
    return ConvBlocks(index + 1, sums, epilogue, sch.cache_read(sums, 1, scope))


def _declare_reads(sch: Schedule, conv: ConvBlocks) -> None:
    """A conv reads whole blocks of its source and of its filter; its epilogue, of its sums."""
    steps.read_whole_blocks(sch, conv.sums, 0)
    steps.read_whole_blocks(sch, conv.sums, 1)
    if conv.epilogue:
        steps.read_whole_blocks(sch, conv.epilogue, 0)


def _place_conv(sch: Schedule, conv: ConvBlocks, at: LoopRV, own_tiles: Plan | None) -> tuple[LoopRV, LoopRV]:
    """Compute a conv at loop `at`; return the loop where its reads are staged, and its rc_outer.

    The last conv runs in the tiles of the write-back; every other one has outer loops of its own.
    """
    loops = steps.fuse_producer(sch, conv.result, at)
    label = f"conv2d #{conv.number}"
    if own_tiles is None:
        n, ho, wo, ko, *inner = loops
        sch.reorder(n, ko, ho, wo, *inner)
        steps.name_loops(sch, [n, ko, ho, wo], ["n", "ko_inner", "ho_inner", "wo"])
        steps.name_part(sch, [n, ko, ho, wo, *inner], label)
        reads_at, innermost = at, wo
    else:
        tiles = steps.tile_conv(sch, loops, own_tiles.k_split, own_tiles.h_split)
        outer = len(sch.get_loops(conv.result)) - len(loops) - 2
        body = sch.get_loops(conv.result)[outer + 3 :]
        steps.name_part(sch, body, label)
        reads_at, innermost, inner = tiles.ho_outer, body[2], body[3:]
    if conv.epilogue:
        steps.name_loops(sch, inner, ["hi", "wi", "ki"])
        steps.name_part(sch, inner, f"conv2d #{conv.number} epilogue")
        inner = steps.fuse_producer(sch, conv.sums, innermost)[4:]
    return reads_at, steps.order_reduction(sch, inner)


def _zero_apart(sch: Schedule, conv: ConvBlocks, rc_outer: LoopRV) -> None:
    """Split a conv's block into init and compute, each with its own loops inside of wo.

    before:  for rc_outer, hi, ...: if first: sums = 0; sums += ...
    after:   for hi, wi, ki: sums = 0
             for rc_outer, hi, wi, ...: sums += ...
    """
    init = sch.decompose_reduction(conv.sums, rc_outer)
    own = sch.get_loops(init)[-3:]
    steps.name_loops(sch, own, ["hi", "wi", "ki"])
    steps.name_part(sch, own, f"conv2d #{conv.number} init")
    below = sch.get_loops(conv.sums)
    steps.name_part(sch, below[-7:], f"conv2d #{conv.number} compute")
    # The declared reads have served: from here on TVM looks at what is really read.
    for block in (init, conv.sums, *([conv.epilogue] if conv.epilogue else [])):
        sch.unannotate(block, steps.EXPLICIT_READS)
