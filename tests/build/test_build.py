"""Chains as C: what a built library computes, what it asks for, and what it refuses."""

import ctypes
import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import assume, given

import hexconv
from hexconv.analyze import vtcm_fit
from hexconv.build import Built, Loaded, build
from hexconv.build.called_library import _Platform, posix, simulated_chain
from hexconv.compute import reference
from hexconv.errors import InputError, Unsupported
from hexconv.run.copy_engine import Copies
from hexconv.run.measure import run_case
from hexconv.run.simulator.runner import Simulator
from hexconv.run.tensors import random_tensors
from hexconv.spec import Case, Chain, Conv2d, Plan, Requantize
from hexconv.spec.chain import EDGE_LAYOUTS, EdgeLayout
from hexconv.spec.choices import Target
from tests.deep import DEEP
from tests.draws import RUN
from tests.lowered import lower_case
from tests.strategies import cases

ISA = "v67"
ZIG = f"{sys.executable} -m ziglang cc"
BY = Requantize(multiplier=1 << 30, shift=-9)
CONV = Conv2d(out_channels=40, kernel=(3, 3), padding=1, bias=True, requantize=BY)  # pyright: ignore[reportArgumentType]
INTEGERS = Chain(input=(1, 19, 17, 36), dtype="uint8", zero_point=3, conv=(CONV, CONV))
DOUBLE = Plan(order="h_outer", halo="roll", buffering="double", storage="vtcm", kernel="plain")
CASES = {
    "fast": Case("fast", INTEGERS, Plan(kernel="hvx")),
    "double": Case("double", INTEGERS, DOUBLE),
    "planned": Case("planned", replace(INTEGERS, input=(1, 44, 33, 36)), replace(DOUBLE, kernel="hvx")),
}


FLOATS = Chain(input=(1, 30, 20, 16), conv=(Conv2d(out_channels=16, kernel=(3, 3)),) * 2)
OF_FLOATS = Case("floats", FLOATS, Plan(kernel="plain"))
C_LIBRARY = {"memset", "memcpy", "memmove"}
COMPILER_RUNTIME = {"__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes"}
"""What LLVM calls on Hexagon for a large memcpy; each of its compilers brings it."""


def built(folder: Path, *cases: Case, target: Target = "llvm") -> tuple[Built, ...]:
    return build([(case, random_tensors(case.chain, 5)) for case in cases], folder, target, ISA)


def writable_bytes(path: Path) -> int:
    """Of static memory that code of an object can write to; constants that a loader relocates are none."""
    sections = ELFFile(io.BytesIO(path.read_bytes())).iter_sections()
    kept = [section for section in sections if section["sh_flags"] & SH_FLAGS.SHF_WRITE]
    return sum(section["sh_size"] for section in kept if not section.name.startswith(".data.rel.ro"))


def symbols(path: Path) -> dict[str, bool]:
    """Global names of an object, and whether it defines them."""
    table = ELFFile(io.BytesIO(path.read_bytes())).get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    globals_ = (symbol for symbol in table.iter_symbols() if symbol["st_info"]["bind"] != "STB_LOCAL" and symbol.name)
    return {symbol.name: symbol["st_shndx"] != "SHN_UNDEF" for symbol in globals_}


@given(cases())
@RUN
def test_a_library_computes_what_numpy_does(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    assume(not case.settled.uses_vtcm or vtcm_fit(case.chain, case.settled).fits)
    folder = tmp_path_factory.mktemp("built")
    built(folder, case)
    tensors = random_tensors(case.chain, 5)
    [chain] = hexconv.load(folder).values()
    expected = reference(case.chain, *tensors.logical)
    given_, again = chain(tensors.image), chain(tensors.image)
    assert np.array_equal(given_, again, equal_nan=True)
    if case.chain.is_integer:
        assert np.array_equal(given_, expected)
    else:
        largest = np.max(np.abs(expected), initial=1.0)
        np.testing.assert_allclose(given_, expected, rtol=1e-2, atol=1e-2 * largest)


def test_a_library_has_the_activations_of_floats_and_their_slopes(tmp_path: Path) -> None:
    convs = tuple(
        replace(conv, bias=True, activation=name) for conv, name in zip(FLOATS.conv, ("gelu", "prelu"), strict=True)
    )
    case = Case("curves", replace(FLOATS, conv=convs), Plan(kernel="plain"))
    built(tmp_path, case)
    tensors = random_tensors(case.chain, 5)
    [chain] = hexconv.load(tmp_path).values()
    expected = reference(case.chain, *tensors.logical)
    np.testing.assert_allclose(chain(tensors.image), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("layout", EDGE_LAYOUTS)
def test_a_library_reads_and_writes_every_layout(tmp_path: Path, layout: EdgeLayout) -> None:
    case = CASES["double"]
    case = replace(case, chain=replace(case.chain, input_layout=layout, output_layout=layout))
    built(tmp_path, case)
    tensors = random_tensors(case.chain, 5)
    [chain] = hexconv.load(tmp_path).values()
    assert np.array_equal(chain(tensors.image), reference(case.chain, *tensors.logical))


@pytest.mark.parametrize("target", ["llvm", "hexagon"])
def test_an_object_asks_for_the_c_library_alone(tmp_path: Path, target: Target) -> None:
    built(tmp_path, *CASES.values() if target == "hexagon" else [CASES["double"], OF_FLOATS], target=target)
    for path in tmp_path.glob("*.o"):
        names = symbols(path)
        assert writable_bytes(path) == 0
        assert b"hexconv-" not in path.read_bytes(), "the path of the folder that it was compiled in"
        assert not [name for name in names if "tvm" in name.lower()]
        assert {name for name, defined in names.items() if not defined} <= C_LIBRARY | COMPILER_RUNTIME
        assert {f"{path.stem}_init", f"{path.stem}_run"} <= {name for name, defined in names.items() if defined}


@pytest.mark.simulator
def test_two_chains_run_from_c_on_the_simulator(tmp_path: Path) -> None:
    built(tmp_path, *CASES.values(), target="hexagon")
    compiler = f"{ZIG} -target hexagon-linux-musl -mcpu=hexagon{ISA} -static"
    done = make(tmp_path, compiler)
    assert done.returncode == 0, done.stderr
    for name in CASES:
        assert f"{name}: 0 of " in done.stdout


def test_two_chains_run_from_c_on_this_machine(tmp_path: Path) -> None:
    built(tmp_path, CASES["double"], OF_FLOATS)
    done = make(tmp_path, ZIG)
    assert done.returncode == 0, done.stderr
    assert "double: 0 of " in done.stdout
    assert "floats: 0 of " in done.stdout


def make(folder: Path, compiler: str) -> subprocess.CompletedProcess[str]:
    """`make run` as a user would."""
    environment = {**os.environ, "CC": compiler}
    command = ["make", "-C", str(folder), "-s", "run", f"CC={compiler}"]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "moment"),
    [("fast", "random"), ("double", "late"), pytest.param("planned", "late", marks=DEEP), ("planned", "random")],
)
def test_a_call_through_c_costs_no_more_than_a_hundredth(tmp_path: Path, name: str, moment: str) -> None:
    case, copies = CASES[name], Copies(moment, 3)  # pyright: ignore[reportArgumentType]
    [chain] = built(tmp_path, case, target="hexagon")
    # Counts issue slots, too, which wants a trace of as many packets.
    simulator = Simulator(copies=copies, vtcm_loads=False)
    through_c = simulated_chain(tmp_path, chain, random_tensors(case.chain, 5).image, simulator)
    assert through_c.outputs[0].tobytes() == (tmp_path / f"{name}.output.bin").read_bytes()
    run = run_case(case, lower_case(case), simulator, 5)
    assert through_c.counts is not None
    assert run.counts is not None
    assert through_c.counts.packets <= 1.01 * run.counts.packets


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("built")
    built(folder, CASES["double"])
    return hexconv.load(folder)["double"]


OK, NULL_POINTER, MISALIGNED, WRONG_WEIGHTS, NO_VTCM, NO_SCRATCH, NOT_READY, *_, HALF_PAIR = range(12)
VTCM, SCRATCH, COPY_START, COPY_WAIT = range(1, 5)
"""Places in `struct hexconv_platform`."""
GIVES = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def without(library: ctypes.CDLL, *places: int, instead: Any = None) -> _Platform:
    """The platform of POSIX with other callbacks, or none."""
    platform = posix(library)
    for place in places:
        platform.pointers[place] = ctypes.cast(instead, ctypes.c_void_p).value if instead else None
    return platform


def test_what_c_gets_wrong_has_an_error_of_its_own(loaded: Loaded) -> None:
    library, [weights, platform] = loaded._library, loaded._kept
    fresh = (ctypes.c_void_p * 4)()
    init, run = library.double_init, library.double_run
    place = weights.ctypes.data
    at, machine = ctypes.c_void_p(place), ctypes.byref(platform)
    assert run(fresh, at, at) == NOT_READY
    for arguments in ((None, at, machine), (fresh, None, machine), (fresh, at, None)):
        assert init(*arguments) == NULL_POINTER
    assert init(fresh, ctypes.c_void_p(place + 4), machine) == MISALIGNED
    assert init(fresh, ctypes.c_void_p(place + 128), machine) == WRONG_WEIGHTS
    assert init(fresh, at, machine) == OK
    for nothing in range(3):
        assert (
            run(*[None if number == nothing else each for number, each in enumerate((fresh, at, at))]) == NULL_POINTER
        )
    assert run(fresh, ctypes.c_void_p(place + 2), at) == MISALIGNED
    assert run(fresh, at, ctypes.c_void_p(place + 64)) == MISALIGNED


def test_half_of_a_pair_of_callbacks_is_refused(loaded: Loaded) -> None:
    library, [weights, _] = loaded._library, loaded._kept
    fresh, at = (ctypes.c_void_p * 4)(), ctypes.c_void_p(weights.ctypes.data)
    for half in (COPY_START, COPY_WAIT):
        assert library.double_init(fresh, at, ctypes.byref(without(library, half))) == HALF_PAIR
        assert library.double_run(fresh, at, at) == NOT_READY
    assert library.double_init(fresh, at, ctypes.byref(without(library, COPY_START, COPY_WAIT))) == OK


@pytest.mark.parametrize(("name", "place", "missing"), [("double", VTCM, NO_VTCM), ("floats", SCRATCH, NO_SCRATCH)])
def test_memory_that_a_platform_does_not_give_is_told(tmp_path: Path, name: str, place: int, missing: int) -> None:
    """None at all, no callback that gives it, or memory that is not aligned."""
    built(tmp_path, {"double": CASES["double"], "floats": OF_FLOATS}[name])
    chain = hexconv.load(tmp_path)[name]
    library, [weights, _] = chain._library, chain._kept
    init, run = (getattr(library, f"{name}_{what}") for what in ("init", "run"))
    fresh, at = (ctypes.c_void_p * 4)(), ctypes.c_void_p(weights.ctypes.data)
    nothing, crooked = GIVES(lambda *_: None), GIVES(lambda *_: weights.ctypes.data + 64)
    for instead, error in ((None, missing), (nothing, missing), (crooked, MISALIGNED)):
        assert init(fresh, at, ctypes.byref(without(library, place, instead=instead))) == error
        assert run(fresh, at, at) == NOT_READY


def test_an_image_of_another_shape_is_refused(loaded: Loaded) -> None:
    with pytest.raises(InputError, match="uint8 of 1x19x17x36"):
        loaded(np.zeros((1, 2, 3, 4), np.uint8))


def test_the_platform_of_qurt_compiles_against_what_its_headers_document(tmp_path: Path) -> None:
    """It runs on no device here; the symbols that it asks for are the documented ones and the C library's."""
    folder = Path(hexconv.__file__).parent / "build"
    source, headers, compiled = folder / "platform" / "hexconv_qurt.c", folder / "standin", tmp_path / "qurt.o"
    flags = [
        "-target",
        "hexagon-linux-musl",
        "-mcpu=hexagonv68",
        "-O2",
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fno-sanitize=all",
        "-c",
    ]
    subprocess.run([*ZIG.split(), *flags, f"-I{headers}", str(source), "-o", str(compiled)], check=True)
    names = symbols(compiled)
    documented = "".join(header.read_text() for header in headers.glob("*.h"))
    asked = {name for name, defined in names.items() if not defined}
    assert {name for name in asked if f"{name}(" not in documented} <= {
        "memalign",
        "calloc",
        "free",
        "memset",
        "memcpy",
    }
    assert {"hexconv_qurt_open", "hexconv_qurt_close"} <= {name for name, defined in names.items() if defined}


@pytest.mark.parametrize("isa", ["v75", "v79"])
def test_code_that_no_simulator_runs_is_compiled_and_linked_and_marked(tmp_path: Path, isa: str) -> None:
    small = Case("small", replace(INTEGERS, input=(1, 8, 8, 32), conv=(CONV,)), Plan(kernel="hvx"))
    build([(small, random_tensors(small.chain, 5))], tmp_path, "hexagon", isa)
    program, library = tmp_path / "small", tmp_path / "library.c"
    library.write_text(
        "".join(f"void *{name}(void) {{ return 0; }}\n" for name in sorted(C_LIBRARY | COMPILER_RUNTIME))
    )
    flags = ("-target", "hexagon-linux-musl", f"-mcpu=hexagon{isa}", "-static", "-nostdlib", "-fno-builtin", "-w")
    files = (str(tmp_path / "small.o"), str(library), "-Wl,-e,small_run", "-o", str(program))
    subprocess.run([*ZIG.split(), *flags, *files], check=True)
    assert ELFFile(io.BytesIO(program.read_bytes()))["e_machine"] == "EM_QDSP6"
    assert f"for {isa}, was compiled and linked, and **never run**" in (tmp_path / "README.md").read_text()


def test_a_program_links_with_the_library_of_all_chains(tmp_path: Path) -> None:
    built(tmp_path, CASES["double"], OF_FLOATS)
    program = tmp_path / "double_from_library"
    files = [str(tmp_path / name) for name in ("double_example.c", "hexconv_posix.c", "libchains.a")]
    subprocess.run([*ZIG.split(), "-O2", *files, "-lpthread", "-o", str(program)], check=True)
    done = subprocess.run([str(program)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("double: 0 of ")


def test_a_plan_that_does_not_fit_is_not_built(tmp_path: Path) -> None:
    case = Case("small", INTEGERS, replace(DOUBLE, kernel="hvx", vtcm_bytes=2048))
    with pytest.raises(Unsupported, match=r"of v68's 2048 bytes of VTCM, .* too many"):
        build([(case, random_tensors(case.chain))], tmp_path)


@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"{}"])
def test_a_damaged_file_of_the_cache_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    chain = Chain(input=(1, 1, 1, 32), dtype="uint8", conv=(Conv2d(out_channels=32, requantize=BY),))
    case = Case("least", chain, Plan(kernel="plain"))
    made = [built(tmp_path / "first", case)]
    (kept,) = (tmp_path / "hexconv" / "chains").iterdir()
    kept.write_bytes(content)
    made.append(built(tmp_path / "second", case))
    assert made[0] == made[1]
    assert (tmp_path / "first" / "least.o").read_bytes() == (tmp_path / "second" / "least.o").read_bytes()


def test_code_of_vectors_is_not_built_for_this_machine(tmp_path: Path) -> None:
    """LLVM would end the process."""
    with pytest.raises(Unsupported, match="the kernel hvx is one of --target hexagon, not of llvm"):
        built(tmp_path, CASES["fast"])
