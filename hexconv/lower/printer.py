"""Listings: TVMScript with comments that name parts, layouts and memory, under a header of plan, versions and caches.

TVM prints the module whose loops still carry their part of the chain as an annotation. Each such line becomes a comment
with the name of the part above the plain loop, and loops directly inside of each other become one `T.grid`; what loops
are there for is said above these. Every argument stands on a line of its own, under the name of its layout. The text
parses back (`tvm.script.from_source`) to a module structurally equal to `Lowered.module`.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import tvm

from hexconv.errors import visible
from hexconv.kernel import layouts_of
from hexconv.kernel.engine import is_converted
from hexconv.lower import queues
from hexconv.lower.lowered import Allocation, Lowered
from hexconv.spec import Case
from hexconv.spec.activations import TABLE
from hexconv.spec.kernel_choice import kernel_words
from hexconv.spec.names import filter_name, numbered
from hexconv.spec.strips import Strips, strips_of
from hexconv.spec.vectors import CONVERTS, OF_CHANNELS, OFFSET, SCALES, vector_names
from hexconv.tir.loops import LOOP_NAME, NOTE, PART


def header(case: Case, lowered: Lowered, agreement: str) -> Iterator[str]:
    """Yield the header: case, plan, versions, and the tables of caches and allocations."""
    yield f"# hexconv {case.name}: {case.chain.slug}, plan {case.plan.slug}; TVM {tvm.__version__}"
    yield "#"
    yield from (f"#   {visible(line)}".rstrip() for line in case.to_toml().splitlines())
    yield "#"
    yield f"# kernel: {kernel_words(case.kernels)}"
    if strips := strips_of(case.chain, case.settled):
        yield f"# n counts strips of {strips.columns} columns, {strips.count} an image: {_places(strips)}"
    if any(memory.copies > 1 for memory in lowered.allocations):
        yield "# caches of all bands, one a thread; what is allocated in a band is that of its thread"
    elif case.settled.threads > 1 and case.settled.kernel == "hmx":
        yield "# threads share all caches; of the sums of a row of tiles, the first axis counts threads"
    elif case.settled.threads > 1:
        yield "# of caches that are allocated in a band, each of its threads has its own"
    yield "# caches (compacted):"
    yield from _table(
        [("cache", "scope", "dtype", "shape", "elements", "bytes")]
        + [
            (c.name, c.scope, c.dtype, "x".join(map(str, c.shape)), str(c.elements), str(c.bytes))
            for c in lowered.caches
        ]
    )
    yield "# allocations (merged):"
    rows = [(a.name, ", ".join(a.holds), str(a.elements), str(a.bytes)) for a in lowered.allocations]
    yield from _table([("allocation", "holds", "elements", "bytes"), *rows])
    yield f"# peak {sum(a.bytes for a in lowered.allocations)} bytes; {agreement}"


def _places(strips: Strips) -> str:
    """Say where the strips of an image begin."""
    if strips.keeps:
        first = strips.first_made(0)
        return f"the first begins at {first}, each other one {strips.columns} left of that before it"
    last = f"the last begins at {strips.first_made(strips.count - 1)}"
    return last if strips.divide else f"{last} and writes from {strips.first_written(strips.count - 1)} on"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as aligned comment lines."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "#   " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


LOOP = re.compile(r"^for (\w+) in (?:range\((\w+)\)|T\.(serial|parallel)\((.+?), annotations=\{(.*)\}\)):$")
ALLOC = re.compile(r"^(\w+) = T\.alloc_buffer\(")
VIEW = re.compile(r"^(\w+?)(?:_\d+)? = (?:T\.decl_buffer\(.*data=(\w+)\.data.*\)|(\w+)\.view\(.*\))$")
RETYPED = re.compile(r'^(\w+) = (\w+)\.view\("(\w+)"\)$')
QUEUED = re.compile(r"^T\.(dma_\w+)\((\d+)(.*)\)$")
NOTE_SIGN = "# NOTE: "
INDENT = 4


@dataclass(frozen=True)
class Line:
    """A line of the script."""

    depth: int
    text: str


def annotated_tir(case: Case, lowered: Lowered, agreement: str) -> str:
    """Write the text of a `.tir` file.

    Args:
        case: the case that was lowered.
        lowered: the lowered case.
        agreement: a line that says how the allocations compare with the closed form.
    """
    return "\n".join([*header(case, lowered, agreement), *_body(case, lowered)]) + "\n"


def _body(case: Case, lowered: Lowered) -> Iterator[str]:
    """Yield the script with its comments."""
    memories = {memory.name: memory for memory in lowered.allocations}
    convs = len(case.chain.conv)
    script = lowered.labelled.script().splitlines()
    lines = [Line((len(text) - len(text.lstrip())) // INDENT, text.lstrip()) for text in script]
    commented = _notes_outside(list(_with_comments(_with_layouts(lines, case), memories, convs)))
    for line in _with_grids(commented):
        yield " " * INDENT * line.depth + line.text if line.text else ""


def _with_layouts(lines: Sequence[Line], case: Case) -> Iterator[Line]:
    """Give the signature a line for every argument, which says how the argument is laid out.

    before:  def main(input: T.Buffer((1, 8, 8, 4), "int8"), output: T.Buffer((1, 1, 1, 1, 8, 8, 32), "int8")):
    after:   def main(
                 input: T.Buffer((1, 8, 8, 4), "int8"),  # NHWC
                 output: T.Buffer((1, 1, 1, 1, 8, 8, 32), "int8"),  # NHWC8h8w32c
             ):
    """
    layouts = _layouts(case)
    for line in lines:
        if not line.text.startswith("def main("):
            yield line
            continue
        function = ast.parse(f"{line.text} ...").body[0]
        assert isinstance(function, ast.FunctionDef)
        yield Line(line.depth, "def main(")
        for argument in function.args.args:
            stated = ast.get_source_segment(line.text, argument)
            yield Line(line.depth + 1, f"{stated},  # {layouts[argument.arg]}")
        yield Line(line.depth, "):")


def _layouts(case: Case) -> dict[str, str]:
    """Name the layout of every argument."""
    layouts = layouts_of(case.chain, case.settled)
    filters = {filter_name(number): layout.name for number, layout in enumerate(layouts.filter_arguments, 1)}
    numbers = range(1, len(case.chain.conv) + 1)
    of_channels = {numbered(name, number): "O" for number in numbers for name in (*OF_CHANNELS, OFFSET)}
    scales = {numbered(SCALES, number): "O, vector after vector" for number in numbers}
    kinds = {True: "bias tables, one a block of 32 channels", False: "O, what the sums begin with"}
    scales |= {numbered(CONVERTS, number): kinds[is_converted(case.chain.conv[number - 1])] for number in numbers}
    order = "codes, dealt for vlut" if layouts.has_rows or case.settled.kernel == "hmx" else "codes"
    tables = {name: order for name, each in vector_names(case.chain).items() if each.what == TABLE}
    ends = {"input": case.chain.input_layout, "output": case.chain.output_layout}
    return {**ends, **filters, **of_channels, **scales, **tables}


def _with_comments(lines: Iterable[Line], memories: dict[str, Allocation], convs: int) -> Iterator[Line]:
    """Put a comment above each part of the chain and each allocation, and take the annotations out."""
    for line in lines:
        if queued := QUEUED.match(line.text):
            yield from _queued(queued, line.depth, convs)
            continue
        if (loop := LOOP.match(line.text)) and loop[4]:
            if note := re.search(rf'"{NOTE}": "([^"]*)"', loop[5]):
                yield Line(line.depth, f"{NOTE_SIGN}{note[1]}")
            if part := re.search(rf'"{PART}": "([^"]*)"', loop[5]):
                yield Line(line.depth, f"# {part[1]}")
            assert LOOP_NAME in loop[5], "only this project annotates loops"
            trips = f"range({loop[4]})" if loop[3] == "serial" else f"T.parallel({loop[4]})"
            yield Line(line.depth, f"for {loop[1]} in {trips}:")
            continue
        if comment := _memory_comment(line.text, memories):
            yield Line(line.depth, comment)
        yield Line(line.depth, RETYPED.sub(lambda view: _spelled_out(view, memories), line.text))


def _queued(call: re.Match[str], depth: int, convs: int) -> Iterator[Line]:
    """Write an operation on a queue, in words that TVM's parser knows, under a comment that says what it does.

    before:  T.dma_wait(1, 1)
    after:   # wait for copies of filter1, all but the youngest 1
             T.evaluate(T.call_intrin("int32", "tirx.dma_wait", 1, 1))
    """
    name, queue, rest = call.groups()
    tensor = queues.tensor_of(int(queue), convs)
    if name == "dma_start_group":
        yield Line(depth, f"# start copies of {tensor}")
    if name == "dma_wait":
        left = rest.removeprefix(", ")
        yield Line(depth, f"# wait for copies of {tensor}" + ("" if left == "0" else f", all but the youngest {left}"))
    yield Line(depth, f'T.evaluate(T.call_intrin("int32", "tirx.{name}", {queue}{rest}))')


def _memory_comment(text: str, memories: dict[str, Allocation]) -> str | None:
    """Return the comment above a line that allocates memory, or above one that names a part of an allocation."""
    if (allocated := ALLOC.match(text)) and allocated[1] in memories:
        memory = memories[allocated[1]]
        shared = f", shared by {' and '.join(memory.holds)}" if len(memory.holds) > 1 else ""
        each = f", in each of {memory.copies} bands" if memory.copies > 1 else ""
        sizes = f"{memory.elements // memory.copies} elements, {memory.bytes // memory.copies} bytes"
        return f"# {memory.name}: {sizes}{shared}{each}"
    view = VIEW.match(text)
    home = view and (view[2] or view[3])
    if view and home in memories and view[1] != home:
        return f"# {view[1]} lies in the memory of {home}"
    return None


def _spelled_out(view: re.Match[str], memories: dict[str, Allocation]) -> str:
    """Spell out a view of another dtype: TVM 0.27 prints `a.view("int8")`, which its parser doesn't take back.

    before:  output_cache = accumulator1.view("int8")
    after:   output_cache = T.decl_buffer((8192,), "int8", data=accumulator1.data)
    """
    name, home, dtype = view.groups()
    memory = memories[home]
    elements = memory.bytes // tvm.DataType(dtype).itemsize
    scope = "" if memory.scope == "global" else f', scope="{memory.scope}"'
    return f'{name} = T.decl_buffer(({elements},), "{dtype}", data={home}.data{scope})'


def _notes_outside(lines: Sequence[Line]) -> list[Line]:
    """Move notes between two loops that stand directly inside of each other above both: these become one T.grid.

    before:  for ko_outer_1 in range(2):             after:  # NOTE: compute enough height ...
                 # NOTE: compute enough height ...           for ko_outer_1 in range(2):
                 for ho_outer_1 in range(2):                     for ho_outer_1 in range(2):
    """
    placed: list[Line] = []
    for index, line in enumerate(lines):
        outer = placed[-1] if placed else Line(0, "")
        directly_inside = LOOP.match(outer.text) and outer.depth == line.depth - 1
        if line.text.startswith(NOTE_SIGN) and directly_inside and _is_alone(lines, index + 1):
            placed.insert(-1, Line(outer.depth, line.text))
        else:
            placed.append(line)
    return placed


def _with_grids(lines: Sequence[Line]) -> Iterator[Line]:
    """Write loops that stand directly inside of each other as one T.grid, and indent their body accordingly."""
    merged: list[tuple[int, int]] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        while merged and line.depth <= merged[-1][0]:
            merged.pop()
        moved = sum(levels for _, levels in merged)
        nest = _nest_at(lines, index)
        if len(nest) < 2:
            yield Line(line.depth - moved, line.text)
            index += 1
            continue
        names, extents = zip(*nest, strict=True)
        yield Line(line.depth - moved, f"for {', '.join(names)} in T.grid({', '.join(extents)}):")
        merged.append((line.depth, len(nest) - 1))
        index += len(nest)


def _nest_at(lines: Sequence[Line], index: int) -> list[tuple[str, str]]:
    """Return name and extent of the loops that stand directly inside of each other from a line on."""
    nest: list[tuple[str, str]] = []
    for offset, line in enumerate(lines[index:]):
        loop = LOOP.match(line.text)
        if not loop or line.depth != lines[index].depth + offset or (offset and not _is_alone(lines, index + offset)):
            break
        nest.append((loop[1], loop[2]))
    return nest


def _is_alone(lines: Sequence[Line], index: int) -> bool:
    """Whether nothing follows a loop inside of the loop around it."""
    depth = lines[index].depth
    after = next((line.depth for line in lines[index + 1 :] if line.depth <= depth and line.text), depth - 1)
    return after < depth
