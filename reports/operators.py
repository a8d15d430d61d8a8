"""Operators between chains, by shape: packets an element in plain C and in HVX, and the floor by instructions.

python -m reports.operators

Each operator runs once in plain C and once in HVX, in one program on the simulator, on drawn codes. Both results are
compared with numpy's, and bytes beside them that nothing may write.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from math import prod
from pathlib import Path

import numpy as np
import pandas as pd

from hexconv.build.called_library import called
from hexconv.network.answer import result_of
from hexconv.network.compiled import operators_object
from hexconv.network.operator_table import form_of, with_integers
from hexconv.network.program_steps import (
    NCHW,
    NHWC,
    Along,
    Dimension,
    Extents,
    Filters,
    Held,
    Map,
    Operand,
    Operation,
    Powers,
    Program,
    View,
    Window,
)
from hexconv.network.texts import statements
from hexconv.network.views import Placed, loops
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.toolchain import join_foreign
from hexconv.run.tensors import Array
from hexconv.whitelist import Code
from hexconv.written import scratch
from reports.operator_floors import least_of

ISA = "v67"
GUARD_BYTES, GUARD = 256, 0xA5
WAYS = ("plain", "hvx")
SECONDS = 600.0


@dataclass(frozen=True)
class Drawn:
    """An operation with all that it reads: logical NHWC, by the names of its buffers.

    Attributes:
        operation: the operation; the names of its buffers are its own.
        arrays: what its sources hold.
        constants: the constants that it reads besides.
        shift_bytes: how far the first byte of each tensor lies behind a vector.
    """

    operation: Operation
    arrays: Mapping[str, Array]
    constants: Mapping[str, Array]
    shift_bytes: int = 0


@dataclass(frozen=True)
class Found:
    """What came of an operation in one way.

    Attributes:
        differing: elements that differ from numpy's.
        overrun: bytes beside the result that were written.
        packets: the packets of all threads.
        critical_packets: those of the caller, and of the busiest other thread.
    """

    differing: int
    overrun: int
    packets: int
    critical_packets: int


def codes_of(random: np.random.Generator, operand: Operand) -> Array:
    """Draw the elements of an operand: codes, or normally distributed floats."""
    if operand.is_float:
        return random.standard_normal(operand.extents).astype(np.float32)
    return random.integers(0, 256, operand.extents, np.uint8).view(operand.dtype)


def run_operations(
    drawn: Sequence[Drawn], threads: int = 1, isa: str = ISA, alone: bool = False
) -> list[tuple[Found, Found]]:
    """Run operations in plain C and in HVX, in one program on the simulator; both findings of each.

    Args:
        drawn: the operations.
        threads: how many threads they run on.
        isa: the instruction set.
        alone: whether they have code for themselves alone, as a network's library has for its own.

    Raises:
        RunFailed: the program failed.
        ToolMissing: zig or the simulator is not there.
    """
    prepared = [_prepared(each, number) for number, each in enumerate(drawn)]
    read, places = _laid_out(prepared)
    size, steps = 0, []
    regions: list[tuple[int, int]] = []
    for each in prepared:
        for way, _ in enumerate(WAYS):
            result, begin = each.operation.result, size + GUARD_BYTES + each.shift_bytes
            size = -(-(begin + result.bytes + GUARD_BYTES) // 128) * 128
            regions.append((begin, begin + result.bytes))
            steps.append(_call(each, way, places | {result.buffer: Code("WRITTEN({})").format(begin)}))
    hvx = operators_object(isa, _program(prepared) if alone else None)
    packets, written = _simulated("\n".join(steps), read, size, len(regions), threads, isa, hvx)
    found = []
    for number, each in enumerate(prepared):
        own = {name.partition(":")[2]: array for name, array in each.constants.items()}
        arrays = {**each.constants, **each.arrays}
        wanted = _as_laid(result_of(each.operation, arrays, {**each.constants, **own}), each.operation.result)
        found.append(
            tuple(_judged(written, regions[2 * number + way], wanted, packets[1 + 2 * number + way]) for way in (0, 1))
        )
    return found


def program_of(drawn: Sequence[Drawn]) -> Program:
    """Return the steps that `run_operations` runs, with their constants and integer forms."""
    return _program([_prepared(each, number) for number, each in enumerate(drawn)])


def _program(prepared: Sequence[Drawn]) -> Program:
    constants = {name: array for each in prepared for name, array in each.constants.items()}
    return Program(tuple(each.operation for each in prepared), (), (), constants)


def _judged(written: Array, region: tuple[int, int], wanted: Array, packets: Array) -> Found:
    begin, end = region
    made = (
        written[begin:end].view(wanted.dtype)
        if wanted.itemsize == 1
        else np.frombuffer(written[begin:end].tobytes(), wanted.dtype)
    )
    beside = np.concatenate([written[begin - GUARD_BYTES // 2 : begin], written[end : end + GUARD_BYTES // 2]])
    differs = made != wanted.reshape(-1)
    return Found(
        int(np.count_nonzero(differs)),
        int(np.count_nonzero(beside != GUARD)),
        int(packets[0]),
        int(packets[1] + max(packets[2:], default=0)),
    )


def _prepared(drawn: Drawn, number: int) -> Drawn:
    """Give the buffers of an operation names of their own, and its result its integer form."""

    def named(name: str) -> str:
        return f"{number}:{name}" if name else name

    def renamed(view: View) -> View:
        loops = (replace(each, places=named(each.places)) if each.places else each for each in view.dimensions)
        return replace(view, dimensions=tuple(loops))

    def moved(operand: Operand) -> Operand:
        return replace(operand, buffer=named(operand.buffer), integers=named(operand.integers))

    [step] = with_integers(Program((drawn.operation,), (), (), drawn.constants)).steps
    form = form_of(drawn.operation, drawn.constants)
    constants = {named(name): array for name, array in drawn.constants.items()}
    assert isinstance(step, Operation)
    if form is not None:
        constants[named(step.result.integers)] = np.frombuffer(form, np.uint8)
    how = tuple(renamed(each) if isinstance(each, View) else each for each in step.how)
    step = replace(step, sources=tuple(map(moved, step.sources)), result=moved(step.result), how=how)
    return Drawn(step, {named(name): array for name, array in drawn.arrays.items()}, constants, drawn.shift_bytes)


def _as_laid(values: Array, operand: Operand) -> Array:
    """Lay logical NHWC out as an operand's layout says."""
    return np.ascontiguousarray(values if operand.layout == NHWC else values.transpose(0, 3, 1, 2))


def _laid_out(prepared: Sequence[Drawn]) -> tuple[Array, dict[str, Code]]:
    """Put all that operations read into one array; return it with the place of each buffer in C."""
    content, places = bytearray(), {}
    for each in prepared:
        tensors = {
            source.buffer: (_as_laid(each.arrays[source.buffer], source), each.shift_bytes)
            for source in each.operation.sources
            if source.buffer in each.arrays
        }
        for name, (array, shift) in {**tensors, **{name: (array, 0) for name, array in each.constants.items()}}.items():
            content += bytes(-len(content) % 128 + shift)
            places[name] = Code("READ({})").format(len(content))
            content += array.tobytes()
    return np.frombuffer(bytes(content) or b"\0", np.uint8), places


def _call(drawn: Drawn, way: int, places: Mapping[str, Code]) -> str:
    own = {name.partition(":")[2]: places[name] for name in drawn.constants}  # as `how` calls them
    [statement] = statements((drawn.operation,), (), {**own, **places})
    text = Code("    operators = &all[{}];\n    packets = mark(packets);\n    if ({} != 0) return {};")
    return str(text.format(way, statement.call, 1))


def _simulated(
    steps: str, read: Array, size: int, calls: int, threads: int, isa: str, hvx: bytes
) -> tuple[Array, Array]:
    package, network = Path(__file__).parent, resources.files("hexconv.network") / "operators"
    places = [
        resources.files("hexconv.build") / "simulator",
        resources.files("hexconv.build") / "platform",
        resources.files("hexconv.run") / "simulator",
        network,
    ]
    with scratch() as folder:
        (folder / "steps.c").write_text(f"{steps}\n    mark(packets);\n")
        (folder / "hvx.o").write_bytes(hvx)
        sources = [str(network / name) for name in ("hexconv_operators.c", "hexconv_filters.c")]
        flags = (
            f"-DTHREADS={threads}",
            f'-DSTEPS="{folder / "steps.c"}"',
            *(f"-I{place}" for place in places),
            *sources,
        )
        elf = join_foreign(folder / "hvx.o", package / "operators_entry.c", isa, "-Wno-unused-const-variable", *flags)
    kernel = called(elf, isa, 0, 0, threads)
    shapes = [((size,), "uint8"), ((calls + 1, threads + 2), "int64")]
    run = Simulator(seconds=SECONDS, slots=False, isa=isa).run_object(kernel, [read], shapes)
    return run.outputs[1], run.outputs[0]


@dataclass(frozen=True)
class Row:
    """An operator on one shape.

    Attributes:
        operator: the operator, and how.
        tensors: the NHWC shapes that it reads and writes.
        elements: the elements of its largest tensor.
        plain_packets: packets an element in plain C.
        hvx_packets: packets an element in HVX, on one thread.
        floor_packets: the least packets an element that these instructions take (`reports.operator_floors`).
        floor_counts: which of them fill their packets; all others fit beside them.
        over_floor: `hvx_packets` over `floor_packets`.
        threads_packets: packets an element of the busiest thread of four, with what the caller does alone.
        differing: elements that differ from numpy's, in all three.
    """

    operator: str
    tensors: str
    elements: int
    plain_packets: float
    hvx_packets: float
    floor_packets: float
    floor_counts: str
    over_floor: float
    threads_packets: float
    differing: int


@dataclass(frozen=True)
class Case:
    """An operation of the table, with the arrays that it reads besides tensors that are drawn."""

    name: str
    operation: Operation
    constants: Mapping[str, Array]


THREADS = 4
SCALES = (0.0201331, 0.0310127, 0.0417709)
"""Of the operands and the result: no sum of theirs lies half way between two codes."""


def _operand(name: str, extents: Extents, at: int, zero_point: int = 0) -> Operand:
    return Operand(name, extents, "uint8", NHWC, float(np.float32(SCALES[at])), zero_point)


def cases() -> Iterator[Case]:
    """The operators of the table, of shapes that networks have."""
    for size, channels in ((56, 64), (28, 32), (14, 96)):
        one = (1, size, size, channels)
        sources = _operand("one", one, 0, 121), _operand("other", one, 1, 117)
        yield Case("add", Operation("add", "add", sources, _operand("result", one, 2, 131)), {})
    for size, channels in ((112, 24), (14, 480), (7, 960)):
        one, gates = _operand("one", (1, size, size, channels), 0, 121), _operand("gates", (1, 1, 1, channels), 1)
        operation = Operation("multiply", "multiply", (one, gates), _operand("result", one.extents, 2, 131))
        yield Case("multiply by gates", operation, {})
    for size, channels in ((56, 64), (14, 480)):
        one, factors = (
            _operand("one", (1, size, size, channels), 0, 121),
            Operand("factors", (1, 1, 1, channels), "float32"),
        )
        operation = Operation("multiply", "multiply", (one, factors), _operand("result", one.extents, 2, 131))
        values = np.random.default_rng(0).normal(0, 1, factors.extents).astype(np.float32)
        yield Case("multiply by channel", operation, {"factors": values})
    for size, channels, kernel, stride in (
        (112, 64, 3, 2),
        (56, 64, 2, 2),
        (28, 192, 3, 1),
        (27, 256, 3, 2),
        (20, 128, 5, 1),
    ):
        side = kernel // 2 if kernel % 2 else 0
        made = (size + 2 * side - kernel) // stride + 1
        source, result = _operand("one", (1, size, size, channels), 0), _operand("result", (1, made, made, channels), 0)
        window = Window((kernel, kernel), (stride, stride), (1, 1), (side, side, side, side))
        yield Case(
            f"max pool {kernel}x{kernel} stride {stride}",
            Operation("max_pool", "pool", (source,), result, (window,)),
            {},
        )
    for size, channels in ((112, 24), (14, 480), (7, 1280)):
        source, result = (
            _operand("one", (1, size, size, channels), 0, 121),
            _operand("result", (1, 1, 1, channels), 1, 3),
        )
        yield Case("global average", Operation("global_average_pool", "mean", (source,), result), {})
    for size in (56, 14):
        one = (1, size, size, 64)
        yield Case(
            "requantise",
            Operation("convert", "convert", (_operand("one", one, 0),), _operand("result", one, 1)),
            {},
        )
    for layouts, name in (((NHWC, NCHW), "NHWC to NCHW"), ((NCHW, NHWC), "NCHW to NHWC")):
        for size, channels in ((128, 32), (224, 3), (7, 1280), (20, 150)):
            one, made = (
                Operand(word, (1, size, size, channels), "uint8", layout)
                for word, layout in zip(("one", "result"), layouts, strict=True)
            )
            yield Case(name, Operation("convert", "convert", (one,), made), {})
    reals = Operand("one", (1, 224, 224, 3), "float32", NCHW)
    codes = replace(_operand("result", (1, 224, 224, 3), 0, 114), layout=NCHW)
    yield Case("quantise", Operation("convert", "convert", (reals,), codes), {})
    codes = _operand("one", (1, 128, 128, 3), 0, 114)
    yield Case(
        "dequantise",
        Operation("convert", "convert", (codes,), Operand("result", codes.extents, "float32")),
        {},
    )


def other_cases() -> Iterator[Case]:
    """Operators with weights, tables or loops of their own: the model of packets has their prices from here."""
    random = np.random.default_rng(0)
    for inputs, outputs, window, pixels in ((512, 1000, 1, 1), (1280, 1000, 1, 1), (128, 64, 2, 14), (64, 32, 2, 28)):
        weights = random.integers(-127, 128, (outputs, window, window, inputs)).astype(np.int8)
        how = Filters("weights", "int8", "scales", outputs, weights.shape, sums_bias="bias")
        scales = random.uniform(0.001, 0.002, outputs).astype(np.float32)
        bias = random.integers(-2000, 2000, outputs).astype(np.int32)
        source = _operand("one", (1, pixels, pixels, inputs), 0, 121)
        made = replace(_operand("result", (1, pixels * window, pixels * window, outputs), 2, 131), scale=0.07)
        name, more = "matmul", ()
        if window > 1:
            name, more = "conv_transpose", (Window((window, window), (window, window), (1, 1), (0, 0, 0, 0)),)
        told = {"weights": weights, "scales": scales, "bias": bias}
        words = f"{name} {window}x{window} stride {window}" if window > 1 else name
        yield Case(words, Operation(name, name, (source,), made, (how, *more)), told)
    for size, channels in ((56, 64), (14, 256)):
        halves = [_operand(word, (1, size, size, channels), at) for at, word in enumerate(("one", "other"))]
        made = _operand("result", (1, size, size, 2 * channels), 0)
        yield Case("concat", Operation("concat", "concat", tuple(halves), made, (Along(3),)), {})
    for size, channels, stride in ((35, 192, 1), (14, 480, 1), (56, 24, 2)):
        one = _operand("one", (1, size, size, channels), 0, 121)
        window = Window((3, 3), (stride, stride), (1, 1), (1, 1, 1, 1))
        made = _operand("result", (1, size // stride, size // stride, channels), 1, 3)
        name = f"average pool 3x3 stride {stride}"
        yield Case(name, Operation("average_pool", "pool", (one,), made, (window,)), {})
    for size, channels in ((7, 544), (14, 256), (28, 64)):
        pair = _operand("one", (1, size, size, channels), 0, 121), _operand("other", (1, size, size, channels), 1, 117)
        made = _operand("result", (1, 1, 1, channels), 2, 3)
        operation = Operation("average_of_sum", "mean", pair, made, (Held(0.0, np.inf),))
        yield Case("average of sums", operation, {})
    reals = (1 / (1 + np.exp(-np.arange(-128, 128) / 30))).astype(np.float32).reshape(1, 256)
    for size, channels in ((56, 64), (14, 480)):
        one = _operand("one", (1, size, size, channels), 0, 121)
        made = replace(one, buffer="result", scale=1 / 256, zero_point=0)
        yield Case("table", Operation("map", "map", (one,), made, (Map("reals", 1),)), {"reals": reals})
    for size, channels in ((32, 48), (128, 64)):
        one = _operand("one", (1, size, size, channels), 0)
        made = replace(one, buffer="result", extents=(1, 2 * size, 2 * size, channels // 4))
        read, wrote = (Placed.of(each, (1, each.extents[3], *each.extents[1:3])) for each in (one, made))
        apart = read.reshaped((1, 2, 2, channels // 4, size, size))
        joined = wrote.reshaped((1, channels // 4, size, 2, size, 2))
        assert apart is not None
        assert joined is not None
        how = View(loops(apart.moved(apart.places.transpose(0, 3, 4, 1, 5, 2)), joined))
        yield Case(
            "depth to space",
            Operation("view", "view", (one,), made, (how,)),
            {},
        )
    for name, nest, source, result in _VIEWS:
        how = View(tuple(Dimension(*loop) for loop in nest))
        operands = Operand("one", source, "uint8"), Operand("result", result, "uint8")
        yield Case(name, Operation("view", "view", operands[:1], operands[1], (how,)), {})
    for extents, axis in (((1, 16, 2100, 4), 1), ((1, 1, 1, 1000), 3), ((1, 1, 1, 4), 3)):
        one = _operand("one", extents, 0, 114)
        powers = np.exp(-np.arange(256) * np.float64(np.float32(one.scale))).astype(np.float32)
        made = replace(one, buffer="result", scale=2.0**-8, zero_point=0)
        operation = Operation("softmax", "softmax", (one,), made, (Powers("powers", axis),))
        yield Case("softmax", operation, {"powers": powers})


_VIEWS = (
    ("channel shuffle", ((784, 136, 136), (34, 1, 4), (4, 34, 1)), (1, 28, 28, 136), (1, 28, 28, 136)),
    ("split", ((6400, 32, 16), (16, 1, 1)), (1, 80, 80, 32), (1, 80, 80, 16)),
    (
        "nearest 2x",
        ((20, 2560, 10240), (2, 0, 5120), (20, 128, 256), (2, 0, 128), (128, 1, 1)),
        (1, 20, 20, 128),
        (1, 40, 40, 128),
    ),
)


def rows() -> Iterator[Row]:
    """Measure all cases on one thread, and on several."""
    random, listed = np.random.default_rng(0), [*cases(), *other_cases()]
    drawn = [
        Drawn(
            case.operation,
            {
                each.buffer: codes_of(random, each)
                for each in case.operation.sources
                if each.buffer not in case.constants
            },
            case.constants,
        )
        for case in listed
    ]
    for case, (plain, hvx), (_, several) in zip(
        listed, run_operations(drawn, alone=True), run_operations(drawn, THREADS, alone=True), strict=True
    ):
        step = case.operation
        elements = max(prod(operand.extents) for operand in (*step.sources, step.result))
        issued = least_of(step, case.constants)
        assert issued
        floor = issued.packets / elements
        told = [
            ", ".join("x".join(map(str, source.extents)) for source in step.sources),
            "x".join(map(str, step.result.extents)),
        ]
        each = [found / elements for found in (plain.packets, hvx.packets, several.critical_packets)]
        yield Row(
            case.name,
            " to ".join(told),
            elements,
            round(each[0], 3),
            round(each[1], 4),
            round(floor, 4),
            issued.fullest,
            round(each[1] / floor, 2),
            round(each[2], 4),
            plain.differing + hvx.differing + several.differing,
        )


def main() -> int:
    """Write the table; exit 1 if an element differs."""
    table = [asdict(row) for row in rows()]
    pd.DataFrame(table).to_csv(Path(__file__).with_suffix(".csv"), index=False)
    print(pd.DataFrame(table).to_string())
    return int(any(row["differing"] for row in table))


if __name__ == "__main__":
    sys.exit(main())
