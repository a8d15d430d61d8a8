"""`hexconv build MODEL.onnx`: whole networks in C, on both targets, byte for byte what numpy gives."""

import ctypes
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hexconv
from hexconv.build.built_chain import c_files
from hexconv.build.called_library import aligned_bytes, call, pointer
from hexconv.build.library import ARCHIVE
from hexconv.cli.app import exit_code
from hexconv.errors import InputError, Unsupported
from hexconv.network import BuiltNetwork, Wanted, build_network
from hexconv.network.arena import arena_of, lives_of
from hexconv.network.built_network import built_facts, read_network
from hexconv.network.called_network import network_object, ready, simulated_network
from hexconv.network.compiled import Compiled
from hexconv.network.program import CARRIED, COMPUTED
from hexconv.network.texts import MANIFEST, SOURCES
from hexconv.run.copy_engine import Copies
from hexconv.run.simulator.runner import Simulator
from hexconv.run.simulator.toolchain import zig
from hexconv.spec.choices import Engine, Target
from hexconv.verify import Asked, verify_network
from tests.build.test_build import (
    COPY_START,
    COPY_WAIT,
    GIVES,
    HALF_PAIR,
    MISALIGNED,
    NO_SCRATCH,
    NO_VTCM,
    NOT_READY,
    NULL_POINTER,
    OK,
    SCRATCH,
    VTCM,
    WRONG_WEIGHTS,
    without,
)
from tests.deep import DEEP
from tests.model.builder import Builder
from tests.model.quantised import Quantised
from tests.network.models import OPERATORS, all_operators, saved
from tests.verify.networks import Network, residual

ISA, MIB = "v67", 1 << 20
NO_OPERATOR, OPERATOR_FAILED = 9, 10
"""Of `enum hexconv_error`."""
ADD, MULTIPLY = 2, 3
"""Places in `struct hexconv_operators`."""
ZIG = f"{sys.executable} -m ziglang cc"
FOR_HEXAGON = f"{ZIG} -target hexagon-linux-musl -mcpu=hexagon{ISA} -static"


SHIPPED = Path(str(resources.files("hexconv.example") / "residual.onnx"))
"""The network that the package brings."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of five convs on an image of 20x20."""
    net, output = residual(projected=True)
    return saved(net, [output], tmp_path_factory.mktemp("small") / "small.onnx")


@pytest.fixture(scope="module")
def on_host(small: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BuiltNetwork]:
    """It, built for this machine."""
    folder = tmp_path_factory.mktemp("host")
    built = build_network(small, folder, Wanted(MIB, "llvm"))
    assert built.residents, "two contexts of one library, and less VTCM, are to be tried where tensors stay in it"
    return folder, built


def made(folder: Path, compiler: str) -> str:
    """`make run` as a user would; what it prints."""
    told = {**os.environ, "CC": compiler}
    command = ["make", "-C", str(folder), "-s", "run", f"CC={compiler}", "CFLAGS=-O1 -std=c11 -Wall -Wextra -Werror"]
    done = subprocess.run(command, capture_output=True, text=True, env=told, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tensor_of(folder: Path, built: BuiltNetwork, way: str) -> np.ndarray:
    """The first tensor of the example that goes in, or comes out."""
    port = next(port for port in built.ports if port.way == way)
    return np.fromfile(folder / f"network.{port.name}.bin", port.dtype).reshape(port.shape)


def test_a_network_runs_on_this_machine_from_c_and_from_numpy(on_host: tuple[Path, BuiltNetwork]) -> None:
    folder, built = on_host
    assert made(folder, ZIG) == f"small: 0 of 12 elements of {built.ports[1].name} differ\n"
    assert [step.operator for step in built.steps].count("chain") == len(built.chains) == 4
    network = hexconv.load(folder)["small"]
    [result] = network(tensor_of(folder, built, "input"))
    assert np.array_equal(result, tensor_of(folder, built, "output"))
    with pytest.raises(InputError, match="float32 of"):
        network(np.zeros((1, 3, 20, 20), np.uint8))
    with pytest.raises(InputError, match="1: image"):
        network()


@DEEP
@pytest.mark.simulator
def test_the_shipped_network_runs_from_c_on_the_simulator(tmp_path: Path) -> None:
    build_network(SHIPPED, tmp_path, Wanted(MIB, "hexagon", ISA))
    assert made(tmp_path, FOR_HEXAGON) == "residual: 0 of 131072 elements of output_result differ\n"


@pytest.mark.simulator
def test_a_network_does_not_depend_on_when_copies_are_performed(small: Path, tmp_path: Path) -> None:
    built = build_network(small, tmp_path, Wanted(MIB, "hexagon", ISA, objective="latency"))
    assert built.residents
    kernel = network_object(tmp_path, built)
    image, wanted = (tensor_of(tmp_path, built, way) for way in ("input", "output"))
    for copies in (Copies("late", 0), Copies("random", 1)):
        run = simulated_network(tmp_path, built, kernel, [image], Simulator(copies=copies, slots=False))
        assert np.array_equal(run.outputs[0], wanted)
        assert run.copies
        assert run.copies.pieces > 0


@pytest.mark.simulator
@pytest.mark.parametrize(("engine", "threads"), [("exact", 2), pytest.param("fast", 1, marks=DEEP)])
def test_a_network_on_the_engine_is_numpys(tmp_path: Path, engine: Engine, threads: int) -> None:
    """Chains after one another, whose copies are performed as late as may be."""
    net = Network()
    stem = net.conv8(net.start(), (64, 3, 1, 1), relu=False)
    last = net.added(stem, net.conv8(stem, (64, 64, 3, 3), relu=False))
    path = saved(net, [net.classified(last, 64)], tmp_path / "two.onnx")
    asked = Wanted(MIB, "hexagon", ISA, objective="latency", threads=threads, kernel="hmx", engine=engine)
    built = build_network(path, tmp_path, asked)
    image, wanted = (tensor_of(tmp_path, built, way) for way in ("input", "output"))
    late = Simulator(copies=Copies("late", 0), slots=False)
    run = simulated_network(tmp_path, built, network_object(tmp_path, built), [image], late)
    assert len(built.chains) > 1
    assert np.array_equal(run.outputs[0], wanted)
    assert run.copies
    assert run.copies.pieces > 0
    assert run.engine


def test_operators_have_the_threads_that_no_chain_takes(tmp_path: Path) -> None:
    net, outputs = all_operators(False)
    path, asked = saved(net, outputs, tmp_path / "all.onnx"), Wanted(MIB, "hexagon", ISA, threads=4)
    compiled = Compiled.of(replace(read_network(path, asked), steps=(), residents=()), "all", "hexagon", ISA)
    assert not compiled.chains
    assert built_facts(path, asked, compiled).threads == 4
    assert built_facts(path, replace(asked, target="llvm"), compiled).threads == 1


@DEEP
@pytest.mark.simulator
def test_a_network_on_four_threads_gives_what_one_gives(small: Path, tmp_path: Path) -> None:
    """Chains whose outputs have fewer rows take fewer threads."""
    built = build_network(small, tmp_path, Wanted(MIB, "hexagon", ISA, objective="latency", threads=4))
    kernel = network_object(tmp_path, built)
    image, wanted = (tensor_of(tmp_path, built, way) for way in ("input", "output"))
    assert built.threads == kernel.threads == 4
    assert built.residents
    for seed in (1, 2, 3):
        run = simulated_network(tmp_path, built, kernel, [image], Simulator(copies=Copies("random", seed), slots=False))
        assert np.array_equal(run.outputs[0], wanted)
        assert run.threads is not None
        assert run.threads.switches > 0


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("target", "compiler", "reals"),
    [
        pytest.param("llvm", ZIG, True, id="reals-llvm"),
        pytest.param("hexagon", FOR_HEXAGON, False, id="codes-hexagon"),
        pytest.param("llvm", ZIG, False, id="codes-llvm", marks=DEEP),
        pytest.param("hexagon", FOR_HEXAGON, True, id="reals-hexagon", marks=DEEP),
    ],
)
def test_every_operator_in_c_gives_numpys_bytes(tmp_path: Path, target: Target, compiler: str, reals: bool) -> None:
    """On both machines: sums of floats are added up in one order everywhere."""
    net, outputs = all_operators(reals)
    path = saved(net, outputs, tmp_path / "all.onnx")
    build_network(path, tmp_path / target, Wanted(MIB, target, ISA))
    said = made(tmp_path / target, compiler).splitlines()
    assert len(said) == len(OPERATORS) + 1
    assert all(line.startswith("all: 0 of ") for line in said)


def test_floats_are_as_near_as_rounding_leads(tmp_path: Path) -> None:
    net = Builder("floats", (1, 3, 40, 24))
    x = net.node("Relu", [net.conv("image", (16, 3, 3, 3))])
    x = net.node("Add", [x, net.conv(x, (16, 16, 3, 3))])
    path = saved(net, [net.conv(x, (4, 16, 3, 3))], tmp_path / "floats.onnx")
    build_network(path, tmp_path / "out", Wanted(MIB, "llvm"))
    assert made(tmp_path / "out", ZIG).startswith("floats: 0 of ")


def test_tensors_between_steps_share_one_arena() -> None:
    """No step writes what it reads, or what is still to be read."""
    program = replace(read_network(SHIPPED, Wanted(MIB, "llvm")), residents=(), vtcm_bytes=0)
    lives = lives_of(program)
    arena = arena_of(lives)
    assert arena.bytes == arena.least_bytes < sum(life.bytes for life in lives.values())
    for step in program.steps:
        spans = [
            (arena.offsets_bytes[operand.buffer], arena.offsets_bytes[operand.buffer] + operand.bytes)
            for operand in {one.buffer: one for one in (step.result, *step.sources)}.values()
            if operand.buffer in arena.offsets_bytes
        ]
        for (start, end), (after, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
            assert end <= after, (start, end, after)


def test_what_lies_alike_is_not_copied(tmp_path: Path) -> None:
    """An image of one channel goes to the chain as it is; pixels of one channel come out as they are."""
    net = Network()
    net.inputs = [helper.make_tensor_value_info("image", TensorProto.UINT8, (1, 1, 16, 16))]
    codes = net.conv8(("image", np.float32(0.02), 128), (4, 1, 3, 3))
    image = net.node("DepthToSpace", [codes[0]], blocksize=2)
    program = read_network(saved(net, [image], tmp_path / "net.onnx"), Wanted(MIB, "llvm"))
    assert [type(step).__name__ for step in program.steps] == ["Call", "Operation"]
    assert program.steps[0].sources[0].buffer == program.inputs[0].operand.buffer
    assert program.steps[-1].result.buffer == program.outputs[0].operand.buffer
    assert lives_of(replace(program, residents=(), vtcm_bytes=0)).keys() == {codes[0]}


def test_two_outputs_of_one_tensor_are_two_of_the_callers_buffers(tmp_path: Path) -> None:
    """One is written by the step that makes the tensor, the other is a copy."""
    net = Network()
    net.inputs = [helper.make_tensor_value_info("image", TensorProto.UINT8, (1, 1, 16, 16))]
    codes = net.conv8(("image", np.float32(0.02), 128), (4, 1, 3, 3))
    image = net.node("DepthToSpace", [codes[0]], blocksize=2)
    program = read_network(
        saved(net, [image, net.node("Identity", [image])], tmp_path / "net.onnx"), Wanted(MIB, "llvm")
    )
    one, other = (port.operand.buffer for port in program.outputs)
    assert one != other
    assert [step.result.buffer for step in program.steps[-2:]] == [one, other]
    assert program.steps[-1].sources[0].buffer == one


def test_an_output_that_is_listed_twice_is_written_twice(tmp_path: Path) -> None:
    """Once by the step that makes the tensor, or by a conversion of a layout; each time to memory of its own."""
    net = Network()
    net.inputs = [helper.make_tensor_value_info("image", TensorProto.UINT8, (1, 1, 16, 16))]
    codes = net.conv8(("image", np.float32(0.02), 128), (4, 1, 3, 3))
    image = net.node("DepthToSpace", [codes[0]], blocksize=2)
    path = saved(net, [image, codes[0], image, codes[0], image], tmp_path / "net.onnx")
    program = read_network(path, Wanted(MIB, "llvm"))
    assert len({port.operand.buffer for port in program.outputs}) == 5
    assert len({step.result.buffer for step in program.steps}) == len(program.steps) == 6
    verdict = verify_network(path, Asked(Wanted(MIB, "llvm"), workers=1))
    assert [(output.answer, output.differing) for output in verdict.outputs] == [("holds", 0)] * 5


def test_an_output_that_is_a_constant_is_written(tmp_path: Path) -> None:
    """Stored, or computed from constants alone; one that C doesn't get is refused in a line."""
    net = Network()
    codes = net.conv8(net.start(), (4, 3, 3, 3))
    stored = net.weights(2, 3, 4, 5)
    computed = net.node("Neg", [net.constant(np.arange(6).reshape(2, 3), "int8")])
    names = [net.real(*codes), stored, computed, net.constant(7, "float32"), computed]
    path = saved(net, names, tmp_path / "net.onnx")
    verdict = verify_network(path, Asked(Wanted(MIB, "llvm"), workers=1))
    assert [(output.name, output.answer, output.differing) for output in verdict.outputs] == [
        (name, "holds", 0) for name in names
    ]
    for values, dtype, words in (([1, 2], "int64", "int64"), ([], "float32", "no elements")):
        path = saved(net, [names[0], net.constant(values, dtype)], tmp_path / "wide.onnx")
        with pytest.raises(
            Unsupported, match=f"is a constant of {words}, which C doesn't get; take it off the model's"
        ):
            read_network(path, Wanted(MIB, "llvm"))


def test_errors_of_c_have_numbers_of_their_own(on_host: tuple[Path, BuiltNetwork]) -> None:
    folder, built = on_host
    network = hexconv.load(folder)["small"]
    library, [weights, platform, operators] = network._library, network._kept
    memories = [aligned_bytes(port.bytes) for port in built.ports]
    source, target = (ctypes.c_void_p(memory.ctypes.data) for memory in memories)
    fresh, place = (ctypes.c_void_p * 64)(), weights.ctypes.data
    at, machine, given = ctypes.c_void_p(place), ctypes.byref(platform), ctypes.byref(operators)
    init, run = library.small_init, library.small_run
    assert init(None, at, machine, given) == NULL_POINTER
    assert init(fresh, ctypes.c_void_p(place + 4), machine, given) == MISALIGNED
    assert init(fresh, ctypes.c_void_p(place + 128), machine, given) == WRONG_WEIGHTS
    weights[0] ^= 1  # the network's own digest, behind which those of its chains are right
    assert init(fresh, at, machine, given) == WRONG_WEIGHTS
    weights[0] ^= 1
    assert run(fresh, source, target) == NOT_READY
    assert init(fresh, at, machine, None) == NO_OPERATOR
    assert init(fresh, at, machine, given) == OK
    assert run(fresh, source, None) == NULL_POINTER
    assert run(fresh, ctypes.c_void_p(memories[0].ctypes.data + 2), target) == MISALIGNED
    for arguments in ((fresh, None, machine, given), (fresh, at, None, given)):
        assert init(*arguments) == NULL_POINTER
    assert init(fresh, at, machine, given) == OK
    for arguments in ((None, source, target), (fresh, None, target), (fresh, source, None)):
        assert run(*arguments) == NULL_POINTER
    assert run(fresh, source, ctypes.c_void_p(memories[1].ctypes.data + 64)) == MISALIGNED
    operators.pointers[MULTIPLY] = None
    assert init(fresh, at, machine, given) == OK
    operators.pointers[ADD] = None
    assert init(fresh, at, machine, given) == NO_OPERATOR
    failing = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(lambda *_: 5)
    operators.pointers[ADD] = ctypes.cast(failing, ctypes.c_void_p).value
    assert init(fresh, at, machine, given) == OK
    assert run(fresh, source, target) == OPERATOR_FAILED


def test_a_platform_that_a_network_can_not_use_is_refused(on_host: tuple[Path, BuiltNetwork]) -> None:
    """Half of a pair of callbacks; VTCM or an arena that is not there, smaller, or not aligned."""
    network = hexconv.load(on_host[0])["small"]
    library, [weights, _, operators] = network._library, network._kept
    fresh, at, given = (ctypes.c_void_p * 64)(), pointer(weights), ctypes.byref(operators)
    nothing, crooked = GIVES(lambda *_: None), GIVES(lambda *_: weights.ctypes.data + 64)
    less = GIVES(lambda _, size: weights.ctypes.data if size < on_host[1].vtcm_bytes else None)
    for place, instead, error in (
        (VTCM, less, NO_VTCM),
        (COPY_START, None, HALF_PAIR),
        (COPY_WAIT, None, HALF_PAIR),
        (VTCM, None, NO_VTCM),
        (VTCM, nothing, NO_VTCM),
        (VTCM, crooked, MISALIGNED),
        (SCRATCH, None, NO_SCRATCH),
        (SCRATCH, nothing, NO_SCRATCH),
        (SCRATCH, crooked, MISALIGNED),
    ):
        assert library.small_init(fresh, at, ctypes.byref(without(library, place, instead=instead)), given) == error
        assert library.small_run(fresh, at, at) == NOT_READY
    assert library.small_init(fresh, at, ctypes.byref(without(library, COPY_START, COPY_WAIT)), given) == OK


def test_calls_at_the_same_time_need_no_more_than_a_context_each(on_host: tuple[Path, BuiltNetwork]) -> None:
    folder, built = on_host
    network = hexconv.load(folder)["small"]
    library, [weights, platform, operators] = network._library, network._kept
    size = len(network._context)
    contexts = [(ctypes.c_void_p * size)() for _ in range(4)]
    for context in contexts:
        call(library, "small_init", context, pointer(weights), ctypes.byref(platform), ctypes.byref(operators))
    random = np.random.default_rng(7)
    images = [random.standard_normal(built.ports[0].shape).astype(np.float32) for _ in contexts]
    with ThreadPoolExecutor(len(contexts)) as threads:
        several = list(threads.map(lambda own, image: replace(network, _context=own)(image), contexts, images))
    for image, [found] in zip(images, several, strict=True):
        assert np.array_equal(network(image)[0], found)


def test_what_there_is_no_operator_for_is_told_in_a_line(tmp_path: Path) -> None:
    net, output = residual()
    path = saved(net, [net.node("GlobalLpPool", [output])], tmp_path / "net.onnx")
    with pytest.raises(
        Unsupported, match=r"no operator computes GlobalLpPool \(1, such as .*\); there are operators for A"
    ):
        read_network(path, Wanted(MIB, "llvm"))


def test_two_libraries_and_two_contexts_of_one_share_a_process(
    on_host: tuple[Path, BuiltNetwork], tmp_path: Path
) -> None:
    """Both in one shared library, with one copy of the operators and the platform; calls of all contexts alternate."""
    net, output = residual(seed=5)
    path = saved(net, [output], tmp_path / "other.onnx")
    other = build_network(path, tmp_path / "other", Wanted(MIB, "llvm"))
    folders = {"small": on_host, "other": (tmp_path / "other", other)}
    objects = []
    for name, (folder, _) in folders.items():
        objects.append(str(tmp_path / f"{name}.o"))
        zig("cc", "-c", "-fPIC", "-fno-sanitize=all", f"-I{folder}", str(folder / "network.c"), "-o", objects[-1])
    common = [str(on_host[0] / file) for file in (*SOURCES, "hexconv_posix.c") if file != "network.c"]
    archives = [str(folder / ARCHIVE) for folder, _ in folders.values()]
    linked = ("-fno-sanitize=all", *objects, *common, *archives)
    zig("cc", "-shared", "-fPIC", "-O1", *linked, "-o", str(tmp_path / "both.so"))
    library = ctypes.CDLL(str(tmp_path / "both.so"))
    networks = [
        (ready(folder, json.loads((folder / MANIFEST).read_text()), library), folder, built)
        for name in ("small", "other", "small")
        for folder, built in [folders[name]]
    ]
    for network, folder, built in [*networks, *reversed(networks)]:
        [found] = network(tensor_of(folder, built, "input"))
        assert np.array_equal(found, tensor_of(folder, built, "output"))


def test_what_hexconv_does_not_compute_is_left_to_functions_that_are_written_down(tmp_path: Path) -> None:
    net, output = residual()
    path = saved(net, [net.node("Add", [net.node("Erf", [output]), output])], tmp_path / "net.onnx")
    with pytest.raises(Unsupported, match="--stubs leaves them to functions that you write"):
        build_network(path, tmp_path / "out", Wanted(MIB, "llvm"))
    built = build_network(path, tmp_path / "out", Wanted(MIB, "llvm", stubs=True))
    assert [(other.op, other.number, other.result) for other in built.others] == [("Erf", 0, "float32 1x1x1x12")]
    with pytest.raises(AssertionError, match=f"net: error {OPERATOR_FAILED} of enum"):
        made(tmp_path / "out", ZIG)
    file = tmp_path / "out" / "network_others.c"
    text = file.read_text()
    assert "int net_Erf(" in text
    copied = "((float *)result->data)[i] = ((const float *)sources->data)[i];"
    filled = f"for (int i = 0; i < result->c; i++) {copied}\n    return 0;"
    file.write_text(text.replace("return 1; /* not written yet */", filled))
    assert made(tmp_path / "out", ZIG).startswith("net: ran;")


def test_c_has_a_name_for_every_dtype_that_a_tensor_may_have() -> None:
    header = c_files("hexconv.network", "operators")["hexconv_operators.h"].decode()
    names = re.findall(
        r"HEXCONV_\w+", header[header.index("enum hexconv_dtype {") : header.index("enum hexconv_layout {")]
    )
    assert {f"HEXCONV_{dtype.upper()}" for dtype in (*COMPUTED, *CARRIED)} == set(names)


def test_the_command_line(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "lib")
    assert exit_code(["build", str(small), "-o", out, "--target", "llvm", "--vtcm", "1MiB", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["name"] == "small"
    assert said["operators"] == ["add", "convert", "global_average_pool", "matmul"]
    assert said["differences"] == []
    for wrong in (["--weights", "w.npz"], ["--random"], [str(small)], ["--isa", "v1"]):
        assert exit_code(["build", str(small), "-o", out, *wrong]) == 2
    assert exit_code(["build", "schedules/3x3.toml", "-o", out, "--vtcm", "1MiB"]) == 2
    assert capsys.readouterr().err.count("\n") == 5


def test_a_build_says_how_many_notes_its_import_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = Quantised("coarse", (1, 8, 5, 5), "uint8")
    codes = net.quantize(net.qdq("image", (4, 8, 1, 1), 128, "float32"), 0.5, 0)
    onnx.save(net.model(codes), tmp_path / "coarse.onnx")
    assert exit_code(["build", str(tmp_path / "coarse.onnx"), "-o", str(tmp_path / "lib"), "--target", "llvm"]) == 0
    where = tmp_path / "lib" / "network.json"
    assert f"coarse.onnx: 1 note on convs that differ from the model: {where}\n" in capsys.readouterr().err
    [note] = json.loads(where.read_text())["differences"]
    assert "biases that are floats" in note


def test_a_model_of_open_size_is_refused(tmp_path: Path) -> None:
    net = Builder("open", (1, 3, "rows", 24))
    path = tmp_path / "open.onnx"
    onnx.save(net.model(net.conv("image", (16, 3, 3, 3))), path)
    with pytest.raises(InputError, match="image has open sizes, 1,3,rows,24; say them: --shape"):
        read_network(path, Wanted(MIB, "llvm"))


def test_a_model_of_no_images_is_refused(tmp_path: Path) -> None:
    net = Builder("none", (0, 3, 20, 24))
    path = tmp_path / "none.onnx"
    onnx.save(net.model(net.conv("image", (16, 3, 3, 3))), path)
    words = "image has a size of 0, 0,3,20,24; say sizes of 1 or more: --shape"
    with pytest.raises(InputError, match=words):
        read_network(path, Wanted(MIB, "llvm"))
    with pytest.raises(InputError, match=words):
        verify_network(path, Asked(Wanted(MIB, "llvm"), workers=1))
    assert len(read_network(path, Wanted(MIB, "llvm", shapes={"image": (1, 3, 20, 24)})).calls) == 1


def test_a_tensor_of_no_elements_is_refused(tmp_path: Path) -> None:
    net = Network()
    net.conv8(net.start(), (4, 3, 3, 3))
    ends = [net.constant([at], "int64") for at in (5, 5, 2)]
    path = saved(net, [net.node("Slice", ["image", *ends], "nothing")], tmp_path / "none.onnx")
    with pytest.raises(
        Unsupported, match=r"nothing_out \[1, 3, 0, 20\] has a size of 0: Slice nothing makes it of image"
    ):
        read_network(path, Wanted(MIB, "llvm"))
