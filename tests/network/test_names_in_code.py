"""Names that would be code: what is emitted for them has the tokens of a clean model, renamed, and not one more."""

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hexconv.build import build
from hexconv.lower import lower_case
from hexconv.network import Wanted
from hexconv.network.built_network import compiled_network, network_name, read_network, write_compiled
from hexconv.network.compiled import Compiled
from hexconv.network.program_steps import Operation, Program
from hexconv.run.tensors import random_tensors
from hexconv.spec import Case, Chain, Conv2d, Plan
from tests.build.c_tokens import Renaming, tokens_of_c, words_of_make
from tests.build.test_build import ZIG
from tests.draws import LOWERED
from tests.network.models import all_operators, saved

WANTED = Wanted(1 << 20, "llvm", project="fastrpc")
"""Texts alone are looked at: a project stands around a library of this machine, which `build` refuses."""
MAKES = ("Makefile", "CMakeLists.txt")
CODE = " int intruder; "
BREAKS = ("\n", "\r", "\u2028", "\x85", "\\\n", "??/\n", "\x00", "\u202e", "\x0b", "\ud800")
ENDS = r"""*/ *é/ **// *\/ *"/ *?/ /**/ // " ' ` $ #"""
NAMES = "a A a-b a_b input int hexconv string 3 .. ../../x -rf 日本 %s%n <b>"
MAKE = r"$(shell${IFS}id) ${HOME} `id` x:y # ; = % \\"
endings = st.sampled_from(["", "*\u200b/", "*\\\n/", "*??/\n/", "\n\ttouch intruder", *f"{ENDS} {MAKE}".split(" ")])
named = st.sampled_from(["", "a b", *NAMES.split(" ")])
hostile = st.one_of(
    st.builds("{}{}{}{}".format, named, endings, st.just(CODE), st.sampled_from(["/*", "//", ""])),
    st.builds("{}{}{}".format, st.sampled_from(BREAKS), endings, st.just(CODE)),
    named,
    st.sampled_from(["long" * 2500, "é" * 9000 + CODE]),
    st.text(max_size=30),
)


lowered = cache(lower_case)


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are all that is looked at: nothing is compiled, and one chain is lowered once."""
    for place in (
        "build.built_chain.compiled",
        "build.built_chain.linked",
        "build.library.archived",
        "network.built_network.archived",
    ):
        monkeypatch.setattr(f"hexconv.{place}", lambda *_: b"")
    place = "hexconv.build.built_chain.lower_case"
    monkeypatch.setattr(place, lambda case: lowered(replace(case, name="any", documented=())))


@cache
def network() -> Compiled:
    """One chain, and a step of every operator."""
    net, outputs = all_operators(reals=False)
    with TemporaryDirectory() as folder:
        path = saved(net, outputs, Path(folder) / "pristine.onnx")
        return compiled_network(path, read_network(path, WANTED), WANTED)


def called(program: Program, names: Sequence[str]) -> Program:
    """The same steps under other names: of nodes, of tensors, of cases."""
    taken: list[str] = []
    for place in range(len(program.inputs) + len(program.outputs)):
        name = names[place % len(names)] if place < len(names) else f"{names[place % len(names)]}{place}"
        taken.append(f"{name}{place}" if name in taken else name)
    ports = iter(taken)
    inputs, outputs = (
        tuple(replace(port, name=next(ports)) for port in side) for side in (program.inputs, program.outputs)
    )
    steps = []
    for place, step in enumerate(program.steps):
        name = names[place % len(names)]
        chosen: dict[str, Any] = (
            {"node": name} if isinstance(step, Operation) else {"case": replace(step.case, name=name)}
        )
        steps.append(replace(step, **chosen))
    return replace(program, steps=tuple(steps), inputs=inputs, outputs=outputs)


@cache
def written_network(*names: str) -> dict[str, str]:
    """The texts of a built network, by file name."""
    compiled = network()
    program = called(compiled.program, names)
    tensors = {port.name: random_tensors(CASE.chain).image for port in (*program.inputs, *program.outputs)}
    with TemporaryDirectory() as folder:
        write_compiled(Path(f"{names[0]}.onnx"), replace(compiled, program=program), tensors, Path(folder), WANTED)
        return texts(Path(folder))


def texts(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    places = [file.relative_to(folder) for file in files]
    assert {place.parent for place in places} <= {Path(), Path("fastrpc"), Path("fastrpc/standin")}
    assert all(place.name.isascii() and len(place.name) < 120 for place in places)
    assert len({str(place).lower() for place in places}) == len(files)
    kept = [place for place in places if place.suffix not in (".bin", ".o", ".a")]
    return {str(place): (folder / place).read_bytes().decode() for place in kept}


def alike(clean: dict[str, str], other: dict[str, str], renamed: dict[str, str]) -> None:
    """Assert that all texts have the same tokens, file by file; `renamed` says what a file is called in the other."""
    in_c, in_make = Renaming(), Renaming()
    for name, text in clean.items():
        found = other[renamed.get(name, name)]
        if found == text:
            continue
        if name.endswith((".c", ".h", ".idl")):
            in_c.serves(tokens_of_c(text), tokens_of_c(found))
        elif Path(name).name in MAKES:
            in_make.serves(words_of_make(text), words_of_make(found))
        elif Path(name).name == "README.md":
            assert found.isascii()
            assert found.count("\n") == text.count("\n")
            assert [found.count(sign) for sign in "<>`*|[]"] == [text.count(sign) for sign in "<>`*|[]"]


@given(st.lists(hostile, min_size=2, max_size=6))
@example(["input*é/ int x; /*", "A", "a", "**//", "a*"])
@LOWERED
def test_a_network_of_hostile_names_has_the_tokens_of_a_clean_one(names: list[str]) -> None:
    clean = written_network("pristine")
    words = {word for name in clean if Path(name).name in MAKES for word in words_of_make(clean[name])}
    name = network_name(Path(f"{names[0]}.onnx"))
    assume(name not in words - {"pristine"})  # project(C C) is right, and no renaming of project(pristine C)
    alike(clean, written_network(*names), of_projects(clean, "pristine", name))


def of_projects(clean: dict[str, str], one: str, other: str) -> dict[str, str]:
    """What the files of a project are called in another one."""
    return {file: file.replace(f"/{one}_device", f"/{other}_device") for file in clean if file.startswith("fastrpc")}


CASE = Case("clean", Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=4),)), Plan(kernel="plain"), (("cache", 3),))


def written_chains(names: Sequence[str]) -> dict[str, str]:
    """The texts of a library with a chain for each name; its cases also have documented caches of these names."""
    cases = [replace(CASE, name=name, documented=((name, 3),)) for name in names]
    with TemporaryDirectory() as folder:
        build([(case, random_tensors(case.chain)) for case in cases], Path(folder), "hexagon", project="fastrpc")
        return texts(Path(folder))


@given(st.lists(hostile, min_size=2, max_size=3))
@example(["a", "A", "*é/ int x; /*"])
@LOWERED
def test_chains_of_hostile_names_have_the_tokens_of_clean_ones(names: list[str]) -> None:
    clean = [f"pristine_{letter}" for letter in "xyz"[: len(names)]]
    found, wanted = written_chains(names), written_chains(clean)
    [chains] = [line.split(":= ")[1].split() for line in found["Makefile"].splitlines() if line.startswith("CHAINS")]
    assert len(chains) == len(names)
    pairs = [(one, other) for one, other in zip(clean, chains, strict=True)]
    ends = (".h", "_example.c", ".json")
    renamed = {f"{one}{end}": f"{other}{end}" for one, other in pairs for end in ends}
    alike(wanted, found, renamed | of_projects(wanted, *pairs[0]))


def test_a_compiler_reads_the_emitted_code_as_the_tests_do(tmp_path: Path) -> None:
    """With trigraphs, and every warning an error: names that end comments, and names that differ in case alone."""
    names = ["a*é/ #error intruder", "A", "a", "**//??/\n#error", "int", "\\"]
    for file, text in written_network(*names).items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(text.encode())
    project = sorted(file.relative_to(tmp_path) for file in (tmp_path / "fastrpc").glob("**/*_device_*.c"))
    assert len(project) == 4
    for source in ("network.c", "network_example.c", *project):
        flags = ["-std=c11", "-trigraphs", "-Wall", "-Wextra", "-Werror", "-c", "-o", str(tmp_path / "made.o")]
        flags += [f"-I{tmp_path / place}" for place in (".", "fastrpc", "fastrpc/standin")]
        command = [*ZIG.split(), *flags, str(tmp_path / source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
