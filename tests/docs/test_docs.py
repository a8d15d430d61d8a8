"""What the documents show is what happens."""

import contextlib
import doctest
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import tomli
from _pytest.mark.structures import ParameterSet

import hexconv
from hexconv.cli.app import app, exit_code
from hexconv.docs.mkdocs.knob_pages import PAGE, knobs_page
from hexconv.docs.mkdocs.reference_pages import drawings, pages
from hexconv.docs.mkdocs.release_notes import RELEASES, changes_page
from hexconv.report.costs import own_cost
from hexconv.spec import Case, Plan
from tests.deep import DEEP
from tests.docs.console import FENCE, inside, matches, play, steps

ROOT = Path(__file__).parents[2]
DOCS = PAGE.parents[1]
REFERENCE = PAGE.parent
MADE = {f"reference/{name}.md" for name in ("fields", "columns", "architectures", "layouts", "operators")} | {
    "changes.md"
}
"""Pages that the site has besides the files."""
PAGES = sorted(DOCS.rglob("*.md"))
ON_THE_SIMULATOR = re.compile(r"--target hexagon|^make .* (run|check)$")
"""Pages with such commands need qemu-hexagon."""


BUILT_FOR_A_DEVICE = [DOCS / "how-to" / "project.md"]
"""Pages whose commands compile both sides of a project, as tests/build/test_device_project.py does, too."""


def _with_commands() -> Iterator[ParameterSet]:
    """The README and every page of the site that shows a command."""
    for page in (ROOT / "README.md", *PAGES):
        commands = [step.command for step in steps(page.read_text()) if step.command]
        marks = [pytest.mark.simulator] if any(map(ON_THE_SIMULATOR.search, commands)) else []
        marks += [pytest.mark.mlir] if any("--target mlir" in command for command in commands) else []
        marks += [DEEP] if page in BUILT_FOR_A_DEVICE else []
        if commands:
            yield pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", list(_with_commands()))
def test_every_command_of_a_page_shows_what_it_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "schedules").symlink_to(ROOT / "schedules")
    for command, shown, got in play(page.read_text(), tmp_path):
        assert matches(shown, got), f"$ {command}\n{got}\n--- but the page shows\n{shown}"


NOT_RUN = {
    "README.md": "installs this package",
    "start/install.md": "installs this package; `make test` runs these tests",
    "start/network.md": "the same command as above it, for a whole network: minutes",
    "start/pytorch.md": "a model that PyTorch exports: the deep test below runs its script",
    "how-to/other-compilers.md": "MLIR's own tool, which tests/mlir runs",
    "how-to/project.md": "a device and its SDK",
    "how-to/sweep.md": "a cluster",
    "how-to/add-a-kernel.md": "tests, in a clone",
    "contributing.md": "all tests",
}
"""By page: why a block of commands on it is not run. Blocks that are run are `console`, not `sh`."""


def test_blocks_that_no_test_runs_are_few_and_their_options_exist() -> None:
    shown = {
        page: [body for kind, body in FENCE.findall(page.read_text()) if kind in ("sh", "bash", "shell")]
        for page in PAGES
    }
    shown[ROOT / "README.md"] = [body for kind, body in FENCE.findall((ROOT / "README.md").read_text()) if kind == "sh"]
    assert {
        str(page.relative_to(DOCS if DOCS in page.parents else ROOT)) for page in shown if shown[page]
    } == NOT_RUN.keys()
    for body in (body for bodies in shown.values() for body in bodies):
        for command in re.findall(r"(?:^|&& )hexconv (.*?)(?= &&|$)", body, re.M):
            app.parse_args(shlex.split(command, comments=True), exit_on_error=False, print_error=False)


@pytest.mark.parametrize(
    ("shown", "got", "same"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a ... d\n", "a b c d\n", True),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
        ("", "", True),
        ("a (1)\n", "a (2)\n", False),
    ],
)
def test_outputs_are_compared_line_by_line(shown: str, got: str, same: bool) -> None:
    assert matches(shown, got) == same


def test_the_api_page_holds() -> None:
    result = doctest.testfile(str(REFERENCE / "api.md"), module_relative=False)
    assert result.attempted > 15
    assert not result.failed


def test_every_public_name_is_there_and_on_the_page() -> None:
    page = (REFERENCE / "api.md").read_text()
    for name in hexconv.__all__:
        assert getattr(hexconv, name).__doc__
        assert re.search(rf"^::: hexconv\.[\w.]+\.{name}$", page, re.M), name
    with pytest.raises(AttributeError, match="lowwer"):
        hexconv.lowwer  # noqa: B018


def test_the_knobs_page_is_what_tvm_lowers() -> None:
    page = (REFERENCE / "knobs.md").read_text()
    assert page == knobs_page(), "make it again: python -m hexconv.docs.mkdocs.knob_pages"
    assert re.findall(r"^## `(\w+)`", page, re.M) == [field.name for field in fields(Plan)]


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in app:
        if not name.startswith("-"):
            assert f"`hexconv {name}" in readme, name


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    made = {(DOCS / name).resolve() for name in MADE}
    for target, _, heading in re.findall(r"\]\(([^)#]+)(#([\w-]+))?", page.read_text()):
        if "://" in target:
            continue
        there = (page.parent / target).resolve()
        assert there.exists() or there in made, target
        if heading and there.exists():
            assert heading in _anchors(there.read_text()), f"{target}#{heading}"


def _anchors(page: str) -> set[str]:
    """What a site's headings are called in links."""
    headings = re.findall(r"^#+ (.*)$", page, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_what_other_knobs_cost_is_what_the_closed_forms_say() -> None:
    page = (DOCS / "how-to" / "read-a-plan.md").read_text()
    (_, text), *_ = FENCE.findall(page)
    for changed, *shown in re.findall(
        r"^\| (.*?) \| (\S+) \| (\S+) \| (\S+) \|", page.partition("## What another")[2], re.M
    ):
        if changed not in ("changed", "---"):
            knob, _, value = changed.strip("`").partition(" = ")
            kept = re.sub(rf"^{knob} = .*\n", "", text, flags=re.M)
            cost = own_cost(Case.parse(text if changed == "as it is" else f"{kept}{knob} = {value}\n", "block"))
            told = (cost.footprint_bytes, cost.traffic_bytes, f"{cost.recompute:.2f}")
            assert [cell.strip("*") for cell in shown] == [str(figure) for figure in told], changed


def test_every_page_is_in_the_contents_of_the_site() -> None:
    contents = (DOCS / "mkdocs" / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = set(re.findall(r": ([\w/-]+\.md)$", contents, re.M))
    assert named == {str(page.relative_to(DOCS)) for page in PAGES} | MADE


def test_the_pages_that_are_made_have_every_field() -> None:
    made = pages()
    for name in (*(one.name for one in fields(Plan)), "out_channels", "multiplier", "input"):
        assert f"| `{name}` |" in made["reference/fields.md"]
    assert "| v68 | 4 MiB |" in made["reference/architectures.md"]


def test_the_readme_is_short_and_runs_something_at_once() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.encode()) <= 7 * 1024
    assert "hexconv best" in "\n".join(text.splitlines()[:14])


def test_the_picture_of_the_readme_says_what_best_prints() -> None:
    """What README prints is run above; the picture is made by `make docs`."""
    readme, picture = (ROOT / "README.md").read_text(), (DOCS / "pictures" / "network.svg").read_text()
    said = r"move\w* (\d+)(?: bytes)? instead of (\d+)"
    ((moved, apart),), (of_chains,) = (re.findall(f"{whose} {said}", readme) for whose in ("a call", "its chains"))
    texts = re.findall(r">([^<>]+)</text>", picture)
    assert texts[0] == f"A call moves {int(moved):,} bytes,"
    assert texts[1].endswith(f" less than {int(apart):,}, each conv by itself")
    assert {f"{int(size):,}" for size in of_chains} <= set(texts)


def test_every_message_of_the_page_of_messages_is_one() -> None:
    package = Path(hexconv.__file__).parent
    kinds = (".py", ".j2", ".h")
    code = [path.read_text() for path in package.rglob("*") if path.suffix in kinds and DOCS not in path.parents]
    said = re.sub(r'"\s*\n\s*f?"', "", "\n".join(code))  # a string of several lines is one
    messages = re.findall(r"^\| `([^`]+)`", (DOCS / "how-to" / "messages.md").read_text(), re.M)
    assert len(messages) > 15
    assert not [message for message in messages if message not in said]


@pytest.mark.deep
def test_the_script_of_the_page_on_pytorch_makes_a_model_that_verifies(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    page = (DOCS / "start" / "pytorch.md").read_text()
    (script,) = [body for kind, body in FENCE.findall(page) if kind == "python"]
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=300)
    with inside(tmp_path):
        assert exit_code(["verify", "network.onnx", "--vtcm", "1MiB", "--target", "llvm"]) == 0


QUESTIONS = {
    "What is it?": "Which convs of a network fit Hexagon's VTCM fused, with which plan",
    "For whom?": "It is for compiler and kernel engineers",
    "What is fused, and why?": "Fused convs hand their rows on in it, stripe by stripe",
    "What is a packet?": "A packet is the 1 to 4 instructions that a thread issues together",
    "Why believe it?": "Each figure has two or three sources that know nothing of each other",
    "What does it not do?": "It measures no time",
    "How do I start?": "hexconv example && hexconv best residual.onnx --vtcm 1MiB",
    "What do I get?": "`lib` has objects, headers, packed weights and an example",
    "How do I know that it is right?": "holds each conv and operator against numpy and ONNX Runtime",
    "Where does a change go?": "[how a case goes through it](hexconv/docs/contributing.md)",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_readme_answers_what_a_newcomer_asks(question: str) -> None:
    assert " ".join(QUESTIONS[question].split()) in " ".join((ROOT / "README.md").read_text().split())


TUTORIAL = "hexconv/docs/start/network.md"
ON_THE_WAY = {
    "Which systems and Pythons does it run on?": ("README.md", "Linux, Python 3.10 to 3.13"),
    "What do runs on Hexagon need, without a device?": ("README.md", "apt-get install qemu-user"),
    "I have no model at hand: what do I start with?": ("README.md", "The package brings a small quantised network"),
    "Which models of mine does it take?": ("README.md", "any ONNX model of fixed sizes does"),
    "My model leaves sizes open: what now?": (TUTORIAL, "--shape image=1,3,224,224"),
    "Why does a conv of mine stand in no chain?": (
        "hexconv/docs/start/network.md",
        "each conv that is in no chain, and why",
    ),
    "Against what is the run held, and may it differ?": (
        "hexconv/docs/start/network.md",
        "Each step of the run has to equal",
    ),
    "How much VTCM does each chain take?": (
        "hexconv/docs/start/network.md",
        "`hexconv best net --vtcm 1MiB --wide` has a column",
    ),
    "What does a failed check exit with?": ("README.md", "1 (checked, does not hold)"),
    "Does what verify ran go to the device?": ("README.md", "runs the very C and objects that `build` writes"),
    "Are packets a time?": ("README.md", "says why neither is a time"),
    "How do I get from here to a device?": ("README.md", "[to a device](hexconv/docs/how-to/device.md)"),
    "A message stopped me: what do I do?": ("README.md", "[messages and what to do](hexconv/docs/how-to/messages.md)"),
}
"""What was asked on the way of `tests.docs.wheel_trial`, from the wheel to a network that is verified: page, answer."""


@pytest.mark.parametrize("question", ON_THE_WAY)
def test_a_page_answers_what_is_asked_on_the_way(question: str) -> None:
    page, answer = ON_THE_WAY[question]
    assert " ".join(answer.split()) in " ".join((ROOT / page).read_text().split())


def test_the_page_of_layouts_has_a_picture_of_every_system() -> None:
    page = drawings()
    for system in ("packed", "onednn", "mace", "okk"):
        assert f"### {system}: " in page
    assert page.count("<svg") == page.count('role="img"') == 10
    assert "ns0:" not in page


def test_each_note_on_a_change_is_in_the_next_release() -> None:
    notes = list((ROOT / ".changes").glob("*.md"))
    page = changes_page()
    assert page.startswith(f"# Changelog\n\n## {hexconv.__version__} (unreleased)")
    for note in notes:
        assert note.suffixes[0] in (".added", ".changed", ".fixed", ".removed"), note
        assert " ".join(note.read_text().split()) in " ".join(page.split()), note
    assert (ROOT / "CHANGELOG.md").read_text().count(RELEASES) == 1


def test_links_of_the_package_are_named_by_a_page_and_none_poses_as_its_own_address() -> None:
    links: dict[str, str] = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    text = "".join(page.read_text() for page in PAGES)
    assert links
    for label, address in links.items():
        assert re.fullmatch(r"Related: .{1,23}", label), label  # PyPI takes 32 characters
        assert re.fullmatch(r"https://[\w.-]+(/[\w./-]*)?", address), address
        assert f"]({address})" in text, address


NOTEBOOKS = sorted(DOCS.rglob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_of_a_notebook_prints_what_it_shows(path: Path, tmp_path: Path) -> None:
    notebook, names = json.loads(path.read_text()), dict[str, object]()
    assert notebook["nbformat"] == 4
    with inside(tmp_path):
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec("".join(cell["source"]), names)
            shown = "".join("".join(output["text"]) for output in cell["outputs"])
            assert matches(shown, out.getvalue()), out.getvalue()


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
