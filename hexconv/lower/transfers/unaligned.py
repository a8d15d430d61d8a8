"""Split a loop at the blocks of what it copies from or to, where its first trip may begin inside of one.

    before:  for c in range(trips): cache[c] = input[(first + c) // 8 * 64 + (first + c) % 8]
    after:   for block in range((first % 8 + trips + 7) // 8):
                 for c in range(end - begin):
                     cache[block * 8 + begin + c - first % 8] = input[(first // 8 + block) * 64 + begin + c]

`begin` and `end` are the elements of a block that the loop's trips reach.
"""

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer

from hexconv.lower.transfers.run import ZERO, at_value, uses


def in_parts_of_blocks(loop: tirx.For) -> list[tirx.For]:
    """Return one loop that does a loop's trips block by block; none where no block is found.

    Args:
        loop: a loop over a body without conditions on its variable, in flat buffers.
    """
    for node in divided(loop):
        first = Analyzer().simplify(node.a - loop.loop_var)
        if not uses(first, loop.loop_var) and (found := _by_blocks(loop, first, int(node.b))):
            return [found]
    return []


def divided(loop: tirx.For) -> list[tirx.FloorDiv]:
    """Return the divisions by a number, of what grows with a loop's variable, where its body loads and stores."""
    found: list[tirx.FloorDiv] = []

    def visit(access: TensorLoad | tirx.BufferStore) -> None:
        for index in access.indices:
            tvm_ffi.structural_walk(index, (tirx.FloorDiv, found.append))

    tvm_ffi.structural_walk(loop.body, [(TensorLoad, visit), (tirx.BufferStore, visit)])
    return [node for node in found if uses(node.a, loop.loop_var) and isinstance(node.b, tirx.IntImm)]


def _by_blocks(loop: tirx.For, first: tirx.Expr, size: int) -> tirx.For | None:
    """Return the loop over blocks of a size, the first trip at element `first`; None where another block is in it."""
    block, element, variable = (tirx.Var(name, "int32") for name in ("block", "element", loop.loop_var.name))
    simple = Analyzer().simplify
    before = simple(tirx.floormod(first, size))
    is_whole = True

    def in_block(node: tirx.FloorDiv | tirx.FloorMod) -> tirx.Expr:
        nonlocal is_whole
        if not uses(node, loop.loop_var):
            return node
        begin = simple(node.a - loop.loop_var)
        fits = isinstance(node.b, tirx.IntImm) and int(node.b) == size and not uses(begin, loop.loop_var)
        if not fits or not Analyzer().can_prove_equal(tirx.floormod(begin - first, size), ZERO):
            is_whole = False
            return node
        return element if isinstance(node, tirx.FloorMod) else block + tirx.floordiv(begin, size)

    body = tvm_ffi.structural_map(loop.body, [(tirx.FloorDiv, in_block), (tirx.FloorMod, in_block)])
    if not is_whole:
        return None
    begin = simple(tirx.max(before - block * size, 0))
    end = simple(tirx.min(before + loop.extent - block * size, size))
    body = at_value(at_value(body, loop.loop_var, block * size + element - before), element, begin + variable)
    inner = tirx.For(variable, 0, simple(end - begin), loop.kind, body)
    return tirx.For(block, 0, simple(tirx.floordiv(before + loop.extent + size - 1, size)), loop.kind, inner)
