"""The judge of `hexconv verify`: right networks hold, however ONNX Runtime fuses them; one wrong weight differs."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hexconv.model import import_model
from hexconv.model.conv_unit import Unit
from hexconv.network.planned_model import members_of
from hexconv.network.program import Member
from hexconv.verify.definition import Arithmetic, Definition
from hexconv.verify.network import inner_tensors, judged
from hexconv.verify.runtime import Whole, inputs_of
from hexconv.verify.verdict import ConvVerdict, together, witnessed
from tests.draws import RUN
from tests.model.test_dead_channels import QUANTISERS_MOST, Channel, network
from tests.network.drawn_programs import draw_program
from tests.verify.networks import Network as Quantised
from tests.verify.saturation import WITNESSED

pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")


class Network:
    """A model with ONNX Runtime's tensors, and its chains as they would run."""

    def __init__(self, model: onnx.ModelProto) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "net.onnx"
            onnx.save(model, path)
            self.imported, self.whole = import_model(path), Whole.load(path, None)
            inputs = inputs_of(self.whole.graph, self.whole.inputs, "net.onnx", None, 1)
            self.found = {**inputs, **self.whole.tapped(inner_tensors(self.imported), inputs)}
            self.members = list(members_of(self.imported))

    def verdicts(
        self, member: Member | None = None, found: Mapping[str, np.ndarray] | None = None
    ) -> list[ConvVerdict]:
        members = [member] if member else self.members
        return [conv for one in members for conv in judged(self.imported.graph, self.whole, one, found or self.found)]


SEEDS = st.integers(0, 2**16)


def drawn_model(seed: int) -> onnx.ModelProto:
    """A program with a conv that is taken."""
    models = (draw_program(seed, index).model for index in count())
    return next(model for model in models if Network(model).members)


@WITNESSED
@RUN
@given(SEEDS.map(drawn_model))
def test_a_right_network_holds(model: onnx.ModelProto) -> None:
    verdicts = Network(model).verdicts()
    assert verdicts
    assert [(one.answer, one.reasons) for one in verdicts] == [("holds", ())] * len(verdicts)
    assert all({"definition", "ONNX Runtime"} <= {one.rule for one in conv.comparisons} for conv in verdicts)


def test_channels_whose_biases_are_moved_away_from_the_ends_of_int32_hold() -> None:
    dead = [Channel(127, 2**31 - 2, code) for code in (5, 60.47, 300)]
    verdicts = Network(network([Channel(0, QUANTISERS_MOST, 60), *dead, Channel(127, 4000, 20)])).verdicts()
    assert [one.answer for one in verdicts] == ["holds"]


@RUN
@given(SEEDS, st.sampled_from(["Sub", "Add", "Mul", "Max"]), st.sampled_from([0.001, 0.05, 0.4]))
def test_codes_that_a_function_flattens_are_judged_before_it(seed: int, op: str, scale: float) -> None:
    """By how much a rounded bias moves them, though no result moves, as of a number less itself."""
    net = Quantised(seed=seed)
    codes, step, zero = net.start()
    bias = net.constant(net.random.standard_normal(4), "float32")
    conv = net.node("Conv", [net.real(codes, step, zero), net.weights8(4, 3, 3, 3, axis=0), bias], pads=[1] * 4)
    read = net.real(net.quantised(conv, 0.05, 128), 0.05, 128)
    other = read if op == "Sub" else net.constant(net.random.uniform(0, 0.02), "float32")
    made = net.quantised(net.node(op, [read, other]), scale, 128)
    verdicts = Network(net.model(net.real(made, scale, 128))).verdicts()
    assert [(one.answer, one.reasons) for one in verdicts] == [("holds", ())]


def test_what_a_table_behind_sums_adds_is_not_called_rounding() -> None:
    """256 codes of the sums have too few for a function that falls and rises: results are off by one step."""
    net = Quantised()
    codes, step, zero = net.start()
    conv = net.node("Conv", [net.real(codes, step, zero), net.weights8(8, 3, 3, 3, axis=0)])
    made = net.quantised(net.node("LeakyRelu", [conv], alpha=-0.5), 0.01, 128)
    judge = Network(net.model(net.real(made, 0.01, 128)))
    [unit] = [unit for run in judge.imported.runs for unit in run.units]
    [verdict] = judge.verdicts()
    assert (verdict.answer, Definition(judge.imported.graph, unit).is_tabulated) == ("holds", True)
    for one in verdict.comparisons:
        assert (one.differing, one.largest) == (0, 1.0)
        assert one.by_table > one.values // 10 > 100 * one.rounded
    assert together("definition", verdict.comparisons).by_table == verdict.comparisons[0].by_table


@RUN
@given(SEEDS, st.integers(1, 3))
def test_sums_that_cancel_hold(seed: int, side: int) -> None:
    """Twice the same channels by filters of both signs: integers give 0, and float64 what it rounds."""
    net = Quantised(seed=seed)
    codes, step, zero = net.start()
    read = net.real(codes, step, zero)
    twice = net.real(net.quantised(net.node("Concat", [read, read], axis=1), step, zero), step, zero)
    taps = net.random.integers(-127, 128, (4, 3, side, side))
    filter = net.constant(np.concatenate([taps, -taps], axis=1), "int8")
    scale = net.random.uniform(0.001, 0.004)
    weights = net.node("DequantizeLinear", [filter, *net.ends(scale, 0, "int8")])
    verdicts = Network(net.model(net.node("Conv", [twice, weights]))).verdicts()
    assert [(one.answer, one.reasons) for one in verdicts] == [("holds", ())]


@RUN
@given(SEEDS.map(drawn_model), st.integers(0, 2**16))
def test_one_wrong_weight_differs_from_its_definition_in_its_conv_alone(model: onnx.ModelProto, drawn: int) -> None:
    net = Network(model)
    member = net.members[drawn % len(net.members)]
    place = drawn % len(member.run.units)
    filter = member.weights[f"filter{place + 1}"].copy()
    at = np.unravel_index(int(np.argmax(np.abs(filter.astype(int)))), filter.shape)
    filter[at] -= np.sign(filter[at])
    wrong = replace(member, weights={**member.weights, f"filter{place + 1}": filter})
    verdicts = net.verdicts(wrong)
    assert [conv.answer for conv in verdicts[:place] + verdicts[place + 1 :]] == ["holds"] * (len(verdicts) - 1)
    assert verdicts[place].answer == "differs" or not is_read(net, member.run.units[place], at)


def is_read(net: Network, unit: Unit, at: tuple[np.intp, ...]) -> bool:
    """Whether a weight's pixel has another value than zero, where its result is not cut, wherever the tap looks."""
    definition, conv, source = Definition(net.imported.graph, unit), unit.conv, net.found[unit.source]
    definition.bounds(source, Arithmetic(False))
    if definition.steps is None or source.ndim != 4 or unit.inexact:
        return False
    bits = np.iinfo(net.found[definition.first_codes].dtype)
    low, high = conv.requantize.codes(bits.min, bits.max) if conv.requantize else (bits.min, bits.max)
    made = definition.steps.exact[0, at[0]]
    inside = (made > low + 0.6) & (made < high - 0.6) & (np.ptp(np.rint(made)) > 0)  # else it may be one code
    inputs = source.shape[1] // conv.groups
    channel = int(at[0]) // (conv.out_channels // conv.groups) * inputs + int(at[1])
    (top, left), (down, right) = (conv.padding.top, conv.padding.left), conv.stride
    image = np.pad(source[0, channel].astype(int) - unit.zero_point, ((top, 9), (left, 9)))
    rows, columns = made.shape
    first = (int(at[2]) * conv.dilation[0], int(at[3]) * conv.dilation[1])
    read = image[first[0] :: down, first[1] :: right][:rows, :columns]
    return bool(np.any(inside & (read != 0)))


@WITNESSED
@RUN
@given(SEEDS.map(drawn_model), st.integers(0, 2**16), st.sampled_from([-1, 1]))
def test_one_element_of_onnx_runtime_that_no_rounding_explains_differs(
    model: onnx.ModelProto, drawn: int, by: int
) -> None:
    """Where its nodes one by one give another one than its kernels, they are compared, and it is told."""
    net = Network(model)
    unit = [unit for run in net.imported.runs for unit in run.units][-1]
    definition = Definition(net.imported.graph, unit)
    tensor = definition.first_codes
    theirs, bounds = net.found[tensor].copy(), definition.bounds(net.found[unit.source], Arithmetic(True))
    assume(definition.steps and not unit.inexact)
    assume(any(tensor in node.output for node in model.graph.node))  # phases of a transposed conv are hexconv's own
    bits = np.iinfo(theirs.dtype)
    places = np.flatnonzero((bounds.low == bounds.high) & (theirs > bits.min) & (theirs < bits.max))
    assume(places.size)
    at = np.unravel_index(places[drawn % places.size], theirs.shape)
    theirs[at] = int(theirs[at]) + by
    beside = witnessed(net.found[tensor], theirs, bounds)
    assert (beside.differing, beside.rounded, beside.at) == (1, 0, tuple(map(int, at)))
    assert (beside.wanted, beside.found) == (float(theirs[at]), float(theirs[at]) - by)
    verdict = net.verdicts(net.members[-1], {**net.found, tensor: theirs})[-1]
    assert (verdict.answer, verdict.fused) == ("holds", 1)


@RUN
@given(SEEDS.map(drawn_model))
def test_the_error_of_float32_leaves_one_code_but_for_ties(model: onnx.ModelProto) -> None:
    net = Network(model)
    for unit in (unit for run in net.imported.runs for unit in run.units):
        definition = Definition(net.imported.graph, unit)
        bounds = definition.bounds(net.found[unit.source], Arithmetic(True))
        assert np.all((bounds.low <= bounds.exact) & (bounds.exact <= bounds.high))
        if definition.steps is None:
            continue
        assert np.all(bounds.high - bounds.low <= 1)
        from_half = np.abs(definition.steps.exact - np.floor(definition.steps.exact) - 0.5)
        assert np.all((bounds.low == bounds.high) | (from_half < 0.02))
        definition.bounds(net.found[unit.source], Arithmetic(False))
        width = definition.steps.high - definition.steps.low
        rounded = 2 * sum(each.off_steps or 0.0 for each in unit.inexact)  # biases that are no whole units of the sums
        assert np.all(width < 0.002 + rounded + 1e-5 * np.abs(definition.steps.exact))
