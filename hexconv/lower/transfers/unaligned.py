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

Division = tirx.FloorDiv | tirx.FloorMod


def in_parts_of_blocks(loop: tirx.For) -> list[tirx.For]:
    """Return one loop that does a loop's trips block by block; none where no block is found.

    Args:
        loop: a loop over a body without conditions on its variable, in flat buffers.
    """
    for node in divided(loop):
        first, size = _begin(node, loop.loop_var), int(node.b)
        if all(_is_in_step(other, first, size, loop.loop_var) for other in _divisions(loop)):
            return [_by_blocks(loop, first, size)]
    return []


def divided(loop: tirx.For) -> list[tirx.FloorDiv]:
    """Return the divisions by a number, of what grows with a loop's variable, where its body loads and stores."""
    quotients = (node for node in _divisions(loop) if isinstance(node, tirx.FloorDiv))
    return [node for node in quotients if isinstance(node.b, tirx.IntImm)]


def _divisions(loop: tirx.For) -> list[Division]:
    """Return all quotients and remainders of what a loop's variable is in, where its body loads and stores."""
    found: list[Division] = []

    def visit(access: TensorLoad | tirx.BufferStore) -> None:
        for index in access.indices:
            tvm_ffi.structural_walk(index, [(tirx.FloorDiv, found.append), (tirx.FloorMod, found.append)])

    tvm_ffi.structural_walk(loop.body, [(TensorLoad, visit), (tirx.BufferStore, visit)])
    return [node for node in found if uses(node.a, loop.loop_var)]


def _begin(node: Division, variable: tirx.Var) -> tirx.Expr:
    """Return what is divided in a loop's first trip, if it grows by one from trip to trip."""
    return Analyzer().simplify(node.a - variable)


def _is_in_step(node: Division, first: tirx.Expr, size: int, variable: tirx.Var) -> bool:
    """Whether a division finds the blocks of a size that the trips from element `first` on reach."""
    begin = _begin(node, variable)
    if uses(begin, variable) or not isinstance(node.b, tirx.IntImm) or int(node.b) != size:
        return False
    return Analyzer().can_prove_equal(tirx.floormod(begin - first, size), ZERO)


def _by_blocks(loop: tirx.For, first: tirx.Expr, size: int) -> tirx.For:
    """Return the loop over blocks of a size, whose first trip is at element `first`."""
    block, element, variable = (tirx.Var(name, "int32") for name in ("block", "element", loop.loop_var.name))
    simple = Analyzer().simplify
    before = simple(tirx.floormod(first, size))

    def in_block(node: Division) -> tirx.Expr:
        if not uses(node.a, loop.loop_var):
            return node
        is_rest = isinstance(node, tirx.FloorMod)
        return element if is_rest else block + tirx.floordiv(_begin(node, loop.loop_var), size)

    body = tvm_ffi.structural_map(loop.body, [(tirx.FloorDiv, in_block), (tirx.FloorMod, in_block)])
    begin = simple(tirx.max(before - block * size, 0))
    end = simple(tirx.min(before + loop.extent - block * size, size))
    body = at_value(at_value(body, loop.loop_var, block * size + element - before), element, begin + variable)
    inner = tirx.For(variable, 0, simple(end - begin), loop.kind, body)
    return tirx.For(block, 0, simple(tirx.floordiv(before + loop.extent + size - 1, size)), loop.kind, inner)
