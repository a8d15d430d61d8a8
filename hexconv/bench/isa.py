"""What the simulator runs beside code for bytes: which versions of Hexagon, which instructions, how many MACs a packet.

    python -m hexconv.bench.isa

`hexconv/docs/reference/dtypes.md` quotes it. Three tables:

- by instruction set: whether the simulator takes its programs; which HVX float instructions LLVM emits for a loop over
  vectors of float16; and what that loop, and the same in int16, does when it runs under the label of the newest
  instruction set that the simulator runs;
- the forms of multiply-accumulate (`hexconv.bench.forms`);
- a small chain in every dtype, by the plain kernel and by the HVX kernel.
"""

import re
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import tvm
from tvm import tirx

from hexconv.analyze import needed_macs
from hexconv.bench.forms import FORMS, macs_per_packet
from hexconv.errors import HexconvError, RunFailed
from hexconv.lower import lower_case
from hexconv.lower.hexagon import compile_for_hexagon
from hexconv.lower.hexagon_target import isas
from hexconv.run.measure import run_case
from hexconv.run.simulator.qemu import find_qemu, relabelled, runs
from hexconv.run.simulator.runner import Simulator
from hexconv.schedule.block import Block
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize, refusals
from hexconv.spec.dtypes import Dtype
from hexconv.spec.kernel import unstated

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
