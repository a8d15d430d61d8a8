"""Operations of MLIR's `tensor`, `linalg` and `scf` on tensors of fixed shape, as text."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

from hexconv.mlir.arith_code import INDENT, Region, element_type

Index = int | str
"""An index: a number, or the name of a value."""


@dataclass(frozen=True)
class Tensor:
    """A value of a function.

    Attributes:
        name: its name, with `%`.
        shape: its shape.
        dtype: the dtype of its elements.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def element(self) -> str:
        """MLIR's type of an element."""
        return element_type(self.dtype)

    @property
    def type(self) -> str:
        """MLIR's type of it.

        >>> Tensor("%input", (1, 8, 8, 3), "uint8").type
        'tensor<1x8x8x3xi8>'
        """
        return f"tensor<{'x'.join(map(str, (*self.shape, self.element)))}>"


@dataclass(frozen=True)
class Loops:
    """The loops of an operation, from the outside in: their names, and which of them are reductions."""

    names: tuple[str, ...]
    reductions: tuple[str, ...] = ()

    @property
    def kinds(self) -> Iterator[str]:
        """The kind of each loop, in quotes."""
        return ('"reduction"' if name in self.reductions else '"parallel"' for name in self.names)


Body = Callable[[Region, Sequence[str]], str]
"""Writes the body of an operation, from the names of its elements, the one that it replaces last; returns a name."""


def bind(region: Region, name: str, operation: str, shape: tuple[int, ...], dtype: str) -> Tensor:
    """Add an operation whose text ends in the type of its result."""
    made = Tensor(f"%{region.named(name)}", shape, dtype)
    region.say(f"{made.name} = {operation} {made.type}")
    return made


def empty(region: Region, name: str, shape: tuple[int, ...], dtype: str) -> Tensor:
    """Add a tensor without values."""
    return bind(region, name, "tensor.empty() :", shape, dtype)


def zeros(region: Region, name: str, into: Tensor) -> Tensor:
    """Add a tensor of zeros in the place of another one."""
    zero = region.constant(0, into.element)
    said = f"linalg.fill ins({zero} : {into.element}) outs({into.name} : {into.type}) ->"
    return bind(region, name, said, into.shape, into.dtype)


def part(region: Region, name: str, source: Tensor, begin: Sequence[Index], sizes: Sequence[int]) -> Tensor:
    """Add a slice; all of a tensor is the tensor itself."""
    if tuple(sizes) == source.shape:
        return source
    said = f"tensor.extract_slice {source.name}{_place(begin, sizes)} : {source.type} to"
    return bind(region, name, said, tuple(sizes), source.dtype)


def _place(begin: Sequence[Index], sizes: Sequence[int]) -> str:
    starts = ", ".join(map(str, begin))
    return f"[{starts}] {list(sizes)} {[1] * len(sizes)}"


def inserted(region: Region, name: str, made: Tensor, into: Tensor, begin: Sequence[Index]) -> Tensor:
    """Add a tensor a part of which is replaced; if all of it is, the new part itself."""
    if made.shape == into.shape:
        return made
    said = f"tensor.insert_slice {made.name} into {into.name}{_place(begin, made.shape)} : {made.type} into"
    return bind(region, name, said, into.shape, into.dtype)


def padded(region: Region, name: str, source: Tensor, low: Sequence[int], high: Sequence[int], value: float) -> Tensor:
    """Add a tensor with more elements at the ends, all of one value."""
    if not any((*low, *high)):
        return source
    shape = tuple(map(sum, zip(low, source.shape, high, strict=True)))
    name, filler = region.named(name), region.constant(value, source.element)
    region.say(f"%{name} = tensor.pad {source.name} low{list(low)} high{list(high)} {{")
    region.say(f"^bb0({', '.join(f'%{name}_{axis}: index' for axis in range(len(shape)))}):")
    region.say(f"{INDENT}tensor.yield {filler} : {source.element}")
    made = Tensor(f"%{name}", shape, source.dtype)
    region.say(f"}} : {source.type} to {made.type}")
    return made


Parts = Sequence[Sequence[int]]
"""The sizes that each axis falls into."""


def expanded(region: Region, name: str, source: Tensor, parts: Parts) -> Tensor:
    """Add a view of a tensor each of whose axes falls into parts."""
    shape = tuple(size for each in parts for size in each)
    said = f"tensor.expand_shape {source.name} {_groups(parts)} output_shape {list(shape)} : {source.type} into"
    return bind(region, name, said, shape, source.dtype)


def collapsed(region: Region, name: str, source: Tensor, parts: Parts) -> Tensor:
    """Add a view of a tensor whose axes are joined."""
    said = f"tensor.collapse_shape {source.name} {_groups(parts)} : {source.type} into"
    return bind(region, name, said, tuple(map(prod, parts)), source.dtype)


def _groups(parts: Parts) -> str:
    """Number the parts of axes.

    >>> _groups([[5], [2, 8]])
    '[[0], [1, 2]]'
    """
    numbers = iter(range(sum(map(len, parts))))
    return str([[next(numbers) for _ in each] for each in parts])


def transposed(region: Region, name: str, source: Tensor, order: Sequence[int]) -> Tensor:
    """Add a tensor with its axes in another order."""
    name = region.named(name)
    into = empty(region, f"{name}_empty", tuple(source.shape[axis] for axis in order), source.dtype)
    operands = f"ins({source.name} : {source.type}) outs({into.name} : {into.type})"
    region.say(f"%{name} = linalg.transpose {operands} permutation = {list(order)}")
    return Tensor(f"%{name}", into.shape, source.dtype)


Operand = tuple[Tensor, str]
"""A tensor, and the indices of its element in an operation's loops."""


def generic(region: Region, name: str, operands: Sequence[Operand], into: Operand, loops: Loops, body: Body) -> Tensor:
    """Add an operation over loops.

    Args:
        region: where it stands.
        name: the name of its result.
        operands: what it reads.
        into: what its result starts as.
        loops: its loops.
        body: writes its body.
    """
    domain, name = ", ".join(loops.names), region.named(name)
    region.say(f"%{name} = linalg.generic {{indexing_maps = [")
    for place, (_, at) in enumerate([*operands, into]):
        region.say(f"{INDENT * 2}affine_map<({domain}) -> ({at})>{',' if place < len(operands) else ''}")
    region.say(f"{INDENT}], iterator_types = [{', '.join(loops.kinds)}]}}")
    names, types = (", ".join(getattr(each, what) for each, _ in operands) for what in ("name", "type"))
    region.say(f"{INDENT}ins({names} : {types})")
    region.say(f"{INDENT}outs({into[0].name} : {into[0].type}) {{")
    given = [f"%{name}_in{place}" for place in range(len(operands))]
    given.append(f"%{name}_out")
    arguments = [f"{each}: {tensor.element}" for each, (tensor, _) in zip(given, [*operands, into], strict=True)]
    region.say(f"^bb0({', '.join(arguments)}):")
    inside = region.inside()
    inside.say(f"linalg.yield {body(inside, given)} : {into[0].element}")
    region.say(f"}} -> {into[0].type}")
    return Tensor(f"%{name}", into[0].shape, into[0].dtype)


@dataclass
class Carried:
    """A loop that is being written.

    Attributes:
        made: what it makes in the end.
        region: its body.
        index: its number of turns.
        tensor: what it carries.
        result: the tensor that is carried on, by `carry`.
    """

    made: Tensor
    region: Region
    index: str
    tensor: Tensor
    result: Tensor

    def carry(self, tensor: Tensor) -> None:
        """Carry a tensor on to the next turn."""
        self.result = tensor


@contextmanager
def loop(region: Region, name: str, turns: int, carried: Tensor) -> Iterator[Carried]:
    """Write a loop over turns 0 .. turns - 1 that carries a tensor; its result is named `%NAME`."""
    name = region.named(name)
    bounds = [region.constant(bound, "index") for bound in (0, turns, 1)]
    tensor = Tensor(f"%{name}_carried", carried.shape, carried.dtype)
    region.say(
        f"%{name} = scf.for %{name}_turn = {bounds[0]} to {bounds[1]} step {bounds[2]} "
        f"iter_args({tensor.name} = {carried.name}) -> ({carried.type}) {{"
    )
    made = Carried(replace(carried, name=f"%{name}"), region.inside(), f"%{name}_turn", tensor, tensor)
    yield made
    made.region.say(f"scf.yield {made.result.name} : {carried.type}")
    region.say("}")


@contextmanager
def bands(region: Region, name: str, turns: int, carried: Tensor, sizes: Sequence[int]) -> Iterator[Carried]:
    """Write a loop whose turns may run side by side, each on rows of its own along axis 1; its result is `%NAME`.

    Args:
        region: where it stands.
        name: its name.
        turns: how many bands there are.
        carried: what the bands are parts of.
        sizes: the sizes of a band.
    """
    shared = Tensor(f"%{name}_shared", carried.shape, carried.dtype)
    turn, outs = f"(%{name}_turn) in ({turns})", f"shared_outs({shared.name} = {carried.name}) -> ({carried.type})"
    region.say(f"%{name} = scf.forall {turn} {outs} {{")
    inside = region.inside()
    begin: list[Index] = [0, scaled(inside, f"%{name}_turn", sizes[1]), *[0] * (len(sizes) - 2)]
    tensor = part(inside, f"{name}_band", shared, begin, sizes)
    made = Carried(replace(carried, name=f"%{name}"), inside, f"%{name}_turn", tensor, tensor)
    yield made
    inside.say("scf.forall.in_parallel {")
    said = f"{made.result.name} into {shared.name}{_place(begin, sizes)} : {made.result.type} into {shared.type}"
    inside.say(f"{INDENT}tensor.parallel_insert_slice {said}")
    inside.say("}")
    region.say("}")


def scaled(region: Region, index: Index, factor: int) -> Index:
    """Return an index times a factor."""
    if isinstance(index, int) or factor == 1:
        return index if factor == 1 else index * factor
    return region.value(f"affine.apply affine_map<(a) -> (a * {factor})>({index})")


def added(region: Region, one: Index, other: Index) -> Index:
    """Return the sum of two indices."""
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    if 0 in (one, other):
        return other if one == 0 else one
    named, more = (one, other) if isinstance(one, str) else (other, one)
    if isinstance(more, int):
        return region.value(f"affine.apply affine_map<(a) -> (a + {more})>({named})")
    return region.value(f"affine.apply affine_map<(a, b) -> (a + b)>({named}, {more})")


def step_begin(region: Region, turn: Index, step: int, size: int) -> Index:
    """Return where a step begins, the last one early enough to end with the tensor."""
    if size % step == 0:
        return scaled(region, turn, step)
    return region.value(f"affine.min affine_map<(a) -> (a * {step}, {size - step})>({turn})")
