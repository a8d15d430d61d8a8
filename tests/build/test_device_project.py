"""FastRPC projects: both sides compile without a warning and agree over a pipe, whatever becomes of VTCM."""

import io
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import hexconv
from hexconv.build import build
from hexconv.build.device_project import MOST_PORTS, DevicePort, DeviceProgram, project_files
from hexconv.cli.app import exit_code
from hexconv.errors import Unsupported
from hexconv.run.tensors import random_tensors
from hexconv.search.calibration import COPY_LINE, PLANS, RUN_LINE, read_lines
from hexconv.spec import Case, Plan
from tests.build.test_build import INTEGERS, ISA, OF_FLOATS, ZIG
from tests.deep import DEEP
from tests.network.models import OneOperator, add, all_operators, saved

THREADS = Plan(kernel="hvx", order="h_outer", halo="roll", buffering="double", storage="vtcm", threads=3)
SMALL = replace(OF_FLOATS, chain=replace(OF_FLOATS.chain, input=(1, 8, 8, 8), conv=OF_FLOATS.chain.conv[:1]))
CHAINS = [Case("planned", INTEGERS, THREADS), SMALL]
RUNTIME = {"memset", "memcpy", "memmove", "memalign", "calloc", "free"}
"""What the DSP's side asks of the C library."""


def told(folder: Path, *options: str, **environment: str) -> tuple[int, str]:
    """The exit status of a project's host program, and what it printed."""
    [host] = (folder / "fastrpc" / "check").glob("*_host")
    [dsp] = (folder / "fastrpc" / "check").glob("*_dsp")
    set_to = {**os.environ, "STANDIN_DSP": f"qemu-hexagon {dsp}", **environment}
    command = [str(host), "--files", str(folder), *options]
    done = subprocess.run(command, env=set_to, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def compiled(folder: Path, *words: str) -> str:
    """What `make` prints that compiles both sides with stand-ins, every warning an error."""
    targets = [f"check/{name}" for name in _names(folder)]
    command = ["make", "-C", str(folder / "fastrpc"), "WARNINGS=-O2 -std=c11 -Wall -Wextra -Werror", *words, *targets]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _names(folder: Path) -> list[str]:
    [idl] = (folder / "fastrpc").glob("*.idl")
    return [f"{idl.stem}_host", f"{idl.stem}_dsp"]


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of two chains: three threads and one, VTCM and none, codes and floats."""
    folder = tmp_path_factory.mktemp("chains")
    build([(case, random_tensors(case.chain, 5)) for case in CHAINS], folder, "hexagon", ISA, "fastrpc")
    compiled(folder)
    return folder


@pytest.mark.simulator
def test_outputs_are_right_and_caches_lie_in_vtcm(chains: Path) -> None:
    status, said = told(chains, "--runs", "2", "--lines")
    assert status == 0, said
    for case in CHAINS:
        assert len(re.findall(rf"{case.name}: 0 of \d+ elements of output differ", said)) == 2
        assert len(re.findall(rf"{case.name}: run \d: [1-9]\d* cycles, [1-9]\d* us by the DSP's counters", said)) == 2
    assert "VTCM" not in said
    assert "power" not in said
    lines = [line for line in said.splitlines() if line.startswith("hexconv-")]
    assert [bool(RUN_LINE.fullmatch(line)) for line in lines] == [True] * 4 + [False] * 2
    assert [bool(COPY_LINE.fullmatch(line)) for line in lines] == [False] * 4 + [True] * 2


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("environment", "status", "said"),
    [
        ({"STANDIN_VTCM_BYTES": "16384"}, 3, "this device has 16384: build again with --vtcm 16KiB"),
        ({"STANDIN_VTCM_HELD": "1", "STANDIN_POWER": "2"}, 3, "VTCM: refused"),
        ({"STANDIN_VTCM_TAKEN": "2"}, 3, "VTCM: taken away"),
        ({"STANDIN_VTCM_ASKED": "1", "STANDIN_POWER": "2"}, 0, "power: refused clocks: "),
    ],
    ids=str,
)
def test_outputs_are_right_where_the_device_gives_less_and_the_host_says_so(
    chains: Path, environment: dict[str, str], status: int, said: str
) -> None:
    ended, printed = told(chains, "--runs", "3", **environment)
    assert ended == status, printed
    assert said in printed
    assert printed.count(": 0 of ") == 3 * len(CHAINS)


@pytest.mark.simulator
def test_what_can_not_run_or_is_wrong_ends_with_a_line(chains: Path, tmp_path: Path) -> None:
    assert told(chains, STANDIN_EXIT="1") == (2, "a session on cdsp, with code for v67\n" + GONE)
    assert told(chains, "--files", "nowhere")[0] == 2
    assert told(chains, "--runs", "none")[0] == 2
    other = tmp_path / "other"
    shutil.copytree(chains, other)
    [name] = [file.name for file in other.glob("planned.weights.bin")]
    for content, status, said in (
        (b"x" * (other / name).stat().st_size, 2, "the weights are another build's"),
        (b"short", 2, f"{name}: not there, or not"),
    ):
        (other / name).write_bytes(content)
        ended, printed = told(other)
        assert (ended, said in printed) == (status, True), printed
    shutil.copy(chains / name, other / name)
    wanted = other / "planned.output.bin"
    wanted.write_bytes(bytes([wanted.read_bytes()[0] ^ 1]) + wanted.read_bytes()[1:])
    ended, printed = told(other)
    assert ended == 1
    assert "planned: 1 of " in printed


GONE = "planned: error 0x68: an error of FastRPC (AEEStdErr.h): the first failures in README.md\n"


@pytest.mark.parametrize("name", ["add", *(pytest.param(name, marks=DEEP) for name in ("chains", "all"))])
def test_make_device_compiles_both_sides_and_asks_for_documented_names_alone(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With zig for the SDK's compiler: the DSP's side is a shared library, from v68 on with instructions of DMA."""
    folder, isa = tmp_path / "built", {"chains": ISA, "add": "v68", "all": "v75"}[name]
    if name == "chains":
        shutil.copytree(request.getfixturevalue("chains"), folder)
    else:
        build_model(name, tmp_path, "-o", str(folder), "--isa", isa)
    qaic = tmp_path / "qaic"
    qaic.write_text("#!/bin/sh\ncp standin/*_device* device/\n")
    qaic.chmod(0o700)
    words = {
        "DEVICE_QAIC": str(qaic),
        "HEXAGON_SDK_ROOT": "/sdk",
        "DSP_CC": ZIG,
        "DSP_FLAGS": f"-target hexagon-linux-musl -mcpu=hexagon{isa} -fPIC -Wextra -Werror",
        "SDK_INCLUDES": "-Istandin",
        "DEVICE_CC": f"{shutil.which('cc') or ZIG} -Wextra -Werror",
        "HOST_INCLUDES": "-Istandin",
        "HOST_LIBRARIES": "standin/standin_rpc.c",
    }
    stated = [f"{name}={value}" for name, value in words.items()]
    done = subprocess.run(
        ["make", "-C", str(folder / "fastrpc"), "device", *stated], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [made] = (folder / "fastrpc" / "device").glob("*.so")
    library = ELFFile(io.BytesIO(made.read_bytes()))
    symbols, dynamic = (library.get_section_by_name(name) for name in (".dynsym", ".dynamic"))
    assert isinstance(symbols, SymbolTableSection)
    assert isinstance(dynamic, DynamicSection)
    table = symbols.iter_symbols()
    asked = {each.name for each in table if each["st_shndx"] == "SHN_UNDEF"}
    documented = "".join(header.read_text() for header in (folder / "fastrpc" / "standin").glob("*.h"))
    assert {name for name in asked - {""} if f"{name}(" not in documented} <= RUNTIME
    assert "DT_TEXTREL" not in {tag.entry.d_tag for tag in dynamic.iter_tags()}


WORD = re.compile(r"\s+|//[^\n]*|#include \"remote.idl\"|(?P<word>\w+|[:;(){}<>,])", re.ASCII)
PARAMETER = r"(?:in|rout) (?:long|sequence < octet >) \w+"
METHOD = rf"long \w+ \( {PARAMETER}(?: , {PARAMETER})* \) ;"
INTERFACE = re.compile(rf"interface (\w+) : remote_handle64 {{ (?:{METHOD} )+}} ;")


def is_interface(text: str) -> bool:
    """Whether an IDL file is one interface, in the part of QAIC's grammar that projects use."""
    words, at = [], 0
    while at < len(text):
        found = WORD.match(text, at)
        if found is None:
            return False
        words += [found["word"]] if found["word"] else []
        at = found.end()
    return INTERFACE.fullmatch(" ".join(words)) is not None


def test_the_interface_is_idl(chains: Path) -> None:
    [idl] = (chains / "fastrpc").glob("*.idl")
    assert is_interface(idl.read_text())
    assert not is_interface(idl.read_text().replace("in long", "long", 1))
    assert not is_interface(idl.read_text().replace(";", "", 1))


@pytest.mark.simulator
@pytest.mark.skipif(shutil.which("qaic") is None, reason="QAIC is not installed")
def test_qaic_takes_the_interface_and_its_files_give_the_same(chains: Path, tmp_path: Path) -> None:
    folder = tmp_path / "with_qaic"
    shutil.copytree(chains, folder, ignore=shutil.ignore_patterns("check"))
    assert "qaic -mdll" in compiled(folder, "QAIC=qaic")
    status, said = told(folder, "--runs", "1")
    assert status == 0, said
    assert said.count(": 0 of ") == len(CHAINS)


@pytest.mark.skipif(None in map(shutil.which, ("cmake", "cc")), reason="CMake or a C compiler is not installed")
@DEEP
@pytest.mark.simulator
def test_cmake_makes_both_sides(chains: Path, tmp_path: Path) -> None:
    compiler = tmp_path / "hexagon-cc"
    compiler.write_text(f'#!/bin/sh\nexec {ZIG} -target hexagon-linux-musl -mcpu=hexagon{ISA} -static "$@"\n')
    compiler.chmod(0o700)
    for side, words in (
        ("host", [f"-DCMAKE_C_COMPILER={shutil.which('cc')}"]),
        ("dsp", [f"-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_SYSTEM_NAME=Generic", STATIC]),
    ):
        made = tmp_path / side
        flags = ["-DSTANDINS=ON", f"-DSIDE={side}", "-DCMAKE_C_FLAGS=-Werror", *words]
        configure = ["cmake", "-S", str(chains / "fastrpc"), "-B", str(made), *flags]
        for command in (configure, ["cmake", "--build", str(made)]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
    environment = {**os.environ, "STANDIN_DSP": f"qemu-hexagon {tmp_path}/dsp/chains_device_skel"}
    command = [str(tmp_path / "host" / "chains_device_host"), "--files", str(chains), "--runs", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


STATIC = "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"


@pytest.mark.simulator
@DEEP
def test_the_programs_of_a_first_run_print_lines_that_are_read(tmp_path: Path) -> None:
    """By packets of QEMU in place of cycles, and a made-up clock: lines of a simulator are refused otherwise."""
    assert exit_code(["calibrate", "--programs", str(tmp_path / "o"), "--isa", ISA]) == 0
    compiled(tmp_path / "o")
    status, said = told(tmp_path / "o", "--lines", "--runs", "1")
    assert status == 0, said
    assert said.count(": 0 of 262144 elements of output differ") == len(PLANS)
    timed = re.sub(r"cycles=(\d+) us=\d+", lambda found: f"cycles={found[1]} us={int(found[1]) // 1000}", said)
    lines = read_lines(timed, "lines")
    assert set(lines.runs) == set(PLANS)


def build_model(name: str, place: Path, *options: str) -> int:
    """Build a project of a model with one addition, or with a conv and every operator; returns the exit status."""
    net = OneOperator()
    model = all_operators(reals=False) if name == "all" else (net, [add(net)])
    return exit_code(["build", str(saved(*model, place / "small.onnx")), "--project", "fastrpc", *options])


def test_a_project_is_for_hexagon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build_model("add", tmp_path, "-o", str(tmp_path / "o"), "--target", "llvm") == 2
    assert "--project fastrpc with --target llvm" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


@pytest.mark.simulator
@DEEP
def test_a_network_runs_over_the_pipe(tmp_path: Path) -> None:
    residual = Path(hexconv.__file__).parent / "example" / "residual.onnx"
    command = ["build", str(residual), "--vtcm", "512KiB", "--threads", "2", "-o", str(tmp_path / "o")]
    assert exit_code([*command, "--isa", ISA, "--project", "fastrpc"]) == 0
    compiled(tmp_path / "o")
    for environment, status in (({}, 0), ({"STANDIN_VTCM_BYTES": "65536"}, 3), ({"STANDIN_VTCM_TAKEN": "1"}, 3)):
        ended, said = told(tmp_path / "o", "--runs", "2", **environment)
        assert ended == status, said
        assert said.count("residual: 0 of 131072 elements of output_result differ") == 2


def test_more_tensors_than_a_call_takes_are_refused() -> None:
    ports = tuple(DevicePort(f"input_{number}", "", "uint8", True, 1, 1) for number in range(MOST_PORTS + 1))
    program = DeviceProgram("wide", "network.h", "network.weights.bin", 1, 0, 1, ports)
    assert project_files("wide", [replace(program, ports=ports[1:])], ISA, engine=False)
    with pytest.raises(Unsupported, match="wide has 255 inputs"):
        project_files("wide", [program], ISA, engine=False)


def test_no_symbol_of_a_project_is_another_projects(chains: Path) -> None:
    """Two projects in one process: what the DSP's side defines begins with its name, or with hexconv."""
    [source] = (chains / "fastrpc").glob("*_dsp.c")
    defined = re.findall(r"^int (\w+)\(", source.read_text(), re.MULTILINE)
    assert set(defined) == {f"chains_device_{method}" for method in ("open", "close", "about", "load", "copies", "run")}
