"""Verdict on a network, conv by conv and tensor by tensor: holds, differs or not compared.

Numpy is held against the definition, and the table behind it, entry by entry. ONNX Runtime is a second witness: where
its element is another one, the difference is proven to be float32's rounding if both lie within the error bound of the
definition (`hexconv.verify.definition`), or counted as a table's if they lie within that bound and what a table in
place of a function behind sums may add. Where they don't, ONNX Runtime is asked again, node by node: what it fuses may
leave the definition, as a bias of another scale than its sums does.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import computed_field

from hexconv.compute.reference import convolution, of_conv, quantised, reference
from hexconv.model.refused import Refused
from hexconv.run.given import filters_of
from hexconv.run.machine_parts import saturation
from hexconv.spec import Chain, Requantize
from hexconv.spec.activations import SLOPE, TABLE
from hexconv.spec.case import sums_by_channel
from hexconv.spec.choices import Engine
from hexconv.spec.curves import activated
from hexconv.spec.dtypes import INTEGER_RANGE
from hexconv.spec.names import bias_name
from hexconv.spec.requantize import FRACTION_BITS
from hexconv.spec.vectors import looked_up
from hexconv.verify.definition import Arithmetic, Bounds, Definition
from hexconv.verify.runtime import Array, Whole

Answer = Literal["holds", "differs", "not compared"]
Rule = Literal["run", "sums", "definition", "table", "ONNX Runtime", "Add"]
EXIT_CODES: dict[Answer, int] = {"holds": 0, "differs": 1, "not compared": 2}


@dataclass(frozen=True)
class Comparison:
    """Two tensors of one shape, element by element.

    Attributes:
        rule: what the chain is held against. `run`: its run equals numpy in every element. `sums`: numpy's sums, scaled
            and not yet rounded, are those of ONNX's definition in float64, within the error of a float32 scale.
            `definition`: so are its codes. `table`: each entry of a table
            lies within float32's error of the operators that it stands for. `ONNX Runtime`: its element equals numpy's,
            or both lie within float32's error of the definition. `Add`: so is the sum of a conv that adds a tensor,
            of ONNX Runtime's own codes.
        values: how many elements each tensor has.
        rounded: how many differ, and are proven to be float32's rounding.
        differing: how many differ otherwise.
        largest: the largest difference of an element that differs, in steps of the codes that are compared.
        at: the index of that element in the model's tensor; None where none differs.
        found: this element.
        wanted: what the other tensor has there.
        by_table: how many differ by more than rounding, within what a table of 256 codes in place of a function behind
            sums may add, as the import notes it.
    """

    rule: Rule
    values: int
    rounded: int = 0
    differing: int = 0
    largest: float = 0.0
    at: tuple[int, ...] | None = None
    found: float | None = None
    wanted: float | None = None
    by_table: int = 0

    @classmethod
    def of(
        cls,
        rule: Rule,
        found: NDArray[Any],
        wanted: NDArray[Any],
        allowed: NDArray[np.bool_] | None = None,
        tabled: NDArray[np.bool_] | None = None,
    ) -> "Comparison":
        """Compare two tensors of one shape.

        Args:
            rule: what is compared.
            found: the one.
            wanted: the other.
            allowed: for each element whether a difference is proven to be rounding; None where none is.
            tabled: for each element whether a table of 256 codes may add a difference; None where there is none.

        >>> one = Comparison.of("run", np.array([1, 2, 3]), np.array([1, 2, 5]))
        >>> one.values, one.differing, one.largest, one.at, one.found, one.wanted
        (3, 1, 2.0, (2,), 3.0, 5.0)
        """
        if found.shape != wanted.shape:
            raise ValueError(f"tensors of {found.shape} and {wanted.shape}")
        one, other = found.astype(np.float64), wanted.astype(np.float64)
        differs = ~((one == other) | (np.isnan(one) & np.isnan(other)))
        if not differs.any():
            return cls(rule, found.size)
        unrounded = differs if allowed is None else differs & ~allowed
        beyond = unrounded if tabled is None else unrounded & ~tabled
        shown = beyond if beyond.any() else differs
        apart = np.where(shown, np.nan_to_num(np.abs(one - other), nan=np.inf, posinf=np.inf), -1)
        at = tuple(int(place) for place in np.unravel_index(int(np.argmax(apart)), found.shape))
        rounded, by_table = (int(np.count_nonzero(part)) for part in (differs & ~unrounded, unrounded & ~beyond))
        told = float(apart[at]), at, float(one[at]), float(other[at])
        return cls(rule, found.size, rounded, int(np.count_nonzero(beyond)), *told, by_table)

    @classmethod
    def within(cls, rule: Rule, found: NDArray[Any], bounds: Bounds, tabled: Bounds | None = None) -> "Comparison":
        """Compare a tensor with a definition; what lies within its bounds is rounding, or may be a table's."""
        values = found.astype(np.float64)
        return cls.of(rule, found, bounds.exact, bounds.contain(values), tabled and tabled.contain(values))

    @property
    def holds(self) -> bool:
        """Whether no element differs, other than by float32's rounding or by what a table may add."""
        return self.differing == 0


@dataclass(frozen=True)
class ConvVerdict:
    """The verdict on one conv alone, on ONNX Runtime's own input to it.

    Attributes:
        node: the conv's name in the model.
        tensor: the tensor in which it is compared: its first codes, before a table or a curve.
        comparisons: what was compared.
        reasons: what was not compared, and why.
        fused: in how many elements ONNX Runtime, with its optimisations, is further from the definition than float32
            rounds, while its nodes one by one are not: these are then compared.
    """

    node: str
    tensor: str = ""
    comparisons: tuple[Comparison, ...] = ()
    reasons: tuple[str, ...] = ()
    fused: int = 0

    @computed_field
    @property
    def answer(self) -> Answer:
        """Whether the conv differs; else whether it was held against its definition."""
        return _of(self.comparisons, any(one.rule == "definition" for one in self.comparisons))


@dataclass(frozen=True)
class ChainVerdict:
    """The verdict on one chain.

    Attributes:
        case: the name of its case.
        convs: the verdicts on its convs, each alone.
        run: its pieces in the run beside numpy, both on what the run had before them; None where it was not run.
        reason: why it was not run; empty where it was.
        kernels: the kernels of its convs, in words.
        pieces: names of the cases that it runs as, one after the other.
        packets: the packets of all pieces on the simulator; None on another target.
        in_network: its result in the run beside ONNX Runtime's, where roundings travel; None where it was not run, or
            the model has no such tensor.
    """

    case: str
    convs: tuple[ConvVerdict, ...] = ()
    run: Comparison | None = None
    reason: str = ""
    kernels: str = ""
    pieces: tuple[str, ...] = ()
    packets: int | None = None
    in_network: Comparison | None = None

    @computed_field
    @property
    def answer(self) -> Answer:
        """Whether the run or a conv differs; else whether the chain was run."""
        differing = [conv for conv in self.convs if conv.answer == "differs"]
        return "differs" if differing else _of([self.run] if self.run else [], self.run is not None)


@dataclass(frozen=True)
class StepVerdict:
    """The verdict on one step of the program: a call of a chain's piece, or an operator between chains.

    Attributes:
        number: its number in `network.c`, from 1 on.
        operator: the name of its operator, or `chain`.
        node: the name of its node in the model; for a chain, of the case.
        tensor: the model's tensor that it writes; empty where it writes none.
        run: what it wrote in the run beside numpy, on what it read in the run; None where it was not run.
        alone: an operator by numpy beside ONNX Runtime, both on ONNX Runtime's own inputs; None where it gives none.
        in_network: what it wrote beside ONNX Runtime's tensor, where roundings travel; None where there is none.
        packets: its packets on the simulator, of all threads; None on another target.
        reason: why it is not compared; empty where it is.
    """

    number: int
    operator: str
    node: str
    tensor: str = ""
    run: Comparison | None = None
    alone: Comparison | None = None
    in_network: Comparison | None = None
    packets: int | None = None
    reason: str = ""

    @computed_field
    @property
    def answer(self) -> Answer:
        """Whether it differs from numpy, or numpy from ONNX Runtime; else whether it was run."""
        return _of([one for one in (self.run, self.alone) if one], self.run is not None)


@dataclass(frozen=True)
class Outputs:
    """How far the first output of a network is from ONNX Runtime's, over some inputs.

    Attributes:
        inputs: how many inputs there were.
        top1_alike: for how many of them the largest value is of the same class; None where the output has no rows of
            classes.
        ranked_alike: how many of the inputs rank the same five classes first, in the same order; None likewise.
        largest: the largest absolute difference.
        mean: the mean absolute difference.
        psnr_db: the peak signal to noise ratio in decibels, the peak being ONNX Runtime's range; None where all is
            equal.
        step: the least difference between two of ONNX Runtime's values; where the output is quantised, that of two
            codes.
        differing_share: the share of the values that differ, 0 to 1.
    """

    inputs: int
    top1_alike: int | None
    ranked_alike: int | None
    largest: float
    mean: float
    psnr_db: float | None
    step: float
    differing_share: float

    @property
    def largest_steps(self) -> float:
        """The largest difference, counted in steps."""
        return self.largest / self.step if self.step else 0.0


@dataclass(frozen=True)
class OutputVerdict:
    """The verdict on one output of the network, as the run gave it.

    Attributes:
        name: the name of the tensor.
        answer: `differs` if an element differs and a step on the way to it does; `not compared` if no step on the way
            to it was; else it holds, and what differs are roundings that travelled.
        values: how many elements it has.
        differing: how many of them are not ONNX Runtime's.
        largest: the largest absolute difference.
        mean: the mean absolute difference.
        range: ONNX Runtime's largest element minus its smallest.
        top5_same: whether the five largest of each row are the same in the same order, where it has rows of classes.
        optimised_away: how many elements ONNX Runtime itself gives otherwise where it need not give inner tensors.
        reason: why it is not compared; empty where it is.
    """

    name: str
    answer: Answer
    values: int
    differing: int
    largest: float
    mean: float
    range: float
    top5_same: bool | None = None
    optimised_away: int = 0
    reason: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A conv that is in no chain.

    Attributes:
        node: its name in the model.
        reason: why it is in none.
    """

    node: str
    reason: str


@dataclass(frozen=True)
class NetworkVerdict:
    """The verdict on a network.

    Attributes:
        model: the name of the model's file.
        target: the target that its chains ran on.
        chains: the verdicts on its chains.
        outputs: the verdicts on the outputs of the model.
        not_taken: the convs that are in no chain.
        outside: how many nodes of each operator the run took from ONNX Runtime, since hexconv has no operator for
            them: they are not compared.
        note: what is known of ONNX Runtime on this machine; empty where nothing is.
        steps: the verdicts on the steps of the program.
        packets: the packets of a call on the simulator, of all threads; None on another target.
        critical_packets: the packets of the slowest thread, step by step; None on another target.
        reason: why the program was not run; empty where it was.
        many: the first output over many inputs; None where one input was asked for, or that output is not compared.
        engine: how the matrix engine requantises what it computes; what is `fast` is held against numpy alone.
    """

    model: str
    target: str
    chains: tuple[ChainVerdict, ...]
    outputs: tuple[OutputVerdict, ...]
    not_taken: tuple[LeftOut, ...] = ()
    outside: dict[str, int] | None = None
    note: str = ""
    steps: tuple[StepVerdict, ...] = ()
    packets: int | None = None
    critical_packets: int | None = None
    reason: str = ""
    many: Outputs | None = None
    engine: Engine = "exact"

    @computed_field
    @property
    def answers(self) -> dict[str, dict[Answer, int]]:
        """How many chains, convs, operators and outputs have each answer."""
        convs: list[Answer] = [conv.answer for chain in self.chains for conv in chain.convs]
        others: list[Answer] = ["not compared"] * len(self.not_taken)
        return {
            "chains": _counted(chain.answer for chain in self.chains),
            "convs": _counted([*convs, *others]),
            "operators": _counted(step.answer for step in self.operators),
            "outputs": _counted(output.answer for output in self.outputs),
        }

    @property
    def operators(self) -> tuple[StepVerdict, ...]:
        """The steps that are operators."""
        return tuple(step for step in self.steps if step.operator != "chain")

    @computed_field
    @property
    def answer(self) -> Answer:
        """`differs` if any chain or operator does; `holds` if none does, and a chain or an output was compared."""
        if any(each.answer == "differs" for each in (*self.chains, *self.operators)):
            return "differs"
        is_compared = any(each.answer == "holds" for each in (*self.chains, *self.outputs))
        return "holds" if is_compared else "not compared"

    def total(self, rule: Rule) -> Comparison:
        """Sum up the comparisons of all convs by one rule; the element that is shown is the one that is most apart."""
        return together(rule, [one for chain in self.chains for conv in chain.convs for one in conv.comparisons])


def together(rule: Rule, comparisons: Iterable[Comparison]) -> Comparison:
    """Sum up the comparisons by one rule."""
    own = [one for one in comparisons if one.rule == rule]
    worst = max(own, key=lambda one: (one.differing > 0, one.largest), default=Comparison(rule, 0))
    names = ("values", "rounded", "differing", "by_table")
    values, rounded, differing, by_table = (sum(getattr(one, name) for one in own) for name in names)
    return Comparison(rule, values, rounded, differing, worst.largest, worst.at, worst.found, worst.wanted, by_table)


def _of(comparisons: Sequence[Comparison], is_compared: bool) -> Answer:
    if any(not one.holds for one in comparisons):
        return "differs"
    return "holds" if is_compared else "not compared"


def _counted(answers: Iterable[Answer]) -> dict[Answer, int]:
    found = Counter(answers)
    return {answer: found[answer] for answer in EXIT_CODES}


SIDE = 16
"""The side of a square image of all 256 codes."""
HALF_OF_UINT16 = 2**15


def judge(
    definition: Definition, alone: Chain, weights: Mapping[str, Array], found: Mapping[str, Array], whole: Whole
) -> ConvVerdict:
    """Judge one conv on ONNX Runtime's own input to it.

    Args:
        definition: the conv in the model.
        alone: the chain of this conv alone, as it runs.
        weights: its weights, under the names of the first conv.
        found: ONNX Runtime's tensors, by name; those that it doesn't give are not compared.
        whole: the model, to ask ONNX Runtime again.
    """
    try:
        return _judged(definition, alone, weights, found, whole)
    except (Refused, KeyError, RecursionError) as missing:
        told = f"ONNX Runtime gives no {missing}" if isinstance(missing, KeyError) else str(missing)
        return ConvVerdict(definition.unit.node.name, definition.first_codes, reasons=(told,))


def answer(chain: Chain, weights: Mapping[str, Array], image: Array) -> Array:
    """Compute the output of a chain with numpy, NHWC."""
    biases = [weights.get(bias_name(number)) for number in range(1, len(chain.conv) + 1)]
    return reference(chain, image, filters_of(chain, weights), biases, weights)


def nhwc(tensor: Array, shape: tuple[int, ...]) -> Array:
    """Turn a tensor of the model, NCHW in any shape, into logical NHWC of this shape; uint16 is int16 in a chain."""
    batch, rows, columns, channels = shape
    made = np.ascontiguousarray(tensor.reshape(batch, channels, rows, columns).transpose(0, 2, 3, 1))
    return (made.astype(np.int32) - HALF_OF_UINT16).astype(np.int16) if made.dtype == np.uint16 else made


def in_model(values: Array, shape: tuple[int, ...], dtype: str = "") -> Array:
    """Turn logical NHWC into a tensor of the model: NCHW, in its shape; int16 of a chain may be uint16."""
    made = np.ascontiguousarray(values.transpose(0, 3, 1, 2)).reshape(shape)
    is_moved = dtype == "uint16" and made.dtype == np.int16
    return (made.astype(np.int32) + HALF_OF_UINT16).astype(np.uint16) if is_moved else made


def _judged(
    definition: Definition, alone: Chain, weights: Mapping[str, Array], found: Mapping[str, Array], whole: Whole
) -> ConvVerdict:
    unit = definition.unit
    table = weights.get(f"{TABLE}1") if alone.conv[0].activation == TABLE and not definition.is_tabulated else None
    at = unit.result if table is None else definition.first_codes
    image, how = found[unit.source], _of_chain(definition, alone)
    bounds, tabled = _bounds(definition, alone, image, how)
    sums = _sums(alone, weights, nhwc(image, tuple(alone.input)))
    own = _stored(definition, alone, weights, sums, bounds.exact.shape)
    compared = [*_scaled(definition, alone, weights, sums)]
    compared.append(Comparison.within("definition", own, _at(definition, bounds, at), tabled))
    if table is not None:
        compared.append(_table(definition, table, alone.dtype))
    if saturation() and unit.node.op == "QLinearConv":
        return ConvVerdict(unit.node.name, at, tuple(compared), (saturation(),))
    theirs = found[at]
    if np.array_equal(theirs, own):
        return ConvVerdict(unit.node.name, at, (*compared, Comparison("ONNX Runtime", own.size)))
    wide, tabled = _bounds(definition, alone, image, replace(how, sums_floats=True))
    wide = _at(definition, wide, at)
    witness, fused = witnessed(own, theirs, wide, tabled), 0
    if not witness.holds:
        one_by_one = witnessed(own, whole.computed([at], {unit.source: image}, fuses=False)[at], wide, tabled)
        witness, fused = (one_by_one, witness.differing) if one_by_one.holds else (witness, 0)
    return ConvVerdict(unit.node.name, at, (*compared, witness), fused=fused)


def witnessed(own: Array, theirs: Array, bounds: Bounds, tabled: Bounds | None = None) -> Comparison:
    """Compare numpy with ONNX Runtime; where they differ, and float32 can give both, the difference is rounding."""
    proven, within = (
        each and each.contain(theirs.astype(np.float64)) & each.contain(own.astype(np.float64))
        for each in (bounds, tabled)
    )
    return Comparison.of("ONNX Runtime", own, theirs, proven, within)


def _bounds(definition: Definition, alone: Chain, image: Array, how: Arithmetic) -> tuple[Bounds, Bounds | None]:
    """The bounds of the first codes by rounding alone, and those with what a table behind the sums may add."""
    tabled = definition.bounds(image, how) if how.table_steps else None
    return _of_sums(definition, alone, definition.bounds(image, replace(how, table_steps=0.0))), tabled


def _sums(alone: Chain, weights: Mapping[str, Array], image: Array) -> Array:
    """The sums of a chain of one conv, NHWC, the bias included."""
    sums = convolution(alone.conv[0], image, weights["filter1"], alone.zero_point)
    return sums + weights["bias1"] if "bias1" in weights else sums


def _stored(
    definition: Definition, alone: Chain, weights: Mapping[str, Array], sums: Array, shape: tuple[int, ...]
) -> Array:
    """What a conv by numpy makes of its sums before its table, in the model's shape.

    Sums without a requantisation become the real numbers that they stand for.
    """
    conv, dtype = alone.conv[0], alone.output_dtype(0)
    if not alone.is_integer:
        return in_model(activated(sums, conv, of_conv(weights, 1).get(SLOPE)), shape)
    of_result = definition.graph.type_of(definition.unit.result).dtype
    if conv.requantize is None:
        made = in_model(sums, shape)
        return made if of_result == "int32" else made * definition.unit_of_sums().reshape(-1, *[1] * (made.ndim - 2))
    looks_up = conv.activation == TABLE and not definition.is_tabulated
    before = replace(conv, activation="none", table_zero_point=0) if looks_up else conv
    return in_model(quantised(before, sums, dtype, of_conv(weights, 1)), shape, of_result)


def _scaled(definition: Definition, alone: Chain, weights: Mapping[str, Array], sums: Array) -> Iterator[Comparison]:
    """Compare scaled sums before they are rounded, within the range of their codes: no tie hides a difference there."""
    by, steps = alone.conv[0].requantize, definition.steps
    if by is None or steps is None or definition.is_tabulated:
        return
    first, last = by.codes(*INTEGER_RANGE[alone.dtype])
    ends = first + 0.5, last - 0.5  # a clamp of the model may end beside a code
    offset = HALF_OF_UINT16 if definition.graph.type_of(definition.unit.result).dtype == "uint16" else 0
    made = np.clip(in_model(sums * _scales(by, weights) + by.zero_point, steps.exact.shape), *ends)
    wanted = steps.every(lambda values: np.clip(values - offset, *ends))
    is_same = wanted.contain(made) | _is_constant(alone, weights, by).reshape(-1, *[1] * (made.ndim - 2))
    yield Comparison.of("sums", np.where(is_same, wanted.exact, made), wanted.exact)


def _is_constant(alone: Chain, weights: Mapping[str, Array], by: Requantize) -> Array:
    """Whether a channel is one code whatever it reads: its multiplier and bias may be others that keep it there."""
    ends = sums_by_channel(alone, 0, weights["filter1"], weights.get("bias1"))
    codes = by.codes(*INTEGER_RANGE[alone.dtype])
    least, most = (np.rint(np.clip(end * _scales(by, weights) + by.zero_point, *codes)) for end in ends)
    return least == most


def _scales(by: Requantize, weights: Mapping[str, Array]) -> Array:
    """The scale from sums to steps of the result, one or one a channel."""
    multiplier, shift = (np.asarray(weights.get(f"{name}1", getattr(by, name))) for name in ("multiplier", "shift"))
    return np.ldexp(multiplier.astype(np.float64), shift - FRACTION_BITS)


def _of_chain(definition: Definition, alone: Chain) -> Arithmetic:
    """How a chain computes a conv beside its definition: what its import's notes say, and few binary places."""
    by = alone.conv[0].requantize
    if not alone.is_integer or by is None:
        return Arithmetic(sums_floats=not alone.is_integer)
    places = 2.0 ** -(by.fraction_bits + 1) if by.fraction_bits is not None else 0.0
    unit = definition.unit
    off = sum(each.off(is_looked_up=definition.first_codes != unit.result) for each in unit.inexact)
    if definition.is_tabulated:
        return Arithmetic(sums_floats=False, more_steps=places, table_steps=off)
    return Arithmetic(sums_floats=False, more_steps=places + off)


def _of_sums(definition: Definition, alone: Chain, bounds: Bounds) -> Bounds:
    """Bounds of real numbers that sums stand for, where a bias is rounded to a whole unit of them."""
    if alone.conv[0].requantize is not None or not definition.unit.inexact:
        return bounds
    return bounds.moved(definition.unit_of_sums().reshape(-1, *[1] * (bounds.exact.ndim - 2)) / 2)


def _at(definition: Definition, bounds: Bounds, tensor: str) -> Bounds:
    """The bounds of a tensor: those of the first codes, or what the clamps behind make of them."""
    return bounds if tensor == definition.first_codes else bounds.every(lambda codes: definition.curve(codes).exact)


def _table(definition: Definition, table: Array, dtype: str) -> Comparison:
    """Compare a table with the operators that it stands for, on all codes."""
    low, high = INTEGER_RANGE[dtype]
    codes = np.arange(low, high + 1).astype(dtype).reshape(1, 1, SIDE, SIDE)
    return Comparison.within("table", looked_up(codes, table), definition.curve(codes))
