"""What the simulator runs beside code for bytes: which versions of Hexagon, which instructions, how many MACs a packet.

python -m reports.isa

`hexconv/docs/reference/dtypes.md` quotes it. Three tables:

- by instruction set: whether the simulator takes its programs; which HVX float instructions LLVM emits for a loop over
  vectors of float16; and what that loop, and the same in int16, does when it runs under the label of the newest
  instruction set that the simulator runs;
- the forms of multiply-accumulate (`reports.isa`);
- a small chain in every dtype, by the plain kernel and by the HVX kernel.

for tile: for word of activations: for block: for pixel: sums[pixel, block] += form(filter vector, word)

This is the inner loop of the `hvx` kernel, with the form in place of its instruction. A kernel that uses a form can't
reach more than the form reaches here.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import tvm
from tvm import tirx

from hexconv.analyze import needed_macs
from hexconv.errors import HexconvError, RunFailed
from hexconv.lower import lower_case
from hexconv.lower.hexagon_object import compile_for_hexagon
from hexconv.lower.hexagon_target import isas
from hexconv.lower.hvx import instructions
from hexconv.run.measure import run_case
from hexconv.run.simulator.qemu import find_qemu, relabelled, runs
from hexconv.run.simulator.runner import Simulator
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize, refusals
from hexconv.spec.dtypes import Dtype
from hexconv.spec.kernel_choice import unstated
from hexconv.tir.statements import Block, vector_register

TILES, PIXELS, BLOCKS, WORDS = 8, 4, 4, 64
SUMS = TILES * PIXELS * BLOCKS * instructions.WORDS
WHOLE = tirx.Ramp(0, 1, instructions.WORDS)


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
        activations = instructions.splat(word) if self.splats else word
        name = f"llvm.hexagon.V6.{self.instruction}.128B"
        return tirx.call_llvm_pure_intrin(instructions.VECTOR, name, total, weights, activations)


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
    sizes = (TILES * PIXELS * WORDS * 4, WORDS * BLOCKS * instructions.BYTES)
    inputs = [random.integers(0, 256, size, np.uint8) for size in sizes]
    counts = Simulator().run(_kernel(form), inputs, [((SUMS,), "int32")]).counts
    assert counts
    return SUMS * WORDS * form.products / counts.packets


def _kernel(form: Form) -> tvm.IRModule:
    """Return the kernel `main(data, filters, output)`: flat buffers, of bytes and, for the output, of int32."""
    data = tirx.decl_buffer((TILES * PIXELS * WORDS * 4,), "uint8", "data", data_alignment=instructions.BYTES)
    filters = tirx.decl_buffer(
        (WORDS * BLOCKS * instructions.BYTES,), "uint8", "filters", data_alignment=instructions.BYTES
    )
    output = tirx.decl_buffer((SUMS,), "int32", "output", data_alignment=instructions.BYTES)
    body = Block()

    def tile(at: Block, number: tirx.Expr) -> None:
        first = number * PIXELS
        sums = {place: vector_register(at, f"{place[0]}_{place[1]}") for place in product(range(PIXELS), range(BLOCKS))}
        for register in sums.values():
            at.store(register, WHOLE, instructions.splat(0))
        at.loop("word", WORDS // 2, lambda inner, word: _step(inner, form, sums, data, filters, first, word * 2))
        for (pixel, block), register in sums.items():
            place = ((first + pixel) * BLOCKS + block) * instructions.WORDS
            at.store(output, tirx.Ramp(place, 1, instructions.WORDS), tirx.BufferLoad(register, [WHOLE]))

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
            block.bind(
                "weights",
                instructions.load(filters, ((word + half) * BLOCKS + number) * instructions.BYTES),
                instructions.VECTOR,
            )
            for number in range(BLOCKS)
        ]

        for (pixel, number), register in sums.items():
            total = form.added(tirx.BufferLoad(register, [WHOLE]), weights[number], words[pixel][half])
            block.store(register, WHOLE, total)


LANES, VECTORS = 64, 4
HVX_FLOAT = re.compile(r"\bv\d+(?::\d+)?\.(?:qf16|qf32|hf|sf) = ")
KINDS: tuple[tuple[Dtype, Dtype | None], ...] = (
    ("float32", None),
    ("float16", None),
    ("uint8", "int8"),
    ("int16", "int16"),
    ("int16", "int8"),
)

Row = dict[str, Any]


def sets() -> list[Row]:
    """Return the rows of the table by instruction set."""
    return [_of_set(isa) for isa in reversed(isas())]


def _of_set(isa: str) -> Row:
    qemu = find_qemu()
    return {
        "isa": isa,
        "simulator": "runs" if runs(qemu.path, isa) else "refuses",
        "hvx_float_instructions": len(HVX_FLOAT.findall(compile_for_hexagon(_multiply_add("float16"), isa).text)),
        **{f"{dtype}_as_{qemu.isa}": _under_label(dtype, isa, qemu.isa) for dtype in ("float16", "int16")},
    }


def _multiply_add(dtype: str) -> tvm.IRModule:
    """Return a kernel for `output = one * other + one` over four vectors of 64 elements."""
    one, other, output = (
        tirx.decl_buffer((VECTORS * LANES,), dtype, name, data_alignment=128) for name in ("one", "other", "output")
    )
    body = Block()

    def vector(at: Block, number: tirx.Expr) -> None:
        lanes = tirx.Ramp(number * LANES, 1, LANES)
        first, second = (tirx.BufferLoad(buffer, [lanes]) for buffer in (one, other))
        at.store(output, lanes, first * second + first)

    body.loop("vector", VECTORS, vector)
    main = tirx.PrimFunc([one, other, output], body.statement()).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": main})


def _under_label(dtype: str, isa: str, label: str) -> str:
    """Packets of a loop that was compiled for `isa`, run as `label`."""
    compiled = compile_for_hexagon(_multiply_add(dtype), isa)
    compiled = replace(compiled, isa=label, elf=relabelled(compiled.elf, label))
    values = np.arange(VECTORS * LANES).astype(dtype) % 7
    try:
        measured = Simulator().run_object(compiled, [values, values], [(values.shape, dtype)])
    except RunFailed:
        return "aborts"
    right = np.array_equal(measured.outputs[0], values * values + values)
    return f"{measured.counts.packets} packets" if right and measured.counts else "wrong"


def forms() -> list[Row]:
    """Return the rows of the table by form of multiply-accumulate."""
    return [
        {
            "instruction": form.instruction,
            "operands": form.operands,
            "macs": form.products * 32,
            "macs_per_packet": f"{macs_per_packet(form):.1f}",
        }
        for form in FORMS
    ]


def chains() -> list[Row]:
    """The rows of the table by dtype, for two pointwise convs of 64 channels over 24x24, everything staged once."""
    plain = Plan(kernel="plain", order="h_outer", halo="roll", filters="resident")
    return [_of_chain(chain, plan) for chain in map(_chain, KINDS) for plan in (plain, unstated(chain, "hvx"))]


def _chain(kind: tuple[Dtype, Dtype | None]) -> Chain:
    dtype, filter_dtype = kind
    integer = dtype in ("uint8", "int16")
    conv = Conv2d(
        out_channels=64,
        requantize=Requantize(multiplier=1 << 24, shift=-4, rounding="up") if integer else None,
        filter_l1=65535 if dtype == "int16" else None,
    )
    return Chain(input=(1, 24, 24, 64), dtype=dtype, filter_dtype=filter_dtype, conv=(conv, conv))


def _of_chain(chain: Chain, plan: Plan) -> Row:
    named: Row = {"dtype": chain.dtype, "filters": chain.dtype_of_filters, "kernel": plan.kernel}
    if reason := next(filter(None, refusals(chain, plan.kernel or "plain")), ""):
        return {**named, "why_not": reason}
    case = Case("isa", chain, plan)
    result = run_case(case, lower_case(case), Simulator())
    assert result.counts
    density = needed_macs(chain) / result.counts.packets
    return {**named, "passed": result.check.passed, "macs_per_packet": f"{density:.3g}"}


def main() -> int:
    """Print the tables."""
    try:
        tables = {"by instruction set": sets(), "by form": forms(), "two convs, by dtype": chains()}
    except HexconvError as error:
        print(f"hexconv: {error}", file=sys.stderr)
        return error.exit_code
    for title, rows in tables.items():
        print(f"{title}\n{pd.DataFrame(rows).to_string(index=False, na_rep='')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
