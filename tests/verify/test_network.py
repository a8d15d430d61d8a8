"""`hexconv verify`: small quantised networks, on both targets, right and broken on purpose."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hexconv.analyze.usage import work_usage
from hexconv.apart import cores
from hexconv.build.built_chain import c_files
from hexconv.cli.app import exit_code
from hexconv.errors import InputError, Unsupported
from hexconv.lower import lower_case
from hexconv.model import Imported, import_model
from hexconv.network import Wanted, built_network
from hexconv.network.built_network import build_network, compiled_network, write_compiled
from hexconv.network.planned_model import members_of, plan
from hexconv.network.program_steps import Call, moved_bytes
from hexconv.report import network_verdict_lines, network_verdict_table
from hexconv.run.host import count
from hexconv.verify import (
    Asked,
    ChainVerdict,
    Comparison,
    ConvVerdict,
    NetworkVerdict,
    OutputVerdict,
    StepVerdict,
    verify_network,
)
from hexconv.verify.input_files import Pixels, read_inputs
from hexconv.verify.network import Running, inner_tensors, judged
from hexconv.verify.runtime import Whole
from hexconv.verify.verdict import Answer, Rule
from hexconv.working import heard
from hexconv.written import scratch
from tests.deep import DEEP
from tests.model.builder import Builder
from tests.network.drawn_programs import draw_program
from tests.verify.networks import IMAGE, Network, residual
from tests.verify.saturation import WITNESSED

pytest.importorskip("onnxruntime", reason="onnxruntime is missing: pip install 'hexconv[verify]'")

Verify = Callable[..., dict[str, Any]]
SEED = 11
ONE_IMAGE = {"image": ((1, 3, 8, 8), "uint8")}
CONVS, CLASSES = 4, 12
"""Of `residual`: in one chain, with the Add of its block."""


@pytest.fixture
def verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Verify:
    """`hexconv verify` of a network in a file; what it says, and its exit code."""

    def run(model: onnx.ModelProto, *options: str) -> dict[str, Any]:
        onnx.save(model, tmp_path / "net.onnx")
        code = exit_code(["verify", str(tmp_path / "net.onnx"), "--workers", "1", "--json", *options])
        said = capsys.readouterr()
        return {**(json.loads(said.out) if said.out else {}), "code": code, "error": said.err}

    return run


def assert_whole(said: dict[str, Any]) -> None:
    """Every run equals numpy, every conv its definition, and ONNX Runtime but for its rounding."""
    assert said["error"] == ""
    convs = [conv for chain in said["chains"] for conv in chain["convs"]]
    assert len(convs) == CONVS
    assert all((chain["run"]["rounded"], chain["run"]["differing"]) == (0, 0) for chain in said["chains"])
    rules, adds = ["sums", "definition", "ONNX Runtime"], [[], [], ["Add"], []]
    said_of = [[one["rule"] for one in conv["comparisons"]] for conv in convs]
    assert said_of == [[*rules, *more] for more in adds]
    assert not any(conv["reasons"] for conv in convs)
    held = {"holds": CONVS, "differs": 0, "not compared": 0}
    assert (said["code"], said["answer"], said["answers"]["convs"]) == (0, "holds", held)
    assert (said["outside"], said["reason"]) == ({}, "")
    operators = [step for step in said["steps"] if step["operator"] != "chain"]
    assert [step["operator"] for step in operators] == ["convert", "convert", "global_average_pool", "matmul"]
    assert all(step["run"]["differing"] == 0 for step in operators)
    assert [step["alone"] and step["alone"]["differing"] for step in operators] == [None, 0, 0, 0]


def test_a_network_holds_on_the_host(verify: Verify) -> None:
    net, output = residual("qdq", per_channel=True)
    said = verify(net.model(output), "--target", "llvm")
    assert_whole(said)
    assert said["packets"] is None
    outputs = [(one["answer"], one["top5_same"], one["optimised_away"]) for one in said["outputs"]]
    assert outputs == [("holds", True, 0)]


@DEEP
@pytest.mark.simulator
@pytest.mark.parametrize("form", ["qdq", pytest.param("qlinear", marks=WITNESSED)])
def test_a_network_holds_on_the_simulator(form: str, verify: Verify) -> None:
    net, output = residual(form, per_channel=True)
    said = verify(net.model(output), "--vtcm", "1MiB", "--isa", "v66")
    assert_whole(said)
    assert said["packets"] > sum(chain["packets"] for chain in said["chains"]) > 0


def test_a_weight_that_is_wrong_by_one_is_seen(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run equals numpy with it, and neither equals the definition."""
    right = Imported.weights

    def wrong(imported: Imported, index: int) -> dict[str, np.ndarray]:
        arrays = right(imported, index)
        if "filter2" in arrays:
            arrays["filter2"] = arrays["filter2"].copy()
            arrays["filter2"][0, 0, 1, 1] -= 1
        return arrays

    monkeypatch.setattr(Imported, "weights", wrong)
    net, output = residual()
    said = verify(net.model(output), "--target", "llvm")
    assert (said["code"], said["answer"]) == (1, "differs")
    answers = [conv["answer"] for chain in said["chains"] for conv in chain["convs"]]
    assert answers == ["holds", "differs", "holds", "holds"]
    assert [chain["answer"] for chain in said["chains"]] == ["differs"]
    [sums] = [one for one in said["chains"][0]["convs"][1]["comparisons"] if one["rule"] == "sums"]
    assert (sums["at"][:2], sums["found"] != sums["wanted"]) == ([0, 0], True)
    assert said["chains"][0]["run"]["differing"] == 0


def test_the_rest_of_a_network_is_onnx_runtimes_own(tmp_path: Path) -> None:
    """With its own results in the place of the chains', its outputs are what they were."""
    net, output = residual()
    onnx.save(net.model(output), tmp_path / "net.onnx")
    imported, whole = import_model(tmp_path / "net.onnx"), Whole.load(tmp_path / "net.onnx", None)
    inputs = {"image": np.random.default_rng(1).standard_normal(IMAGE).astype(np.float32)}
    ends = [(run.units[0].source, run.units[-1].result) for run in imported.runs]
    found = whole.tapped([name for pair in ends for name in pair], inputs)
    known = dict(inputs)
    for source, result in ends:
        known |= whole.computed([source], known)
        assert np.array_equal(known[source], found[source])
        known[result] = found[result]
    assert np.array_equal(whole.computed(whole.outputs, known)[output], found[output])


def test_a_sum_that_is_wrong_by_one_is_seen(tmp_path: Path) -> None:
    """The Add of a conv is judged by numpy, on ONNX Runtime's own codes of both tensors."""
    net, output = residual()
    onnx.save(net.model(output), tmp_path / "net.onnx")
    imported, whole = import_model(tmp_path / "net.onnx").joining(), Whole.load(tmp_path / "net.onnx", None)
    (member,) = members_of(imported)
    (joined,) = [unit.joined for unit in member.run.units if unit.joined]
    inputs = {"image": np.random.default_rng(1).standard_normal(IMAGE).astype(np.float32)}
    found = {**inputs, **whole.tapped(inner_tensors(imported), inputs)}

    def differing() -> int:
        verdicts = judged(imported.graph, whole, member, found)
        return sum(one.differing for verdict in verdicts for one in verdict.comparisons if one.rule == "Add")

    assert differing() == 0
    found[joined.result] = found[joined.result].copy()
    found[joined.result][0, 3, 2, 1] ^= 1
    assert differing() == 1


def test_a_model_of_floats_holds(verify: Verify) -> None:
    floats = Builder("floats", IMAGE)
    last = floats.conv(floats.node("Relu", [floats.conv("image", (8, 3, 3, 3))]), (4, 8, 1, 1))
    said = verify(floats.model(last), "--target", "llvm")
    assert (said["code"], said["answers"]["convs"]["holds"], said["outputs"][0]["answer"]) == (0, 2, "holds")


def test_nothing_that_could_be_compared_is_an_exit_code_of_its_own(verify: Verify) -> None:
    net = Builder("pool", IMAGE)
    said = verify(net.model(net.node("Hardmax", [net.node("Flatten", ["image"])])), "--target", "llvm")
    assert (said["code"], said["answer"], said["outside"]) == (2, "not compared", {"Hardmax": 1})
    assert said["steps"][0]["reason"] == "no operator computes Hardmax"


def test_a_chain_and_an_output_that_are_not_compared_are_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sums of int32 are real numbers in the model: ONNX Runtime computes the conv, and nothing of it is the run's."""
    net = Network()
    output = net.node("Conv", [net.real(*net.start()), net.weights8(4, 3, 3, 3, axis=0)], "last")
    onnx.save(net.model(output), tmp_path / "net.onnx")
    assert exit_code(["verify", str(tmp_path / "net.onnx"), "--workers", "1", "--target", "llvm"]) == 2
    *lines, answer = capsys.readouterr().out.splitlines()
    why = "it ends in sums of int32; put a QuantizeLinear behind it"
    assert f"01-last: not run, so not compared: {why}" in lines
    assert f"output {output}: not compared: 01-last, which writes it, is ONNX Runtime's in the run: {why}" in lines
    assert answer.startswith("net.onnx on llvm: not compared (chains: 1 not compared; ")


@pytest.mark.parametrize("dtype", ["uint16", "float16"])
def test_a_model_of_which_c_gets_no_input_and_no_output_is_refused(dtype: str, verify: Verify) -> None:
    net = Builder("net", (1, 4), helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    model = net.model(net.node("Reshape", ["image", net.constant([4, 1], "int64")]))
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(net.dtype, (4, 1)))
    said = verify(model, "--target", "llvm")
    assert (said["code"], said["error"].count("\n")) == (2, 1)
    assert said["error"].startswith(f"hexconv: net.onnx: image is {dtype}, which C doesn't get")


@pytest.mark.parametrize(("op", "how"), [("Cast", {"to": TensorProto.FLOAT16}), ("Hardmax", {})])
def test_an_output_that_is_not_compared_has_no_figures_over_many_inputs(
    op: str, how: dict[str, Any], verify: Verify, tmp_path: Path
) -> None:
    """C gets no float16, and no operator computes Hardmax: the output is ONNX Runtime's own."""
    net, output = residual()
    (tmp_path / "inputs").mkdir()
    np.save(tmp_path / "inputs" / "a.npy", np.zeros(IMAGE, np.float32))
    model = net.model(net.node(op, [output], **how))
    said = verify(model, "--target", "llvm", "--inputs", str(tmp_path / "inputs"))
    assert (said["code"], said["error"], said["many"]) == (0, "", None)
    assert said["outputs"][0]["answer"] == "not compared"


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_a_window_behind_the_image_is_refused_as_build_refuses_it(op: str, verify: Verify, tmp_path: Path) -> None:
    """ONNX's shapes have one more row and column than ONNX Runtime's tensor."""
    net = Builder("pool", (1, 3, 9, 9))
    pooled = net.node(op, ["image"], "pool", kernel_shape=[2, 2], strides=[2, 2], pads=[1] * 4, ceil_mode=1)
    said = verify(net.model(net.node("Relu", [pooled])), "--target", "llvm")
    with pytest.raises(Unsupported) as refusal:
        build_network(tmp_path / "net.onnx", tmp_path / "built", Wanted(1 << 20, "llvm"))
    built = str(refusal.value).removesuffix("; --stubs leaves them to functions that you write")
    assert built.startswith(f"net.onnx: {op} pool: its last window starts behind the image")
    assert (said["code"], said["error"]) == (2, f"hexconv: {built}\n")


def test_codes_of_uint16_that_no_chain_has_leave_all_else_to_be_compared(verify: Verify) -> None:
    """The zero point is a constant of uint16 that steps read which are left to the caller."""
    net = Network()
    ends = net.ends(0.0002, 30000, "uint16")
    read = net.node("DequantizeLinear", [net.node("QuantizeLinear", ["image", *ends]), *ends])
    codes = net.conv8((net.quantised(read, 0.02, 128), np.float32(0.02), 128), (4, 3, 3, 3))
    net.opset = 21
    said = verify(net.model(net.real(*codes)), "--target", "llvm")
    assert (said["code"], said["answer"], said["reason"]) == (0, "holds", "")
    assert said["outside"] == {"QuantizeLinear": 1, "DequantizeLinear": 1}


def test_a_batch_of_images_holds(verify: Verify) -> None:
    net, output = residual()
    net.inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, (2, *IMAGE[1:]))]
    said = verify(net.model(output), "--target", "llvm")
    assert_whole(said)
    assert said["outputs"][0]["values"] == 2 * CLASSES


def test_what_has_no_operator_is_onnx_runtimes_in_the_run_and_all_else_is_compared(verify: Verify) -> None:
    net, output = residual()
    said = verify(net.model(net.node("Add", [net.node("Hardmax", [output]), output])), "--target", "llvm")
    assert (said["code"], said["answer"], said["outside"]) == (0, "holds", {"Hardmax": 1})
    assert said["answers"]["operators"] == {"holds": 5, "differs": 0, "not compared": 1}


def test_the_first_step_that_differs_is_named(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    """One operator of the library is wrong by a code: those behind it are judged on what they read."""
    monkeypatch.setattr(built_network, "c_files", wrong_operators)
    net = Network()
    branches = [net.conv8(image, (16, 3, 3, 3)) for image in [net.start()] * 2]
    said = verify(net.model(net.classified(net.added(*branches), 16)), "--target", "llvm")
    assert (said["code"], said["answer"]) == (1, "differs")
    assert [step["operator"] for step in said["steps"] if step["answer"] == "differs"] == ["add"]
    assert said["outputs"][0]["answer"] == "differs"


def wrong_operators(package: str, folder: str) -> dict[str, bytes]:
    """The files of `build`, where a sum of 8 bits is one code more."""
    files = c_files(package, folder)
    text = files["hexconv_operators.c"]
    right = b".add = add,"
    assert right in text
    wrong = b"""static int one_more(void *user, Tensor one, Tensor other, Tensor result) {
    const int error = add(user, one, other, result);
    ((uint8_t *)result->data)[5] ^= 1;
    return error;
}
struct hexconv_operators hexconv_plain_operators(void) {"""
    text = text.replace(b"struct hexconv_operators hexconv_plain_operators(void) {", wrong)
    return {**files, "hexconv_operators.c": text.replace(right, b".add = one_more,")}


@pytest.mark.simulator
def test_a_network_on_four_threads_is_judged_as_it_is_built(verify: Verify) -> None:
    net, output = residual()
    said = verify(net.model(output), "--vtcm", "1MiB", "--threads", "4", "--objective", "latency")
    assert_whole(said)
    assert 0 < said["critical_packets"] < said["packets"]
    apart = sum(step["packets"] for step in said["steps"]) - said["packets"]
    assert abs(apart) <= 16 * len(said["steps"])  # what hands the platform to steps and calls hooks behind them


def test_real_inputs_are_compared_one_by_one(verify: Verify, tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is missing: pip install 'hexconv[images]'")
    folder, random = tmp_path / "inputs", np.random.default_rng(3)
    folder.mkdir()
    np.save(folder / "a.npy", random.standard_normal(IMAGE[1:]).astype(np.float32))
    np.savez(folder / "b.npz", image=random.standard_normal(IMAGE).astype(np.float32))
    pillow.fromarray(random.integers(0, 256, (31, 47, 3), np.uint8)).save(folder / "c.png")
    net, output = residual()
    options = ("--target", "llvm", "--inputs", str(folder), "--mean", "0.4,0.5,0.6", "--deviation", "0.25")
    many = verify(net.model(output), *options)["many"]
    assert (many["inputs"], many["top1_alike"], many["ranked_alike"]) == (3, 3, 3)
    assert many["largest"] < 1e-5
    np.save(folder / "d.npy", np.zeros(5, np.float32))
    said = verify(net.model(output), *options)
    assert (said["code"], said["error"].count("\n")) == (2, 1)
    assert "d.npy" in said["error"]


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.ppm"])
def test_no_image_starts_another_program(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow knows a file by what it holds, whatever its name, and hands PostScript to Ghostscript."""
    pytest.importorskip("PIL", reason="Pillow is missing: pip install 'hexconv[images]'")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "gs"
    program.write_text(f"#!/bin/sh\necho started > '{tmp_path}/started'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    text = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="an unreadable image"):
        read_inputs(tmp_path / name, ONE_IMAGE, Pixels())
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("name", ["a.png", "a.npy", "a.npz"])
def test_an_input_that_is_a_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="Pillow is missing: pip install 'hexconv[images]'")
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="a pipe; expected a regular file"):
        read_inputs(tmp_path / name, ONE_IMAGE, Pixels())


def test_an_image_is_judged_by_its_noise_and_each_input_is_told_as_it_runs(tmp_path: Path) -> None:
    net = Network()
    net_output = net.real(*net.conv8(net.start(), (3, 3, 3, 3)))
    onnx.save(net.model(net_output), tmp_path / "net.onnx")
    (tmp_path / "inputs").mkdir()
    for number in range(2):
        np.save(tmp_path / "inputs" / f"{number}.npy", net.random.standard_normal(IMAGE).astype(np.float32))
    told: list[tuple[str, int, int]] = []
    asked = Asked(Wanted(1 << 20, "llvm"), workers=1, folder=tmp_path / "inputs", draws=1)
    with heard(lambda *said: told.append(said)):
        verdict = verify_network(tmp_path / "net.onnx", asked)
    assert verdict.many
    assert (verdict.many.inputs, verdict.many.top1_alike, verdict.many.ranked_alike) == (3, None, None)
    assert verdict.many.largest_steps <= 1
    assert verdict.many.psnr_db is None or verdict.many.psnr_db > 40
    [line] = [line for line in network_verdict_lines(verdict) if "3 inputs" in line]
    assert ("PSNR" in line) == (verdict.many.psnr_db is not None)
    inputs = [said for said in told if said[0].startswith("running input")]
    assert [doing for doing, *_ in inputs] == [f"running input {number} of 3" for number in (1, 2, 3)]
    _, so_far, of = zip(*inputs, strict=True)
    assert list(np.diff(so_far)) == [1, 1]
    assert so_far[-1] < of[-1]
    assert set(of) == {of[0]}


@DEEP
def test_the_bytes_that_best_tells_are_those_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the loops of chains move, and the tensors and constants of operators, but for tensors that stay in VTCM."""
    held, stayed = 0, 0
    for index in range(8):
        drawn = draw_program(SEED, index)
        path = tmp_path / f"{index}.onnx"
        onnx.save(drawn.model, path)
        assert exit_code(["best", str(path), "--vtcm", "1MiB", "--target", "llvm", "--json"]) == 0
        total = json.loads(capsys.readouterr().out)["total"]
        wanted = Wanted(1 << 20, "llvm")
        program = plan(import_model(path), wanted.question).open_program
        if program.others:
            continue
        with scratch() as folder, cores(1) as executor:
            write_compiled(path, compiled_network(path, program, wanted, 1), drawn.feed, folder, wanted)
            ran = Running(folder, program, executor, 60.0)(drawn.feed, {}, keeps=True)
        assert not isinstance(ran, str)
        assert ran.written
        stay = {each.tensor for each in program.residents}
        stored = {port.operand.buffer: drawn.feed[port.name].nbytes for port in program.inputs}
        chains, operators = 0, 0
        for number, step in enumerate(program.steps, 1):
            result = step.result.buffer
            stored[result] = 0 if result in stay else ran.written[number].nbytes
            if isinstance(step, Call):
                ends = {"input": step.sources[0].buffer, "output": result}
                moved = work_usage(step.case, count(lower_case(step.case))).traffic
                chains += sum(each.bytes for each in moved if ends.get(each.name) not in stay)
            else:
                read = [stored.get(source.buffer, 0) for source in step.sources]
                constants = [
                    program.constants[each.buffer].nbytes for each in step.sources if each.buffer not in stored
                ]
                own = sum(program.moved_bytes(step)) - sum(moved_bytes(step))
                operators += sum((*read, *constants)) + stored[result] + own
        assert (total["chains_after_bytes"], total["operators_after_bytes"]) == (chains, operators), index
        assert total["after_bytes"] == chains + operators
        held += 1
        stayed += len(stay)
    assert held >= 4
    assert stayed


def test_inputs_that_do_not_fit_are_told_in_a_line(verify: Verify, tmp_path: Path) -> None:
    net, output = residual()
    np.savez(tmp_path / "image.npz", image=np.zeros((1, 3, 8, 8), np.float32))
    said = verify(net.model(output), "--input", str(tmp_path / "image.npz"))
    assert (said["code"], said["error"].count("\n")) == (2, 1)
    assert "[1, 3, 20, 20]" in said["error"]
    assert verify(net.model(output), "--target", "llvm", "--isa", "v68")["code"] == 2


def test_onnx_runtime_is_asked_for_by_its_extra(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    net, output = residual()
    said = verify(net.model(output))
    assert said["code"] == 2
    assert said["error"].count("\n") == 1
    assert "pip install 'hexconv[verify]'" in said["error"]


RAN = Comparison("run", 100)
ANSWERS: tuple[Answer, ...] = ("not compared", "holds")


@pytest.mark.parametrize(
    ("run", "rule", "rounded", "differing", "answer"),
    [
        (RAN, "definition", 0, 0, "holds"),
        (RAN, "definition", 100, 0, "holds"),
        (RAN, "ONNX Runtime", 0, 1, "differs"),
        (RAN, "table", 0, 1, "differs"),
        (Comparison("run", 100, differing=1), "definition", 0, 0, "differs"),
        (None, "definition", 0, 0, "not compared"),
        (None, "sums", 0, 1, "differs"),
    ],
)
def test_a_chain_holds_that_was_run_and_where_roundings_alone_differ(
    run: Comparison | None, rule: Rule, rounded: int, differing: int, answer: Answer
) -> None:
    conv = ConvVerdict("conv", "q", (Comparison(rule, 100, rounded, differing),))
    chain = ChainVerdict("chain", (conv,), run)
    assert (chain.answer, NetworkVerdict("net", "llvm", (chain,), ()).answer) == (answer, answer)


def test_one_chain_that_was_not_run_keeps_no_network_from_holding() -> None:
    ran, other = ChainVerdict("a", (), RAN), ChainVerdict("b", reason="nothing fits")
    verdict = NetworkVerdict("net", "llvm", (ran, other), ())
    assert (verdict.answer, verdict.answers["chains"]) == ("holds", {"holds": 1, "differs": 0, "not compared": 1})


def test_operators_alone_keep_no_network_holding_of_which_no_chain_and_no_output_was_compared() -> None:
    steps = (StepVerdict(1, "convert", "a", run=RAN), StepVerdict(2, "chain", "b", reason="nothing fits"))
    chains = (ChainVerdict("b", reason="nothing fits"),)
    none, some = (OutputVerdict("y", answer, 0, 0, 0.0, 0.0, 0.0) for answer in ANSWERS)
    assert NetworkVerdict("net", "llvm", chains, (none,), steps=steps).answer == "not compared"
    assert NetworkVerdict("net", "llvm", chains, (none, some), steps=steps).answer == "holds"


def test_what_a_table_adds_is_counted_beside_rounding() -> None:
    one = Comparison("ONNX Runtime", 100, rounded=2, by_table=30)
    verdict = NetworkVerdict("net", "llvm", (ChainVerdict("a", (ConvVerdict("a", "q", (one, one)),), RAN),), ())
    assert "0 (4 + 60)" in network_verdict_table(verdict).columns[6]._cells
    assert next(network_verdict_lines(verdict)) == (
        "of 200 elements of convs, 4 differ from ONNX Runtime's by float32's rounding alone, as a bound proves for "
        "each; 60 by a table of 256 codes, within what it may add; 0 differ by more"
    )


def test_why_the_program_was_not_run_is_said_once() -> None:
    chain, step = ChainVerdict("a", reason="it fails"), StepVerdict(1, "add", "b", reason="it fails")
    output = OutputVerdict("y", "not compared", 0, 0, 0.0, 0.0, 0.0, reason="the program was not run")
    verdict = NetworkVerdict("net", "llvm", (chain,), (output,), steps=(step,), reason="it fails")
    assert list(network_verdict_lines(verdict)) == [
        "the program was not run, so no chain and no step of it is compared: it fails",
        "output y: not compared: the program was not run",
        "net on llvm: not compared (chains: 1 not compared; convs: none; operators: 1 not compared; "
        "outputs: 1 not compared)",
    ]


def test_what_differs_beyond_rounding_is_shown_before_a_larger_rounding() -> None:
    found, wanted = np.array([[1, 9, 3]]), np.array([[1, 5, 2]])
    one = Comparison.of("definition", found, wanted, np.array([[False, True, False]]))
    assert (one.rounded, one.differing, one.largest, one.at) == (1, 1, 1.0, (0, 2))
    assert Comparison.of("run", np.array([np.nan, 1]), np.array([np.nan, np.inf])).differing == 1
