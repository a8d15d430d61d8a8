"""A chain as functions of MLIR: `linalg` on packed tensors, in the packing of the documents and of hexagon-mlir.

    @tiled, as the plan says                            @whole, for compilers that tile for themselves
        for a band of the output's rows (scf.forall)        input = pad by the zero point, pack
        for a tile of k_split x h_split blocks              conv 1 of whole tensors
            input = pad by the zero point, pack             conv 2 of whole tensors
            for a tile of conv 1
                for a block: conv 1
            for a block: conv 2

    conv: window = unpack what a block reads                  transpose, collapse_shape
          sums = linalg.generic, products without zero points
          result = linalg.generic: bias, activation, requantisation; the zero point where NHWC has no element

Activations are NHWC8h8w32c wherever they are stored; a conv reads a window of rows and columns, so that its indices are
sums of loops times constants, which MLIR can tile. Nothing is guarded: each tensor is stored as far as whole blocks of
its reader go, and its epilogue writes the zero point there. A step that would reach past the end of its tensor begins
earlier instead, and makes some blocks again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from tvm import tirx

from hexconv.compute.computable import check_supported
from hexconv.compute.stored import Position
from hexconv.compute.te import ConvOperands, finished, needs_epilogue
from hexconv.errors import Unsupported
from hexconv.kernel import input_layout, output_layout
from hexconv.kernel.layouts import documented_filter
from hexconv.mlir.arith_code import INDENT, Arithmetic, Region, cast, element_type
from hexconv.mlir.tensor_code import (
    Index,
    Loops,
    Operand,
    Tensor,
    added,
    bands,
    collapsed,
    empty,
    expanded,
    generic,
    inserted,
    loop,
    padded,
    part,
    scaled,
    step_begin,
    transposed,
    zeros,
)
from hexconv.spec import Case, Chain, Conv2d, Plan
from hexconv.spec.activations import TABLE
from hexconv.spec.addition import Add
from hexconv.spec.chain import IN_BLOCKS, PIXELS
from hexconv.spec.code_sums import integer_form
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK, ROW_BLOCK, blocks
from hexconv.spec.names import INPUT, INPUT_CACHE, OUTPUT, bias_name, filter_name, intermediate, numbered
from hexconv.spec.vectors import vector_names
from hexconv.whitelist import Code

TILED, WHOLE = "tiled", "whole"
"""The names of the functions: in loops as the plan says, and on whole tensors."""
OUTPUT_AXES = ("n", "ho", "wo", "ko", "hi", "wi", "ki")
N, ROWS, COLUMNS, CHANNELS = range(4)
"""Places of the axes that tiles are cut along."""
BLOCK = (1, ROW_BLOCK, COLUMN_BLOCK, CHANNEL_BLOCK)
Begin = tuple[Index, Index, Index, Index]
"""Where a tile begins: image, and blocks of rows, columns and channels."""
START: Begin = (0, 0, 0, 0)


@dataclass(frozen=True)
class Stored:
    """How far a tensor of the chain is stored, in whole blocks, and where its logical elements begin.

    Attributes:
        row_blocks: blocks of 8 rows.
        column_blocks: blocks of 8 columns.
        channel_blocks: blocks of 32 channels.
        top: the stored row of logical row 0.
        left: the stored column of logical column 0.
        shape: the logical NHWC.
    """

    row_blocks: int
    column_blocks: int
    channel_blocks: int
    top: int
    left: int
    shape: tuple[int, int, int, int]

    @property
    def packed(self) -> tuple[int, ...]:
        """The shape in blocks."""
        outer = (self.shape[0], self.row_blocks, self.column_blocks, self.channel_blocks)
        return (*outer, ROW_BLOCK, COLUMN_BLOCK, CHANNEL_BLOCK)

    @property
    def logical(self) -> tuple[tuple[int, int, int], ...]:
        """Of rows, columns and channels: the first that is logical, one past the last, and how many are stored."""
        firsts, sizes = (
            (self.top, self.left, 0),
            (size * block for size, block in zip(self.packed[1:], BLOCK[1:], strict=False)),
        )
        return tuple((first, first + has, size) for first, has, size in zip(firsts, self.shape[1:], sizes, strict=True))

    @property
    def has_fringe(self) -> bool:
        """Whether it holds elements that are not logical."""
        return any((first, end) != (0, size) for first, end, size in self.logical)


def stored_tensors(chain: Chain) -> tuple[Stored, ...]:
    """Return how far the input and every conv's output are stored, in order.

    >>> same = Conv2d(out_channels=8, kernel=(3, 3), padding=1)
    >>> [(each.row_blocks, each.top) for each in stored_tensors(Chain(input=(1, 16, 16, 8), conv=(same, same)))]
    [(4, 2), (3, 1), (2, 0)]
    """
    n, h, w, c = chain.shapes[-1]
    found = [Stored(blocks(h, ROW_BLOCK), blocks(w, COLUMN_BLOCK), blocks(c, CHANNEL_BLOCK), 0, 0, (n, h, w, c))]
    for index in reversed(range(len(chain.conv))):
        conv, output, shape = chain.conv[index], found[0], chain.shapes[index]
        top, left = conv.padding.top + conv.stride[0] * output.top, conv.padding.left + conv.stride[1] * output.left
        adds = [found[reader - index] for reader in chain.readers[index] if reader != index]
        rows = [top - each.top + each.row_blocks * ROW_BLOCK for each in adds]
        columns = [left - each.left + each.column_blocks * COLUMN_BLOCK for each in adds]
        rows += [conv.rows_read(output.row_blocks * ROW_BLOCK), top + 1]
        columns += [conv.columns_read(output.column_blocks * COLUMN_BLOCK), left + 1]
        sizes = blocks(max(rows), ROW_BLOCK), blocks(max(columns), COLUMN_BLOCK), blocks(shape[3], CHANNEL_BLOCK)
        found.insert(0, Stored(*sizes, top, left, shape))
    return tuple(found)


def spans_groups(conv: Conv2d, channels: int) -> bool:
    """Return whether blocks of output channels read other blocks of input channels by a division, which no tile keeps.

    >>> spans_groups(Conv2d(out_channels=64), 64), spans_groups(Conv2d(out_channels=64, groups=16), 64)
    (False, False)
    >>> spans_groups(Conv2d(out_channels=64, groups=16), 32), spans_groups(Conv2d(out_channels=72, groups=3), 72)
    (True, True)
    """
    outputs = conv.out_channels // conv.groups
    return conv.groups > 1 and (channels != conv.out_channels or CHANNEL_BLOCK % outputs > 0)


def arguments_of(chain: Chain) -> dict[str, Tensor]:
    """Return the arguments by name, in order: those of the document's PrimFunc, the output last.

    >>> list(arguments_of(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2, bias=True),))))
    ['input', 'filter1', 'bias1', 'output']
    """
    last, numbers = len(chain.conv) - 1, range(1, len(chain.conv) + 1)
    filters = {filter_name(number): documented_filter(chain, number - 1).physical_shape for number in numbers}
    biases = {bias_name(number): (conv.out_channels,) for number, conv in enumerate(chain.conv, 1) if conv.bias}
    found = {INPUT: (input_layout(chain).physical_shape, chain.dtype)}
    found |= {name: (shape, chain.dtype_of_filters) for name, shape in filters.items()}
    found |= {name: (shape, chain.bias_dtype) for name, shape in biases.items()}
    found |= {name: ((each.elements,), each.dtype) for name, each in vector_names(chain).items()}
    found |= {OUTPUT: (output_layout(chain).physical_shape, chain.output_dtype(last))}
    return {name: Tensor(f"%{name}", *each) for name, each in found.items()}


def linalg_text(case: Case) -> str:
    """Return a case as a module of MLIR: two functions, each of which returns its last argument, filled.

    Raises:
        Unsupported: the chain can't be computed, or has a pool.
    """
    check_supported(case.chain)
    if any(conv.pool for conv in case.chain.conv):
        raise Unsupported(
            '--format mlir has convs alone, and the chain has a pool; leave out the pool, or --format "tir"'
        )
    head = [f"hexconv {case.name}: {case.chain.slug}", "", *(f"  {line}" for line in case.to_toml().splitlines())]
    head += ["", *_unsaid(case)]
    lines = [f"// {Code.comment(line)}".rstrip() for line in head]
    functions = [Nest(case.chain, case.plan, name).text() for name in (TILED, WHOLE)]
    return "\n".join([*lines, "", *functions])


def _unsaid(case: Case) -> list[str]:
    """Say what of a plan stands in its loops, and what does not."""
    plan = case.plan
    left = ['halo = "roll": rows that two tiles read are made for each'] if plan.halo == "roll" else []
    if plan.rows and plan.rows % ROW_BLOCK:
        left.append(f"rows = {plan.rows}: tiles are whole blocks of {ROW_BLOCK} rows")
    if plan.threads > 1 and plan.kernel == "hmx":
        left.append(f"threads = {plan.threads}: they share the tiles of a step")
    elif plan.threads > 1 and (count := band_count(case.chain, plan)) != plan.threads:
        left.append(f"threads = {plan.threads}: the rows fall into {count} equal bands")
    if any(spans_groups(conv, shape[3]) for conv, shape in zip(case.chain.conv, case.chain.shapes, strict=False)):
        left.append(f"k_split = {plan.k_split}: groups that span blocks of 32 channels are made in one tile")
    if any(conv.add and conv.add.tensor for conv in case.chain.conv):
        left.append("add: what is added of an earlier conv is made again for each tile")
    stated = [name for name in ("filters", "buffering", "storage", "activations", "column_halo") if name in plan.stated]
    if stated:
        left.append(f"{', '.join(stated)}: where caches lie and when they are copied is for the compiler")
    return ["What the plan says and these loops do not:", *(f"  {line}" for line in left)] if left else []


def band_count(chain: Chain, plan: Plan) -> int:
    """Return how many bands of the output's rows are computed side by side: as many as divide them, up to the threads.

    >>> chain = Chain(input=(1, 48, 8, 32), conv=(Conv2d(out_channels=32),))
    >>> [band_count(chain, Plan(kernel="hvx", threads=threads)) for threads in (1, 2, 4)]
    [1, 2, 3]
    """
    if plan.kernel == "hmx":
        return 1
    rows = stored_tensors(chain)[-1].packed[ROWS]
    return max(count for count in range(1, plan.threads + 1) if rows % count == 0)


class Nest:
    """Writes one function.

    Args:
        chain: what it computes.
        plan: the plan whose loops it has.
        name: its name.
    """

    def __init__(self, chain: Chain, plan: Plan, name: str) -> None:
        self.chain, self.plan, self.name = chain, plan, name
        self.stored = stored_tensors(self.chain)
        self.arguments = arguments_of(self.chain)
        self.whole: dict[int, Tensor] = {}

    @property
    def convs(self) -> int:
        """How many convs it computes."""
        return len(self.chain.conv)

    def text(self) -> str:
        """Return the function."""
        region, output = Region(), self.arguments[OUTPUT]
        self._prepare(region)
        kept = self.chain.output_layout == IN_BLOCKS
        shape = self.stored[-1].packed
        made = self._bands(region, output if kept else empty(region, "output_empty", shape, output.dtype))
        if not kept:
            made = self._written(region, made)
        head = "\n".join([f"func.func @{self.name}(", *self._signature()])
        tail = [f"{INDENT}return {made.name} : {output.type}", "}", ""]
        return "\n".join([f"{head}\n) -> {output.type} attributes {{llvm.emit_c_interface}} {{", *region.lines, *tail])

    def _signature(self) -> Iterator[str]:
        """Yield a line for each argument, which says of what dtype its elements are, and how they lie."""
        chain = self.chain
        tags = {INPUT: chain.input_layout, OUTPUT: chain.output_layout}
        tags |= {filter_name(number + 1): documented_filter(chain, number).name for number in range(self.convs)}
        for name, each in self.arguments.items():
            read, comma = ("", "") if name == OUTPUT else (" {bufferization.writable = false}", ",")
            tag = tags.get(name) or ("codes" if name.startswith(TABLE) else "O")
            yield f"{INDENT * 2}{each.name}: {each.type}{read}{comma}  // {each.dtype}, {tag}"

    def _prepare(self, region: Region) -> None:
        """Pad the input, and give vectors whole blocks of channels."""
        self.pixels = self._padded_input(region)
        self.vectors: dict[str, Tensor] = {}
        for number in range(1, self.convs + 1):
            for name in self._vectors_of(number):
                vector, many = self.arguments[name], blocks(self.chain.conv[number - 1].out_channels, CHANNEL_BLOCK)
                whole = padded(region, f"{name}_padded", vector, [0], [many * CHANNEL_BLOCK - vector.shape[0]], 0)
                self.vectors[name] = expanded(region, f"{name}_blocks", whole, [[many, CHANNEL_BLOCK]])

    def _vectors_of(self, number: int) -> list[str]:
        """Return the names of what a conv has one value a channel of."""
        beside = vector_names(self.chain).items()
        of_channels = [name for name, each in beside if each.number == number and each.what != TABLE]
        return [bias_name(number), *of_channels] if self.chain.conv[number - 1].bias else of_channels

    def _padded_input(self, region: Region) -> Tensor:
        """Return the input as [n, ho, hi, wo, wi, ko, ki], with the zero point wherever NHWC has no element."""
        chain, stored = self.chain, self.stored[0]
        pixels, low = self._pixels(region), (0, stored.top, stored.left, 0)
        room = [size * block for size, block in zip(stored.packed, BLOCK, strict=False)]
        sizes = [min(has, most - begin) for has, most, begin in zip(chain.input, room, low, strict=True)]
        kept = part(region, "input_read", pixels, START, sizes)
        high = [most - begin - has for most, begin, has in zip(room, low, sizes, strict=True)]
        whole = padded(region, "input_padded", kept, low, high, chain.zero_point)
        n, *rest = stored.packed[:4]
        parts = [[n], *([size, block] for size, block in zip(rest, BLOCK[1:], strict=True))]
        return expanded(region, "input_blocks", whole, parts)

    def _pixels(self, region: Region) -> Tensor:
        """Return the input as NHWC."""
        chain, given = self.chain, self.arguments[INPUT]
        if chain.input_layout == PIXELS:
            return given
        if chain.input_layout == IN_BLOCKS:
            n, ho, wo, ko = given.shape[:4]
            order, parts = (0, 1, 4, 2, 5, 3, 6), [[n], [ho, ROW_BLOCK], [wo, COLUMN_BLOCK], [ko, CHANNEL_BLOCK]]
        else:
            n, h, ko, w = given.shape[:4]
            order, parts = (0, 1, 3, 2, 4), [[n], [h], [w], [ko, CHANNEL_BLOCK]]
        turned = transposed(region, "input_turned", given, order)
        return part(region, "input_pixels", collapsed(region, "input_whole", turned, parts), START, chain.input)

    def _written(self, region: Region, made: Tensor) -> Tensor:
        """Write the output from blocks in a layout of its own."""
        output, (n, h, w, c) = self.arguments[OUTPUT], self.chain.shapes[-1]
        rows, columns, channels = ([size, block] for size, block in zip(made.shape[1:], BLOCK[1:], strict=False))
        if self.chain.output_layout == PIXELS:
            order, parts, sizes = (0, 1, 4, 2, 5, 3, 6), [[n], rows, columns, channels], (n, h, w, c)
        else:
            lanes = [CHANNEL_BLOCK]
            order, parts, sizes = (0, 1, 4, 3, 2, 5, 6), [[n], rows, channels[:1], columns, lanes], output.shape
        whole = collapsed(region, "output_whole", transposed(region, "output_turned", made, order), parts)
        kept = part(region, "output_kept", whole, [0] * len(sizes), sizes)
        said = f"ins({kept.name} : {kept.type}) outs({output.name} : {output.type})"
        region.say(f"%output_written = linalg.copy {said} -> {output.type}")
        return replace(output, name="%output_written")

    def _bands(self, region: Region, output: Tensor) -> Tensor:
        """Make the output, in bands of rows side by side if there are any."""
        sizes = output.shape[:4]
        if self.name == WHOLE or (count := band_count(self.chain, self.plan)) == 1:
            return self._conv(region, self.convs, START, sizes, output)
        band = (sizes[N], sizes[ROWS] // count, *sizes[COLUMNS:])
        with bands(region, "bands", count, output, (*band, *output.shape[4:])) as each:
            begin = scaled(each.region, each.index, band[ROWS])
            each.carry(self._conv(each.region, self.convs, (0, begin, 0, 0), band, each.tensor))
        return each.made

    def _conv(self, region: Region, number: int, begin: Begin, sizes: Sequence[int], into: Tensor) -> Tensor:
        """Fill a tile of a conv's output, which begins at `begin`."""
        cuts = [] if self.name == WHOLE else self._cuts(number, sizes)
        return self._looped(region, At(number, begin, START, START, tuple(sizes), into), cuts)

    def _cuts(self, number: int, sizes: Sequence[int]) -> list["Cut"]:
        """Return the loops over the steps of a tile, and those over the blocks of a step."""
        plan, is_last = self.plan, number == self.convs
        rows = ceil(plan.rows / ROW_BLOCK) if plan.rows else plan.h_split
        channels = sizes[CHANNELS] if has_whole_channels(self.chain) else plan.k_split
        columns = plan.w_split if plan.w_split and is_last else sizes[COLUMNS]
        step = [min(has, of) for has, of in zip(sizes, (1, rows, columns, channels), strict=True)]
        order = (COLUMNS, N, ROWS, CHANNELS) if plan.order == "h_outer" else (COLUMNS, N, CHANNELS, ROWS)
        cuts = [Cut(axis, sizes[axis], step[axis], is_step=True) for axis in order]
        block = step[CHANNELS] if has_whole_channels(self.chain) else 1
        cuts += [Cut(axis, step[axis], 1) for axis in (ROWS, COLUMNS)]
        return [cut for cut in (*cuts, Cut(CHANNELS, step[CHANNELS], block)) if cut.step < cut.size]

    def _looped(self, region: Region, at: "At", cuts: Sequence["Cut"]) -> Tensor:
        """Write loops, and inside of them what they cut; the source stands outside of all that it doesn't depend on."""
        conv, channels = self.chain.conv[at.number - 1], self.chain.shapes[at.number - 1][3]
        axes = {N, ROWS, COLUMNS} | ({CHANNELS} if keeps_channels(conv, channels) else set())
        if at.source is None and not any(cut.is_step and cut.axis in axes for cut in cuts):
            sizes = [next((cut.size for cut in cuts if cut.axis == axis), at.sizes[axis]) for axis in range(4)]
            at = replace(at, source=self._source(region, at.number, at.begin, sizes), since=START)
        if conv.add and at.addend is None and not any(cut.is_step for cut in cuts):
            sizes = [next((cut.size for cut in cuts if cut.axis == axis), at.sizes[axis]) for axis in range(4)]
            at = replace(at, addend=self._addend(region, conv.add.tensor, at, sizes), beside=START)
        if not cuts:
            return self._block(region, at)
        cut, carried = cuts[0], at.into
        name = f"{'step' if cut.is_step else 'block'}{at.number}_{OUTPUT_AXES[cut.axis]}"
        with loop(region, name, blocks(cut.size, cut.step), carried) as turn:
            offset = step_begin(turn.region, turn.index, cut.step, cut.size)
            inside = at.moved(turn.region, cut, offset)
            turn.carry(self._looped(turn.region, replace(inside, into=turn.tensor), cuts[1:]))
        return turn.made

    def _source(self, region: Region, number: int, begin: Begin, sizes: Sequence[int]) -> Tensor:
        """Make what a conv reads for a tile of its output, in blocks."""
        conv, (n, rows, columns, channels) = self.chain.conv[number - 1], begin
        stored = self.stored[number - 1]
        keeps = keeps_channels(conv, stored.shape[3])
        first, last = (channels, sizes[CHANNELS]) if keeps else (0, stored.channel_blocks)
        begin = (n, scaled(region, rows, conv.stride[0]), scaled(region, columns, conv.stride[1]), first)
        read = (sizes[N], *blocks_read(conv, sizes), last)
        if number > 1:
            name, dtype = intermediate(number - 1), self.chain.output_dtype(number - 2)
            into = empty(region, f"{name}_empty", (*read, *BLOCK[1:]), dtype)
            made = self._conv(region, number - 1, begin, read, into)
            self.whole[number - 1] = made
            return made
        apart = (begin[N], begin[ROWS], 0, begin[COLUMNS], 0, begin[CHANNELS], 0)
        n, rows, columns, channels = read
        shape = (n, rows, ROW_BLOCK, columns, COLUMN_BLOCK, channels, CHANNEL_BLOCK)
        return transposed(region, INPUT_CACHE, part(region, "input_tile", self.pixels, apart, shape), TO_BLOCKS)

    def _addend(self, region: Region, tensor: int, at: "At", sizes: Sequence[int]) -> Tensor:
        """Make what a conv adds to a tile of its output, and the blocks that it lies across: [n, h, w, ko, ki]."""
        (n, rows, columns, channels), many = at.begin, sizes[CHANNELS]
        (row, more_rows), (column, more_columns) = self._added_at(tensor, at.number)
        begin = (n, added(region, rows, row), added(region, columns, column), channels)
        read = (sizes[N], sizes[ROWS] + (more_rows > 0), sizes[COLUMNS] + (more_columns > 0), many)
        parts = [[read[N]], [read[ROWS], ROW_BLOCK], [read[COLUMNS], COLUMN_BLOCK], [many], [CHANNEL_BLOCK]]
        name = numbered("addend", at.number)
        if tensor == 0:
            apart, shape = (
                (begin[N], begin[ROWS], 0, begin[COLUMNS], 0, begin[CHANNELS], 0),
                [size for each in parts for size in each],
            )
            return collapsed(region, name, part(region, f"{name}_blocks", self.pixels, apart, shape), parts)
        if self.name == WHOLE:
            tile = part(region, f"{name}_blocks", self.whole[tensor], (*begin, 0, 0, 0), (*read, *BLOCK[1:]))
        else:
            into = empty(region, f"{name}_empty", (*read, *BLOCK[1:]), self.chain.output_dtype(tensor - 1))
            tile = self._conv(region, tensor, begin, read, into)
        return collapsed(region, name, transposed(region, f"{name}_turned", tile, FROM_BLOCKS_CHANNELS_APART), parts)

    def _added_at(self, tensor: int, number: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the blocks, and rows or columns beside, by which an added element stands behind that of the output."""
        theirs, own = self.stored[tensor], self.stored[number]
        return divmod(theirs.top - own.top, ROW_BLOCK), divmod(theirs.left - own.left, COLUMN_BLOCK)

    def _added(self, region: Region, at: "At", add: Add) -> Operand:
        """Return what a conv adds to a block of its output."""
        assert at.addend, "made before the blocks of a step"
        (_, row), (_, column) = self._added_at(add.tensor, at.number)
        _, rows, columns, channels = at.beside
        begin = (0, added(region, scaled(region, rows, ROW_BLOCK), row))
        begin += (added(region, scaled(region, columns, COLUMN_BLOCK), column), channels, 0)
        n, h, w, many = at.sizes
        sizes = (n, h * ROW_BLOCK, w * COLUMN_BLOCK, many, CHANNEL_BLOCK)
        tile = part(region, numbered("addend_tile", at.number), at.addend, begin, sizes)
        return tile, f"n, ho * {ROW_BLOCK} + hi, wo * {COLUMN_BLOCK} + wi, ko, ki"

    def _block(self, region: Region, at: "At") -> Tensor:
        """Compute a block of a conv's output, or all of it, and put it into its place."""
        chain, index, place = self.chain, at.number - 1, (*at.local, 0, 0, 0)
        into = part(region, f"{self._stage(at)}_place", at.into, place, (*at.sizes, *BLOCK[1:]))
        dtypes = chain.sum_dtype(index), chain.output_dtype(index)
        if needs_epilogue(chain.conv[index], *dtypes) or self.stored[at.number].has_fringe:
            sums = self._sums(region, at, empty(region, numbered("sums_empty", at.number), into.shape, dtypes[0]))
            made = self._finished(region, at, sums, into)
        else:
            made = self._sums(region, at, into)
        return inserted(region, f"{self._stage(at)}_placed", made, at.into, place)

    def _stage(self, at: "At") -> str:
        return "result" if at.number == self.convs else intermediate(at.number)

    def _sums(self, region: Region, at: "At", into: Tensor) -> Tensor:
        """Sum the products of a block of a conv into a tensor; zero points are subtracted first."""
        chain, number = self.chain, at.number
        conv, channels, dtype = chain.conv[number - 1], chain.shapes[number - 1][3], chain.sum_dtype(number - 1)
        window = self._window(region, at)
        weights = self.arguments[filter_name(number)]
        of_tile = (at.sizes[CHANNELS], *weights.shape[1:])
        weights = part(
            region, f"filter{number}_tile", weights, (at.begin[CHANNELS], *[0] * (len(of_tile) - 1)), of_tile
        )
        few, inputs = len(weights.shape) == FEW_INPUTS_RANK, chain.filter_shapes[number - 1][1]
        if not chain.is_integer and not few and inputs % CHANNEL_BLOCK:
            weights = _without_fringe(region, numbered("weights", number), weights, inputs)
        indices = "ko, ci, rh, rw, ki" if few else "ko, co, rh, rw, cio, ki, cii"
        names = (*OUTPUT_AXES[:-1], *(("rh", "rw", "ci", "ki") if few else ("co", "rh", "rw", "cio", "ki", "cii")))
        loops = Loops(names, tuple(name for name in names if name not in OUTPUT_AXES))
        zero_points, of_product = (chain.output_zero_point(number - 1), conv.filter_zero_point), chain.bias_dtype
        name, kind = numbered("sums", number), "i" if chain.is_integer else "f"

        def body(inside: Region, given: Sequence[str]) -> str:
            factors: list[str] = []
            for value, was, zero in zip(given[:-1], (chain.dtype, chain.dtype_of_filters), zero_points, strict=True):
                wide = cast(inside, value, was, of_product)
                centre = inside.constant(zero, "i32") if zero else ""
                factors.append(inside.value(f"arith.subi {wide}, {centre} : i32") if zero else wide)
            product = inside.value(f"arith.mul{kind} {', '.join(factors)} : {element_type(of_product)}")
            product = cast(inside, product, of_product, dtype)
            return inside.value(f"arith.add{kind} {given[-1]}, {product} : {element_type(dtype)}")

        zero = zeros(region, numbered("zeros", number), into)
        operands = [(window, _pixel_read(conv, channels, few)), (weights, indices)]
        return generic(region, name, operands, (zero, ", ".join(OUTPUT_AXES)), loops, body)

    def _window(self, region: Region, at: "At") -> Tensor:
        """Return the rows and columns that a block reads, [n, h, w, ko, ki]."""
        assert at.source, "made outside of all loops that it doesn't depend on"
        conv, channels = self.chain.conv[at.number - 1], self.chain.shapes[at.number - 1][3]
        _, rows, columns, first = at.since
        begin = (0, scaled(region, rows, conv.stride[0]), scaled(region, columns, conv.stride[1]))
        keeps = keeps_channels(conv, channels)
        n, h, w = (at.sizes[N], *blocks_read(conv, at.sizes))
        many = at.sizes[CHANNELS] if keeps else at.source.shape[CHANNELS]
        place, name = (*begin, first if keeps else 0, 0, 0, 0), numbered("window", at.number)
        tile = part(region, f"{name}_blocks", at.source, place, (n, h, w, many, *BLOCK[1:]))
        turned = transposed(region, f"{name}_turned", tile, FROM_BLOCKS_CHANNELS_APART)
        parts = [[n], [h, ROW_BLOCK], [w, COLUMN_BLOCK], [many], [CHANNEL_BLOCK]]
        return collapsed(region, name, turned, parts)

    def _finished(self, region: Region, at: "At", sums: Tensor, into: Tensor) -> Tensor:
        """Make a conv's output of its sums, with what the next conv reads, or zero, wherever NHWC has no element."""
        chain, number = self.chain, at.number
        conv, is_last, dtype = chain.conv[number - 1], number == self.convs, chain.output_dtype(number - 1)
        fringe = 0 if is_last else chain.output_zero_point(number)
        names = self._vectors_of(number)
        of_tile, begin = (at.sizes[CHANNELS], CHANNEL_BLOCK), (at.begin[CHANNELS], 0)
        vectors = [part(region, f"{name}_tile", self.vectors[name], begin, of_tile) for name in names]

        def body(inside: Region, given: Sequence[str]) -> str:
            total = tirx.Var("total", sums.dtype)
            buffers = {name: tirx.decl_buffer((1,), self.arguments[name].dtype, name=name) for name in names}
            loads = {name: _given(value) for name, value in zip(names, given[1:], strict=False)}
            whats: dict[str, Any] = {name.removesuffix(str(number)): buffer for name, buffer in buffers.items()}
            if conv.activation == TABLE:
                table = self.arguments[numbered(TABLE, number)]
                whats[TABLE] = tirx.decl_buffer(table.shape, table.dtype, name=TABLE)
                loads[TABLE] = _looked_up(table)
            operands = ConvOperands(whats.pop("bias", None), whats, lambda code: code)
            known = {total: given[0]}
            if conv.add:
                other = tirx.Var("other", chain.dtype)
                known[other] = given[len(names) + 1]
                form = integer_form(chain.summed(number - 1)) if chain.is_integer else None
                operands = replace(operands, addend=lambda _at: other, summed=form)
            value = finished(conv, total, sums.dtype, operands, Position(0, 0, 0, tirx.const(0, "int32")), dtype)
            result = Arithmetic(inside, known, loads).value(value)
            return _where_logical(inside, at, self.stored[number], result, fringe, element_type(dtype))

        everywhere = ", ".join(OUTPUT_AXES)
        operands = [(sums, everywhere), *((vector, "ko, ki") for vector in vectors)]
        operands += [self._added(region, at, conv.add)] if conv.add else []
        return generic(region, self._stage(at), operands, (into, everywhere), Loops(OUTPUT_AXES), body)


FEW_INPUTS_RANK = 5
"""Axes of a filter in OIHW32o, whose input channels are no blocks."""
TO_BLOCKS = (0, 1, 3, 5, 2, 4, 6)
"""From [n, ho, hi, wo, wi, ko, ki] to blocks."""
FROM_BLOCKS_CHANNELS_APART = (0, 1, 4, 2, 5, 3, 6)
"""And back, as a window or the whole of a tensor."""


@dataclass(frozen=True)
class Cut:
    """A loop over an axis of a tile: over its steps, or over the blocks of a step."""

    axis: int
    size: int
    step: int
    is_step: bool = False


@dataclass(frozen=True)
class At:
    """A place in the loops of a conv.

    Attributes:
        number: the conv, from 1.
        begin: where the output that is made here begins in the whole tensor.
        local: where it begins in the tile that loops carry.
        since: where it begins in what was made of its source.
        sizes: how much of the output is made here.
        into: the tile.
        source: the source, once it is made.
        beside: where it begins in what was made of the tensor that the conv adds.
        addend: that tensor, [n, h, w, ko, ki], once it is made.
    """

    number: int
    begin: Begin
    local: Begin
    since: Begin
    sizes: tuple[int, ...]
    into: Tensor
    source: Tensor | None = None
    beside: Begin = START
    addend: Tensor | None = None

    def moved(self, region: Region, cut: Cut, offset: Index) -> "At":
        """Return the place inside of a loop that cuts an axis."""
        found = {what: list(getattr(self, what)) for what in ("begin", "local", "since", "beside", "sizes")}
        for what in ("begin", "local", "since", "beside"):
            found[what][cut.axis] = added(region, found[what][cut.axis], offset)
        found["sizes"][cut.axis] = cut.step
        return replace(self, **{what: tuple(values) for what, values in found.items()})


def blocks_read(conv: Conv2d, sizes: Sequence[int]) -> tuple[int, int]:
    """Return the blocks of rows and of columns that a conv reads for some blocks of its output.

    >>> blocks_read(Conv2d(out_channels=8, kernel=(3, 1)), (1, 2, 2, 1))
    (3, 2)
    """
    rows = blocks(conv.rows_read(sizes[ROWS] * ROW_BLOCK), ROW_BLOCK)
    return rows, blocks(conv.columns_read(sizes[COLUMNS] * COLUMN_BLOCK), COLUMN_BLOCK)


def has_whole_channels(chain: Chain) -> bool:
    """Return whether a chain has no tiles of channels, since groups of a conv span blocks of them."""
    return any(spans_groups(conv, shape[3]) for conv, shape in zip(chain.conv, chain.shapes, strict=False))


def keeps_channels(conv: Conv2d, channels: int) -> bool:
    """Return whether each block of output channels reads the same block of input channels alone."""
    return conv.groups > 1 and not spans_groups(conv, channels)


def _pixel_read(conv: Conv2d, channels: int, few: bool) -> str:
    """Return the indices of the element of a window that a product reads."""
    rows = _along("ho", "hi", "rh", conv.stride[0], conv.dilation[0], conv.kernel[0], ROW_BLOCK)
    columns = _along("wo", "wi", "rw", conv.stride[1], conv.dilation[1], conv.kernel[1], COLUMN_BLOCK)
    return f"n, {rows}, {columns}, {_channel_read(conv, channels, few)}"


def _along(outer: str, inner: str, tap: str, stride: int, dilation: int, taps: int, block: int) -> str:
    factors = [(outer, stride * block), (inner, stride), *([(tap, dilation)] if taps > 1 else [])]
    return " + ".join(name if factor == 1 else f"{name} * {factor}" for name, factor in factors)


def _channel_read(conv: Conv2d, channels: int, few: bool) -> str:
    """Return the block of the input channel that a product reads, and its place there."""
    if conv.groups == 1:
        return "co, cio * 4 + cii"
    inputs, outputs = channels // conv.groups, conv.out_channels // conv.groups
    within = "ci" if few else "co * 32 + cio * 4 + cii"
    if keeps_channels(conv, channels):
        return (
            "ko, ki"
            if outputs == 1
            else f"ko, (ki floordiv {outputs}) * {outputs} + {within if few else 'cio * 4 + cii'}"
        )
    # Channels of the output's fringe have no group: whatever they read is stored, and goes nowhere.
    stored = blocks(channels, CHANNEL_BLOCK) * CHANNEL_BLOCK
    channel = f"(((ko * {CHANNEL_BLOCK} + ki) floordiv {outputs}) * {inputs} + {within}) mod {stored}"
    return f"({channel}) floordiv {CHANNEL_BLOCK}, ({channel}) mod {CHANNEL_BLOCK}"


def _without_fringe(region: Region, name: str, weights: Tensor, inputs: int) -> Tensor:
    """Write zeros where a filter of floats has no weight: its fringe may hold anything, no number included."""
    names = ("ko", "co", "rh", "rw", "cio", "ki", "cii")

    def body(inside: Region, given: Sequence[str]) -> str:
        place = _place(inside, ((1, CHANNEL_BLOCK), (4, 4), (6, 1)))
        held = inside.value(f"arith.cmpi slt, {place}, {inside.constant(inputs, 'index')} : index")
        return inside.value(
            f"arith.select {held}, {given[0]}, {inside.constant(0, weights.element)} : {weights.element}"
        )

    into, everywhere = empty(region, f"{name}_empty", weights.shape, weights.dtype), ", ".join(names)
    return generic(region, name, [(weights, everywhere)], (into, everywhere), Loops(names), body)


def _place(region: Region, parts: Sequence[tuple[int, int]], begin: Index = 0) -> str:
    """Sum loops, by their numbers, each times a factor; `begin` is added to the first."""
    total: Index = 0
    for number, factor in parts:
        loop: Index = region.value(f"linalg.index {number} : index")
        loop = added(region, loop, begin) if number == parts[0][0] else loop
        total = added(region, total, scaled(region, loop, factor))
    return str(total)


def _given(value: str) -> Callable[[Region, str], str]:
    return lambda _region, _index: value


def _looked_up(table: Tensor) -> Callable[[Region, str], str]:
    def look_up(region: Region, code: str) -> str:
        place = region.value(f"arith.index_cast {code} : i32 to index")
        return region.value(f"tensor.extract {table.name}[{place}] : {table.type}")

    return look_up


def _where_logical(region: Region, at: At, stored: Stored, value: str, fringe: float, element: str) -> str:
    """Select a value where NHWC has an element, and the fringe's elsewhere."""
    for axis, (first, end, size) in enumerate(stored.logical, ROWS):
        for compared, bound, holds in (("sge", first, first <= 0), ("slt", end, end >= size)):
            if not holds:
                place = _place(region, ((axis, BLOCK[axis]), (axis + 3, 1)), at.begin[axis])
                inside = region.value(f"arith.cmpi {compared}, {place}, {region.constant(bound, 'index')} : index")
                value = region.value(f"arith.select {inside}, {value}, {region.constant(fringe, element)} : {element}")
    return value
