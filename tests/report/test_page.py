"""The page as text: whole, escaped, the same each time, and open to everyone. tests/browser opens it."""

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from hexconv.cli.app import exit_code
from hexconv.report.costs import measured_splits, own_cost, read_sweeps
from hexconv.report.page.page import Page, anchor
from hexconv.report.page.worst_cases import Answer, Known
from hexconv.report.plots import Plot, split_plots, vtcm_plot
from hexconv.report.plots.plot import DARK, INK, PAPER
from hexconv.report.tables import Rate
from hexconv.spec import Case
from tests.report.document import Document, Element

SCHEDULES = Path(__file__).parents[2] / "schedules"
HOSTILE = """</script><script>alert(1)</script>"'&<img src=x onerror=alert(1)>"""
RATES = (Rate("bottleneck", "hexconv", 0.5, 10), Rate(HOSTILE, HOSTILE, 12.0, None))


@pytest.fixture(scope="module")
def page() -> Page:
    cases = [Case.load(SCHEDULES / name) for name in ("bottleneck.toml", "hvx/32-channels.toml")]
    hostile = Case.parse((SCHEDULES / "uint8-3x3-vtcm.toml").read_text(), name=HOSTILE)
    return Page.of([*cases, hostile], RATES)


PLOTS = 6 + 6 + 2
"""Of the last case nothing differs over time, nor between its splits."""


@pytest.fixture(scope="module")
def html(page: Page) -> str:
    return page.html()


@pytest.fixture(scope="module")
def root(html: str) -> Element:
    return Document(html).root


def test_the_same_cases_and_tables_give_the_same_bytes(tmp_path: Path) -> None:
    """Here, and in another process, folder and time zone with other hashes of strings."""
    case, written = str(SCHEDULES / "float16-1x1.toml"), []
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        arguments = ["report", case, "--tables", str(tmp_path), "-o", f"{folder}/i.html", "--plots", str(folder)]
        if name == "here":
            assert exit_code(arguments) == 0
        else:
            there = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "UTC+9"}
            subprocess.run([sys.executable, "-m", "hexconv", *arguments], check=True, cwd=tmp_path, env=there)
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0] == written[1]
    assert len(written[0]) == 1 + 5, "recompute is the same for all splits"


def test_nothing_in_it_is_loaded_from_anywhere(root: Element) -> None:
    for element in root.all():
        for name in ("src", "srcset", "href", "xlink:href", "data", "action", "poster"):
            assert element.attributes.get(name, "#").startswith(("#", "data:,")), element
        assert "url(" not in element.attributes.get("style", "")
        assert not [name for name in element.attributes if name.startswith("on")]
    style = "".join(element.words() for element in root.all("style"))
    assert "url(" not in style
    assert "@import" not in style


def test_no_value_becomes_markup(root: Element, html: str) -> None:
    assert len(root.all("script")) == 1
    assert not root.all("img")
    assert "alert(1)</script>" not in html
    assert sum(HOSTILE in element.words() for element in root.all("h3")) == 1
    assert any(HOSTILE in element.words() for element in root.all("td"))


def test_every_link_has_its_place_and_every_place_one_name(root: Element) -> None:
    ids = Counter(element.attributes["id"] for element in root.all() if "id" in element.attributes)
    assert max(ids.values()) == 1
    links = [element.attributes["href"][1:] for element in root.all("a")]
    named = [e.attributes["aria-labelledby"] for e in root.all() if "aria-labelledby" in e.attributes]
    assert len(links) > 8
    assert {*links, *named} <= ids.keys()


def test_it_can_be_heard(root: Element) -> None:
    assert root.all("html")[0].attributes["lang"] == "en"
    assert all(table.all("caption")[0].words().strip() for table in root.all("table"))
    assert all(len(cell.attributes.get("scope", "")) for cell in root.all("th"))
    pictures = root.all("svg")
    moving = [e for e in root.all("figure") if e.attributes.get("class") == "moving"]
    assert len(pictures) == 1 + PLOTS + len(moving)
    assert all(picture.attributes["role"] == "img" for picture in pictures)
    assert all(len(picture.attributes["aria-label"]) > 40 for picture in pictures)
    for figure in root.all("figure"):
        assert len(figure.all("svg")) == 1
        assert len(figure.all("table")) == (figure not in moving)
    scrolling = [e for e in root.all() if "scroll" in e.attributes.get("class", "").split()]
    assert all(e.attributes["tabindex"] == "0" and e.attributes["aria-label"] for e in scrolling)


def test_headings_skip_no_level(root: Element) -> None:
    levels = [int(e.tag[1]) for e in _in_order(root) if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def _in_order(element: Element) -> list[Element]:
    return [found for child in element.children for found in (child, *_in_order(child))]


def test_every_colour_has_a_dark_twin_on_which_text_is_legible(root: Element) -> None:
    painted = {
        e.attributes.get(name, "none") for svg in root.all("svg") for e in svg.all() for name in ("fill", "stroke")
    }
    painted -= {"none", "transparent", "#888888"}
    assert painted <= DARK.keys()
    cells = {
        e.attributes["fill"]
        for svg in root.all("svg")
        for e in svg.all()
        if e.tag in ("path", "rect")
        if "fill" in e.attributes
    }
    for colour in cells & DARK.keys() - {INK, PAPER}:
        if colour in _marks():
            continue
        assert _contrast(INK, colour) > 4.5, colour
        assert _contrast(DARK[INK], DARK[colour]) > 4.5, colour


def _marks() -> set[str]:
    """Colours that no text stands on: dots, lines, rings."""
    from hexconv.report.plots.plot import BAR, FAINT, MARK, PEER

    return {BAR, PEER, MARK, FAINT}


def _contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2 has it."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_plots_are_files_inside_of_their_folder(page: Page, tmp_path: Path) -> None:
    names = [anchor(plot.name) for plot in page.plots]
    assert len(set(names)) == len(names) == 1 + PLOTS
    for name in names:
        assert (tmp_path / name).resolve().parent == tmp_path
    plot: Plot = page.plots[1]
    assert plot.file("png").startswith(b"\x89PNG\r\n")
    assert plot.file("svg").startswith(b"<svg")


def test_the_numbers_are_those_of_the_documents() -> None:
    case = Case.load(SCHEDULES / "split-3x3.toml")
    assert ("input_cache / output_cache", "merged", "786,432") in vtcm_plot(case).numbers.rows
    footprint, _, recompute = split_plots(case, {})
    assert ("2", "2", "1.78 MiB", "yes") in footprint.numbers.rows
    assert ("4", "6", "4.06 MiB", "no") in footprint.numbers.rows
    assert ("2", "2", "1.92 times", "yes") in recompute.numbers.rows


def test_what_a_sweep_measured_stands_beside_the_closed_forms(tmp_path: Path) -> None:
    text = (SCHEDULES / "float16-1x1.toml").read_text()
    grid, table = tmp_path / "grid.toml", tmp_path / "sweep.csv"
    grid.write_text(re.sub(r"h_split = \d+", "h_split = [1, 2]", text))
    assert exit_code(["sweep", str(grid), "--out", str(table)]) == 0
    case = Case.load(SCHEDULES / "float16-1x1.toml")
    rows = [{**row, "macs_per_packet": 0.25 if row["h_split"] == 1 else None} for row in read_sweeps([table])]
    measured = measured_splits(case, rows)
    assert {k_split for k_split, _ in measured} == {case.plan.k_split}
    footprint, traffic, recompute, rate = split_plots(case, measured)
    for plot in (footprint, traffic, recompute):
        assert plot.numbers.headings[-1] == "measured"
        told = [(row[2], row[4]) for row in plot.numbers.rows if row[4]]
        assert len(told) == 2
        assert all(closed == counted for closed, counted in told)
    assert [row[:3] for row in rate.numbers.rows] == [(str(case.plan.k_split), "1", "0.25")]
    other = Case("other", case.chain, replace(case.plan, filters="resident"))
    assert not measured_splits(other, rows)


@pytest.mark.parametrize("content", ["", "case,status\nx,holds\n", "\x00"])
def test_what_is_no_table_is_refused_in_one_line(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "simulator.csv").write_text(content)
    case = str(SCHEDULES / "float16-1x1.toml")
    for option in ("--tables", "--sweep"):
        given = tmp_path if option == "--tables" else tmp_path / "simulator.csv"
        assert exit_code(["report", case, option, str(given), "-o", str(tmp_path / "i.html")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"hexconv: {tmp_path}/simulator.csv: got ")


def test_it_opens_on_an_answer_with_the_worst_case_first(html: str, page: Page) -> None:
    """The documented splits move 6.29 times what is needed; the best plan moves what is needed."""
    cases = [Case.load(SCHEDULES / f"{name}.toml") for name in ("least-3x3", "baseline-1x1", "split-3x3")]
    answer = Answer.of([Known(case, own_cost(case), case.name != "least-3x3") for case in cases])
    assert "In 2 of 3 cases" in answer.totals[0]
    worst, second = answer.worst
    assert second.name == "baseline-1x1"
    assert (worst.name, "6.29 times" in worst.problem) == ("split-3x3", True)
    told = (
        'halo = "roll", filters = "resident", buffering = "double", storage = "vtcm" it would move 5.12 MiB in 2.5 MiB'
    )
    assert told in worst.help
    assert 0 < html.index('id="answer"') < html.index('id="overview"')
    assert len(page.answer.worst) <= 3


def test_a_case_that_can_not_be_shown_is_told_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conv, page = "[[chain.conv]]\nout_channels = 8\n", tmp_path / "page.html"
    (tmp_path / "good.toml").write_text(f"[chain]\ninput = [1, 8, 8, 8]\n{conv}")
    (tmp_path / "huge.toml").write_text(f"[chain]\ninput = [1, 1048576, 1048576, 8]\n{conv}")
    (tmp_path / "other.toml").write_text(f"[chain]\ninput = [1, 8, 8, 8]\n{conv}[documented]\nwords = 9\n")
    assert exit_code(["report", str(tmp_path), "-o", str(page)]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "scalar code" not in line]
    assert [line.split(": ")[1] for line in lines] == ["huge", "other"]
    assert "<h2" in page.read_text()
    assert exit_code(["report", str(tmp_path / "huge.toml"), "-o", str(tmp_path / "none.html")]) == 2
    assert capsys.readouterr().err.count("huge: the input has") == 1
    assert not (tmp_path / "none.html").exists()
