"""How many MACs per packet each form of HVX's multiply-accumulate reaches, on one tile of sums kept in registers.

    for tile: for word of activations: for block: for pixel: sums[pixel, block] += form(filter vector, word)

This is the inner loop of the `hvx` kernel, with the form in place of its instruction. A kernel that uses a form can't
reach more than the form reaches here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import tvm
from tvm import tirx

from hexconv.lower.hvx import vector
from hexconv.run.simulator.runner import Simulator
from hexconv.schedule.block import Block, vector_register

TILES, PIXELS, BLOCKS, WORDS = 8, 4, 4, 64
SUMS = TILES * PIXELS * BLOCKS * vector.WORDS
WHOLE = tirx.Ramp(0, 1, vector.WORDS)


@dataclass(frozen=True)
class Form:
    """One way to multiply and accumulate.

    Attributes:
        instruction: the name of LLVM's intrinsic.
        operands: the types of its operands, for people.
        products: how many products one lane of 32 bits sums.
        splats: whether the activations have to be a vector: one word in all lanes.
    """

    instruction: str
    operands: str
    products: int
    splats: bool = False

    def added(self, total: tirx.Expr, weights: tirx.Expr, word: tirx.Expr) -> tirx.Expr:
        """`total` plus what the instruction makes of a filter vector and a word of activations."""
        activations = vector.splat(word) if self.splats else word
        name = f"llvm.hexagon.V6.{self.instruction}.128B"
        return tirx.call_llvm_pure_intrin(vector.VECTOR, name, total, weights, activations)


FORMS = (
    Form("vrmpyub.acc", "uint8 vector, uint8 scalar", 4),
    Form("vrmpybus.acc", "uint8 vector, int8 scalar", 4),
    Form("vrmpybusv.acc", "uint8 vector, int8 vector", 4, splats=True),
    Form("vrmpybv.acc", "int8 vector, int8 vector", 4, splats=True),
    Form("vdmpyhb.acc", "int16 vector, int8 scalar", 2),
    Form("vdmpyhsat.acc", "int16 vector, int16 scalar, saturating", 2),
    Form("vdmpyhvsat.acc", "int16 vector, int16 vector, saturating", 2, splats=True),
    Form("vmpyiwh.acc", "int32 vector, int16 scalar", 1),
)


def macs_per_packet(form: Form) -> float:
    """MACs per packet of a form, measured on the simulator; all packets of the kernel count.

    Raises:
        ToolMissing: no simulator.
        RunFailed: the simulator doesn't know the instruction.
    """
    random = np.random.default_rng(0)
    sizes = (TILES * PIXELS * WORDS * 4, WORDS * BLOCKS * vector.BYTES)
    inputs = [random.integers(0, 256, size, np.uint8) for size in sizes]
    counts = Simulator().run(_kernel(form), inputs, [((SUMS,), "int32")]).counts
    assert counts
    return SUMS * WORDS * form.products / counts.packets


def _kernel(form: Form) -> tvm.IRModule:
    """Return the kernel `main(data, filters, output)`: flat buffers, of bytes and, for the output, of int32."""
    data = tirx.decl_buffer((TILES * PIXELS * WORDS * 4,), "uint8", "data", data_alignment=vector.BYTES)
    filters = tirx.decl_buffer((WORDS * BLOCKS * vector.BYTES,), "uint8", "filters", data_alignment=vector.BYTES)
    output = tirx.decl_buffer((SUMS,), "int32", "output", data_alignment=vector.BYTES)
    body = Block()

    def tile(at: Block, number: tirx.Expr) -> None:
        first = number * PIXELS
        sums = {place: vector_register(at, f"{place[0]}_{place[1]}") for place in product(range(PIXELS), range(BLOCKS))}
        for register in sums.values():
            at.store(register, WHOLE, vector.splat(0))
        at.loop("word", WORDS // 2, lambda inner, word: _step(inner, form, sums, data, filters, first, word * 2))
        for (pixel, block), register in sums.items():
            place = ((first + pixel) * BLOCKS + block) * vector.WORDS
            at.store(output, tirx.Ramp(place, 1, vector.WORDS), tirx.BufferLoad(register, [WHOLE]))

    body.loop("tile", TILES, tile)
    main = tirx.PrimFunc([data, filters, output], body.statement()).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": main})


def _step(
    block: Block,
    form: Form,
    sums: Mapping[tuple[int, int], tirx.Buffer],
    data: tirx.Buffer,
    filters: tirx.Buffer,
    first: tirx.Expr,
    word: tirx.Expr,
) -> None:
    """Multiply two words of every pixel, which are loaded as one; `sums` are by pixel and block."""
    words = []
    for pixel in range(PIXELS):
        read = tirx.BufferLoad(data, [tirx.Ramp(((first + pixel) * WORDS + word) * 4, 1, 8)])
        pair = block.bind("words", tirx.reinterpret("int64", read), "int64")
        words.append([tirx.Cast("int32", pair), tirx.Cast("int32", pair >> tirx.IntImm("int64", 32))])
    for half in range(2):
        weights = [
            block.bind("weights", vector.load(filters, ((word + half) * BLOCKS + number) * vector.BYTES), vector.VECTOR)
            for number in range(BLOCKS)
        ]

        for (pixel, number), register in sums.items():
            total = form.added(tirx.BufferLoad(register, [WHOLE]), weights[number], words[pixel][half])
            block.store(register, WHOLE, total)
