"""Rows of pixels reach croutons, and rows of croutons pixels, whatever their widths, channels, strides and padding."""

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
import pytest
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.sym import Analyzer

from hexconv.analyze.block_grid import crosses_lines
from hexconv.analyze.planned import Planned
from hexconv.errors import HexconvError
from hexconv.lower import lower_case
from hexconv.lower.crouton_rows import CroutonRow, CroutonRows
from hexconv.lower.hvx import instructions
from hexconv.spec import Case, Chain, Conv2d, Extents, Padding, Plan, Requantize, tensor_extents
from hexconv.spec.choices import Engine
from hexconv.spec.dtypes import Dtype
from hexconv.spec.extents import CHANNEL_BLOCK
from hexconv.spec.phases import in_phases, unfolding_of
from hexconv.sweep.random_chains import Seeded
from hexconv.tir.trees import all_of, steps_of, with_values
from tests.deep import one_in
from tests.hmx.test_kernel import check

CHANNELS = (1, 2, 3, 4, 7, 8, 17, 24, 31, 32, 33, 48, 63, 64, 65, 80, 96, 100, 128, 129, 160, 192, 256, 320)
"""Pixels of few channels lie in one vector, those of 64 in halves of one; 128 end where vectors do."""
MOST_WEIGHTS = 1 << 14
HOW = Requantize(multiplier=1518500250, shift=-9)
VECTOR_BYTES = 128


def drawn(draw: Seeded) -> Case | None:
    """Draw a case; None where the chain has no such plan."""
    dtype: Dtype = draw.one_of("uint8", "int8")
    least = 0 if dtype == "uint8" else -128
    channels, convs = draw.one_of(*CHANNELS), list[Conv2d]()
    for number in range(draw.one_of(1, 1, 2)):
        before = convs[-1].out_channels if convs else channels
        engine: Engine = draw.one_of("fast", "fast", "exact")
        how = Requantize(multiplier=1518500250, shift=-9, zero_point=least + draw.number(0, 255), engine=engine)
        convs.append(
            Conv2d(
                out_channels=min(draw.one_of(*CHANNELS), max(1, MOST_WEIGHTS // before)),
                kernel=draw.one_of((1, 1), (1, 1), (3, 3), (2, 2), (1, 3), (5, 5)),
                stride=(1, 1) if number else draw.one_of((1, 1), (1, 1), (2, 2), (1, 2), (2, 1), (3, 3)),
                padding=Padding(**{side: draw.number(0, 3) for side in ("top", "left", "bottom", "right")}),
                bias=True,
                requantize=how,
            )
        )
    chain = Chain(
        input=(draw.one_of(1, 1, 2), draw.one_of(1, 2, 3, 5, 8, 9, 12, 17), draw.number(1, 33), channels),
        dtype=dtype,
        filter_dtype="int8",
        zero_point=least + draw.number(0, 255),
        conv=tuple(convs),
        input_layout=draw.one_of("NHWC", "NHWC", "NHWC", "NHCW32c"),
        output_layout=draw.one_of("NHWC", "NHWC", "NHWC", "NHWC8h8w32c"),
    )
    plan = Plan(
        kernel="hmx",
        k_split=draw.one_of(1, 2, 3, 4, 8),
        h_split=draw.one_of(1, 2),
        order=draw.one_of("k_outer", "h_outer"),
        halo=draw.one_of("recompute", "roll"),
        filters=draw.one_of("per_tile", "resident"),
        buffering=draw.one_of("single", "single", "double"),
    )
    case = Case("rows", chain, plan)
    return case if all(choice.used == "hmx" for choice in case.kernels) else None


def cases(number: int) -> Iterator[Case]:
    """Yield a stream of cases that can be lowered, and whose caches don't cross a line of VTCM."""
    for attempt in range(1000):
        try:
            case = drawn(Seeded(5, number, attempt))
            if case and not crosses_lines(Planned.of(case).blocks).any():
                lower_case(case)
                yield case
        except HexconvError:
            continue


@pytest.mark.simulator
@pytest.mark.parametrize("number", one_in(20, range(60)))
def test_rows_are_copied_exactly(number: int) -> None:
    """Results are numpy's, fringe too, and what is counted is what is predicted."""
    check(next(cases(number)))


@pytest.mark.simulator
def test_rows_behind_the_image_lie_in_slots_of_their_own() -> None:
    """The last stripe reads rows of a ring that the image doesn't have: they are filled, and no others."""
    how = Requantize(multiplier=1518500250, shift=-9, zero_point=0, engine="fast")
    conv = Conv2d(out_channels=64, kernel=(3, 3), padding=Padding(top=1, left=1, bottom=1, right=1), requantize=how)
    chain = Chain(input=(1, 23, 22, 4), dtype="uint8", filter_dtype="int8", zero_point=100, conv=(conv,))
    check(Case("ring", chain, Plan(kernel="hmx", h_split=2, halo="roll", filters="resident")))


Known = dict[tirx.Var, int]


def accesses(statement: tirx.Stmt, buffer: tirx.Var, known: Known) -> Iterator[tuple[int, int]]:
    """Yield the bytes of a buffer, the first and one past the last, that vectors read and write in all trips of loops.

    What a statement binds is known to those behind it.
    """
    if isinstance(statement, tirx.For):
        for trip in range(_value(statement.extent, known)):
            yield from accesses(statement.body, buffer, {**known, statement.loop_var: trip})
        return
    for step in steps_of(statement):
        if isinstance(step, tirx.For):
            yield from accesses(step, buffer, known)
            continue
        places = [(load.source, load.indices[0]) for load in all_of(step.value, TensorLoad)]
        places += [(step.buffer, step.indices[0])] if isinstance(step, tirx.BufferStore) else []
        for index in (index for source, index in places if source.same_as(buffer)):
            begin, lanes = (index.base, int(index.lanes)) if isinstance(index, tirx.Ramp) else (index, 1)
            yield _value(begin, known), _value(begin, known) + lanes
        if isinstance(step, tirx.Bind) and str(step.var.ty.dtype) == "int32":
            known[step.var] = _value(step.value, known)


def _value(expression: tirx.Expr, known: Known) -> int:
    values = {variable: tirx.IntImm("int32", value) for variable, value in known.items()}
    return int(Analyzer().simplify(with_values(expression, values)))


def test_runs_reach_their_blocks_by_exchanges_that_never_meet() -> None:
    """Whatever the channels and the stride are where a vector has four pixels, further apart than blocks or not."""
    for channels, stride in product(range(1, 33), range(1, 40)):
        apart = stride * channels
        if 3 * apart + channels > VECTOR_BYTES or apart == CHANNEL_BLOCK:
            continue
        spread = instructions.spread_runs(tirx.Var("pixels", instructions.VECTOR), channels, apart, CHANNEL_BLOCK)
        (way,) = all_of(spread, tirx.Shuffle)
        ways = np.array([int(word) for word in way.vectors], np.int32).view(np.uint8)
        found = lanes = np.arange(VECTOR_BYTES)
        for over in (64, 32, 16, 8, 4, 2, 1):
            found = np.where(ways & over, found[lanes ^ over], found)
        wanted = np.arange(4)[:, None] * apart + np.arange(channels)
        assert np.array_equal(found.reshape(4, CHANNEL_BLOCK)[:, :channels], wanted), (channels, stride)


def check_bytes(end: Extents, dtype: Dtype) -> None:
    """Check which bytes are read and written where the first and the last row of a tensor are copied."""
    row_bytes = end.logical_columns * end.channels
    size = end.batch * end.logical_rows * row_bytes
    pixels, croutons = (tirx.decl_buffer((1 << 20,), dtype, name) for name in ("pixels", "croutons"))
    read = set[int]()
    for begin, image in product((0, size - row_bytes), range(len(end.images))):
        pixel, crouton = [
            tirx.BufferLoad(pixels, [tirx.IntImm("int32", begin)]),
            tirx.BufferLoad(croutons, [tirx.IntImm("int32", 0)]),
        ]
        row = CroutonRow(pixel, crouton, None, None, image, 7, int(dtype == "int8"), end.channel_blocks)
        rows = CroutonRows(end, dtype)
        for first, last in accesses(rows.emit_read(row), pixels, {}):
            assert 0 <= first < last <= size
            read.update(range(first, last))
        if end.phases == (1, 1):
            seen = list(accesses(rows.emit_write(row), pixels, {}))
            written = {byte for first, last in seen for byte in range(first, last)}
            assert written == set(range(begin, begin + row_bytes))
    assert read


@pytest.mark.parametrize("number", one_in(4, range(20)))
def test_no_byte_outside_of_a_tensor_is_read_or_written(number: int) -> None:
    """Not even by a vector whose other bytes nobody needs: behind a tensor may lie another, or no memory."""
    chains = (case.chain for case in cases(100 + number) if prod(case.chain.input) >= VECTOR_BYTES)
    chain = next(chain for chain in chains if not unfolding_of(chain))
    ends = tensor_extents(in_phases(chain, "hmx"))
    for end in (ends[0], ends[-1]):
        check_bytes(end, chain.dtype)


@pytest.mark.parametrize(("stride", "channels"), [(2, 17), (3, 12), (2, 40), (3, 40)])
def test_no_byte_is_read_where_a_phase_image_lacks_a_column(stride: int, channels: int) -> None:
    """The last tile of one image lies inside of a row then, and that of another one doesn't."""
    conv = Conv2d(out_channels=8, kernel=(1, stride), stride=(1, stride), bias=True, requantize=HOW)
    for width in range(8 * stride - 2, 8 * stride + 2):
        chain = Chain(input=(1, 4, width, channels), dtype="uint8", filter_dtype="int8", conv=(conv,))
        extents = tensor_extents(in_phases(chain, "hmx"))[0]
        assert len(extents.images) == stride
        check_bytes(extents, chain.dtype)
