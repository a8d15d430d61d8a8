"""What the page says is so: figures of drawn cases by the closed forms alone, and a page held against the commands."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given

from hexconv.analyze import planned_work, vtcm_fit
from hexconv.analyze.planned import Planned
from hexconv.cli.app import exit_code
from hexconv.report.costs import own_cost
from hexconv.report.page.case_view import stripes_view
from hexconv.report.page.worst_cases import Answer, Known
from hexconv.report.plots import Plot, Reached, front_plot, packets_plot, roofline_plot, split_plots, vtcm_plot
from hexconv.report.plots.plot import DARK, ROLE_COLOURS
from hexconv.report.tables import Rate
from hexconv.report.words import in_bytes, share, times
from hexconv.spec import Case
from hexconv.spec.places import BUFFER_ROLES
from tests.browser.conftest import CHAIN, MANIFEST
from tests.draws import LOWERED, RUN
from tests.network.models import saved
from tests.report.document import Document, Element
from tests.strategies import cases
from tests.verify.networks import residual

SCHEDULES = Path(__file__).parents[2] / "schedules"
SIZE = r"([\d.,]+ (?:bytes|KiB|MiB|GiB))"


def _turned(case: Case, told: str) -> Case:
    """The case with its plan changed as a sentence says: `h_split = 2, buffering = "single", no rows`."""
    knobs = [part.removeprefix("no ") + (" = null" if part.startswith("no ") else "") for part in told.split(", ")]
    values = {name: json.loads(value) for name, value in (knob.split(" = ") for knob in knobs)}
    return replace(case, plan=replace(case.plan, **values))


def _figures(case: Case) -> tuple[str, str]:
    """What a case moves, and what it takes."""
    moved = sum(planned_work(case.chain, case.settled).traffic_bytes.values())
    return in_bytes(moved), in_bytes(vtcm_fit(case.chain, case.settled).demand_bytes)


@RUN
@given(cases(kernels=("plain", "hvx")))
def test_a_plan_that_is_advised_is_valid_fits_and_moves_what_is_said(case: Case) -> None:
    known = Known(case, own_cost(case), agrees=True)
    assert known.extra_bytes >= 0
    for worst in Answer.of([known]).worst:
        advice = re.fullmatch(rf"With (.+) it would move {SIZE} in {SIZE}\.", worst.help)
        assert bool(advice) != (worst.help == "No searched plan that fits moves less.")
        if advice:
            other = _turned(case, advice[1])
            assert _figures(other) == (advice[2], advice[3])
            assert own_cost(other).fits
    told = front_plot(case)
    if advice := re.search(rf"The least traffic that fits: (.+), with {SIZE} and {SIZE} moved", told.words):
        other = case if advice[1] == "this case" else _turned(case, advice[1])
        assert _figures(other) == (advice[3], advice[2])
    for plan, footprint, traffic, *_ in told.numbers.rows:
        assert _figures(case if plan == "this case" else _turned(case, plan)) == (traffic, footprint)
    for plot, which in zip(split_plots(case, {}), (1, 0), strict=False):
        least = re.search(rf"Least(?: of those)?: {SIZE} at k_split (\d+), (\w+) (\d+)\.", plot.words)
        assert least
        turned = {"k_split": int(least[2]), least[3]: int(least[4])}
        assert _figures(replace(case, plan=replace(case.settled, **turned)))[which] == least[1]


@LOWERED
@given(cases(kernels=("plain", "hvx")))
def test_rows_that_are_told_are_rows_of_the_tensors(case: Case) -> None:
    view = stripes_view(case)
    assume(view is not None)
    assert view
    rows = {"input": case.chain.shapes[0][1], "output": case.chain.shapes[-1][1]}
    told, steps = json.loads(view.told), json.loads(view.steps)
    assert len(told) == len(steps) == view.count >= view.drawn
    for sentence in told:
        assert re.fullmatch(
            r"Makes [^;]* of the output; holds [^;]* of the input(, (\d+|none) of them new)?\.", sentence
        )
        for first, last, tensor in re.findall(r"rows? (\d+)(?: to (\d+))? of the (\w+)", sentence):
            assert int(first) < int(last or rows[tensor]) + (not last)
            assert int(last or first) < rows[tensor]
    assert all(number >= 0 for step in steps for box in step for number in box)
    making = sum(not sentence.startswith("Makes no row") for sentence in told)
    assert view.words.startswith(f"{making} stripes of the output")


@LOWERED
@given(cases(kernels=("plain", "hvx")))
def test_caches_add_up_and_each_has_a_colour(case: Case) -> None:
    plot, planned, fit = vtcm_plot(case), Planned.of(case), vtcm_fit(case.chain, case.settled)
    rows: dict[str, int] = {}
    for _, kind, size in plot.numbers.rows:
        rows[kind] = rows.get(kind, 0) + int(size.replace(",", ""))
    apart, merged, granules = re.findall(SIZE, plot.words)[:2] + re.findall(rf": {SIZE}, which", plot.words)
    assert (apart, merged) == (in_bytes(rows["compacted"]), in_bytes(rows["merged"]))
    assert rows["merged"] == sum(memory.bytes for memory in planned.allocations) <= rows["compacted"]
    assert granules == in_bytes(fit.demand_bytes) == in_bytes(own_cost(case).footprint_bytes)
    assert ("does not fit" in plot.words) == (not fit.fits) == (not own_cost(case).fits)
    assert {cache.role for cache in planned.caches} <= ROLE_COLOURS.keys()


def test_every_role_has_a_colour_of_its_own_in_light_and_in_dark() -> None:
    """Two that are 0.05 apart in OKLab are told from each other side by side."""
    assert ROLE_COLOURS.keys() == BUFFER_ROLES.keys()
    for colours in (list(ROLE_COLOURS.values()), [DARK[colour] for colour in ROLE_COLOURS.values()]):
        for one, other in combinations(map(_oklab, colours), 2):
            assert sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 > 0.05


def _oklab(colour: str) -> tuple[float, ...]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    cones = (
        (0.4122 * r + 0.5363 * g + 0.0514 * b) ** (1 / 3),
        (0.2119 * r + 0.6807 * g + 0.1074 * b) ** (1 / 3),
        (0.0883 * r + 0.2817 * g + 0.6300 * b) ** (1 / 3),
    )
    to_lab = ((0.2105, 0.7936, -0.0041), (1.9780, -2.4286, 0.4506), (0.0259, 0.7828, -0.8087))
    return tuple(sum(weight * cone for weight, cone in zip(row, cones, strict=True)) for row in to_lab)


def _log_axes(part: Any) -> Iterator[str]:
    """The channels of a chart that have a logarithmic scale."""
    if isinstance(part, list):
        for each in part:
            yield from _log_axes(each)
    elif isinstance(part, dict):
        for name, inside in part.items():
            if isinstance(inside, dict) and (inside.get("scale") or {}).get("type") == "log":
                yield name
            yield from _log_axes(inside)


def test_an_axis_that_is_logarithmic_says_so_and_others_begin_at_zero() -> None:
    packets = packets_plot([Rate("one", "hexconv", 0.5, 10), Rate("two", "hexconv", 200, 10)])
    roof = roofline_plot(Reached("one", 1 << 20, 1 << 10, 1 << 14, 256), [])
    for plot, logarithmic in ((packets, 0), (front_plot(Case.load(SCHEDULES / "bottleneck.toml")), 0), (roof, 2)):
        assert isinstance(plot, Plot)
        chart = plot.chart.to_dict()
        assert len(set(_log_axes(chart))) == logarithmic
        assert plot.svg().count(", logarithmic</text>") == logarithmic
        assert not re.search(r">\d[\d.]*e[+-]?\d+<", plot.svg())
        assert not re.search(r"'domain': \[(?!0[,\]])", str(chart)) or logarithmic


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (times(330880, 330592), "1.001"),
        (times(10**9 + 1, 10**9), "1.000000001"),
        (times(3, 1), "3.00"),
        (share(0, 7), "0%"),
        (share(1, 10**6), "0.0001%"),
        (share(999, 1000), "99.9%"),
        (share(1000, 1000), "100%"),
        (share(1500, 1000), "150%"),
    ],
)
def test_what_differs_is_told_apart(text: str, told: str) -> None:
    assert text == told


NAMES = ("hvx/double-rings", "hvx/7x7")


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Element:
    folder = tmp_path_factory.mktemp("truth")
    paths = [str(SCHEDULES / f"{name}.toml") for name in NAMES]
    assert exit_code(["report", *paths, "--tables", str(folder), "-o", str(folder / "i.html")]) == 0
    return Document((folder / "i.html").read_text()).root


def _said(element: Element) -> str:
    return " ".join(element.words().split())


def _facts(article: Element) -> dict[str, str]:
    return {_said(one.all("dt")[0]): _said(one.all("dd")[0]) for one in article.all("dl")[0].all("div")}


def test_a_page_says_what_cache_and_best_print(read: Element, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(SCHEDULES / f"{name}.toml") for name in NAMES]
    assert exit_code(["cache", *paths, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    head = [_said(each) for each in read.all("ul")[1].all("li")]
    table = next(each for each in read.all("table") if each.attributes.get("id") == "all-cases")
    rows = [[_said(cell) for cell in row.all() if cell.tag in ("th", "td")] for row in table.all("tr")[1:]]
    moved, least = (sum(row[key] for row in printed) for key in ("traffic_bytes", "needed_traffic_bytes"))
    reach = sum(row["traffic_bytes"] == row["needed_traffic_bytes"] for row in printed)
    assert head[0].startswith(f"In {sum(row['agrees'] for row in printed)} of {len(printed)} cases")
    assert head[2].startswith(f"Together they move {in_bytes(moved)}, {in_bytes(moved - least)} above the lower bound")
    assert f"; {reach} of {len(printed)} reach" in head[2]
    for row, article, told in zip(rows, read.all("article"), printed, strict=True):
        facts = _facts(article)
        ratio = times(told["traffic_bytes"], told["needed_traffic_bytes"])
        done = times(told["macs"], told["needed_macs"])
        assert row[0] == told["case"]
        assert row[2] == facts["Footprint"]
        assert row[4:6] == [ratio, done]
        assert facts["Traffic"] == f"{in_bytes(told['traffic_bytes'])}, {ratio} times the least"
        assert facts["MACs needed"] == f"{told['needed_macs']:,}"
        assert facts["MACs done"] == f"{done} times those needed"
        peak = next(_said(each) for each in article.all("figcaption") if "apart" in _said(each))
        assert f"{in_bytes(sum(cache['bytes'] for cache in told['caches']))} apart" in peak
        assert f"{in_bytes(told['peak_bytes'])} merged" in peak
    assert exit_code(["best", paths[0], "--objective", "traffic", "--no-run", "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["chains"][0]["best"]
    (first,) = [_said(each) for each in read.all("ol")[0].all("li") if "double-rings" in _said(each)]
    assert f"would move {in_bytes(best['traffic_bytes'])} in {in_bytes(best['footprint_bytes'])}." in first


def test_a_page_names_one_size_of_vtcm(read: Element) -> None:
    sizes = set(re.findall(rf"(?:of|the) {SIZE} (?:of v68|that it may take)", _said(read)))
    assert sizes == {"4 MiB"}


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """The folder of a network of one small chain."""
    (tmp_path / "network.toml").write_text(MANIFEST[: MANIFEST.rindex("[[chain]]")])
    (tmp_path / "first.toml").write_text(CHAIN)
    return tmp_path


def test_a_network_says_what_best_prints(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = network / "i.html"
    assert exit_code(["report", str(network), "--vtcm", "1MiB", "-o", str(page)]) == 0
    capsys.readouterr()
    assert exit_code(["best", str(network), "--vtcm", "1MiB", "--json"]) == 0
    total, root = json.loads(capsys.readouterr().out)["total"], Document(page.read_text()).root
    head = [_said(each) for each in root.all("ul")[1].all("li")]
    moved = f"{in_bytes(total['after_bytes'])} instead of {in_bytes(total['before_bytes'])}"
    assert head[0].startswith(f"A call moves {moved}")
    assert head[2] == f"The largest piece takes {in_bytes(total['footprint_bytes'])} of 1 MiB of VTCM."
    assert "4 MiB" not in _said(root)
    assert all(
        _facts(article)["VTCM"].endswith("to spare of the 1 MiB that it may take") for article in root.all("article")
    )


@pytest.mark.parametrize(
    "asked", ["--objective traffic --threads 4", "--objective latency", "--kernel hmx --threads 1"]
)
def test_a_model_is_planned_as_best_plans_it(asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net, output = residual("qdq", per_channel=True)
    model, page = str(saved(net, [output], tmp_path / "net.onnx")), tmp_path / "i.html"
    options = ["--vtcm", "96KiB", *asked.split()]
    assert exit_code(["report", model, *options, "-o", str(page)]) == 0
    capsys.readouterr()
    assert exit_code(["best", model, *options, "--no-run", "--json"]) == 0
    row, root = json.loads(capsys.readouterr().out), Document(page.read_text()).root
    head, objective = _said(root.all("ul")[1]), re.search(r"--objective (\w+)", asked)
    assert f"A call moves {in_bytes(row['total']['after_bytes'])} instead of" in head
    assert f"a call takes about {row['total']['after_packets']:,} packets" in head
    threads = 4 if "--threads 4" in asked else 1
    told = f"planned for the least {objective[1] if objective else 'time'} on {threads} thread{'s' * (threads > 1)}."
    assert told in head
    kernels = {kernel["used"] for chain in row["chains"] for kernel in chain["kernels"]}
    assert ("hmx" in kernels) == ("hmx" in asked)


@pytest.mark.parametrize("asked", ["--vtcm 1MiB", "--objective time", "--threads 2", "--kernel hmx", "--shape image=1"])
def test_cases_are_shown_as_they_are_planned(asked: str, network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = network / "i.html"
    assert exit_code(["report", str(network / "first.toml"), *asked.split(), "-o", str(page)]) == 2
    option, said = asked.split()[0], capsys.readouterr().err
    assert re.fullmatch(rf"hexconv: {option} is for a .*; .*leave it out: cases state their \w+\n", said)
    assert not page.exists()


@pytest.mark.deep
@pytest.mark.simulator
def test_a_network_says_what_run_prints(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, plans = network / "i.html", network / "plans"
    assert exit_code(["report", str(network), "--run", "-o", str(page)]) == 0
    assert exit_code(["best", str(network), "-o", str(plans)]) == 0
    capsys.readouterr()
    assert exit_code(["run", str(plans), "--target", "hexagon", "--json"]) == 0
    (row,), root = json.loads(capsys.readouterr().out), Document(page.read_text()).root
    counts = f"{row['packets']:,} packets and {row['issue_slots']:,} issue slots"
    assert f"On the simulator they take {counts}; 1 of 1 is right." in _said(root)
    told = f"right; {row['packets']:,} packets, {row['issue_slots']:,} issue slots"
    assert [_facts(article)["On the simulator"].startswith(told) for article in root.all("article")] == [True]


RUN_CASE = """
[chain]
input = [1, 16, 12, 32]
dtype = "uint8"
[[chain.conv]]
out_channels = 40
kernel = [3, 3]
bias = true
requantize = { multiplier = 1073741824, shift = -9 }
[[chain.conv]]
out_channels = 32
requantize = { multiplier = 1073741824, shift = -9 }
[plan]
kernel = "hvx"
order = "h_outer"
halo = "roll"
buffering = "double"
storage = "vtcm"
"""
MULTIPLIED = 256
"""The MACs of a slot with two multiplications of uint8."""


def _rows_of(root: Element, title: str) -> list[list[str]]:
    (table,) = [each for each in root.all("table") if each.all("caption") and title in _said(each.all("caption")[0])]
    return [[_said(cell) for cell in row.all() if cell.tag in ("th", "td")] for row in table.all("tr")[1:]]


def _number(text: str) -> float:
    return float(text.replace(",", ""))


@pytest.mark.deep
@pytest.mark.simulator
def test_figures_of_a_run_are_what_run_and_cache_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, page = tmp_path / "small.toml", tmp_path / "i.html"
    case.write_text(RUN_CASE)
    assert exit_code(["report", str(case), "--run", "--tables", str(tmp_path), "-o", str(page)]) == 0
    capsys.readouterr()
    assert exit_code(["run", str(case), "--target", "hexagon", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert exit_code(["cache", str(case), "--json"]) == 0
    (cache,), root = json.loads(capsys.readouterr().out), Document(page.read_text()).root
    slots, needed, moved = run["issue_slots"], run["needed_macs"], cache["traffic_bytes"]
    facts, figures = _facts(root.all("article")[0]), [_said(each) for each in root.all("figcaption")]
    told = f"right; {run['packets']:,} packets, {slots:,} issue slots, {run['macs_per_slot']:.4g} needed MACs per slot"
    assert facts["On the simulator"] == told

    roofline = [f"{needed / slots:.4g}", f"{needed / moved:.3g}", f"{moved / slots:.3g}"]
    (words,) = [each for each in figures if each.startswith("Roofline")]
    assert f"{roofline[0]} of {MULTIPLIED} MACs per slot. Each byte moved serves {roofline[1]} MACs: " in words
    assert f"a memory that moves {roofline[2]} bytes a slot keeps up" in words
    assert _rows_of(root, "cases that were run on the simulator") == [["small", *roofline]]

    (words,) = [each for each in figures if each.startswith("Over issue slots")]
    marks = re.search(rf"The run takes {slots:,} issue slots, with the marks .* apart ([\d,]+) (more|fewer)", words)
    assert marks
    marked = slots + int(_number(marks[1])) * (1 if marks[2] == "more" else -1)
    rows = _rows_of(root, "from which slot to which")
    copies = [row for row in rows if row[3]]
    copied = {
        tensor: sum(_number(row[3]) for row in copies if row[0].endswith(tensor)) for tensor in ("input", "output")
    }
    assert copied == {each["name"]: each["bytes"] for each in cache["traffic"] if each["name"] in copied}
    assert max(_number(row[2]) for row in rows) <= marked
    convs = [row for row in rows if row[0].startswith("conv ")]
    begin, end = _number(convs[0][1]), _number(convs[-1][2])
    beside = [row for row in copies if _number(row[2]) > begin and _number(row[1]) < end]
    tight = max(beside, key=lambda row: _number(row[3]) / (_number(row[2]) - _number(row[1])))
    lasts, size = int(_number(tight[2]) - _number(tight[1])), int(_number(tight[3]))
    fastest = f"{size / lasts:.3g} bytes a slot at most once the first have arrived: {in_bytes(size)} of "
    assert f"{fastest}{tight[0].split()[-1]} in {lasts:,} slots." in words

    shares = {what: int(part) for part, what in re.findall(r"(\d+)% (?:of the issue slots )?([a-z ]+)", facts["Limit"])}
    multiplied = {"multiply what the result needs": needed, "wasted multiplies": cache["macs"] - needed}
    known = {what: macs / MULTIPLIED / slots for what, macs in multiplied.items()} | {"are stalls": run["stall_share"]}
    for what, part in known.items():  # rounded, and a mark may stand where a stall was
        assert abs(shares.get(what, 0) / 100 - part) <= (0.01 if what in shares else 0.05) + abs(marked - slots) / slots
    assert "multiply what the result needs" in shares
    assert sum(shares.values()) <= 101

    assert not [each for each in figures if each.startswith("Over time")], "all caches live throughout: nothing to draw"


BLOCKS_CASE = """
[chain]
input = [1, 32, 32, 64]
[[chain.conv]]
out_channels = 64
kernel = [3, 3]
[[chain.conv]]
out_channels = 64
[plan]
h_split = 2
"""


def test_lives_of_the_caches_are_what_cache_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, page = tmp_path / "blocks.toml", tmp_path / "i.html"
    case.write_text(BLOCKS_CASE)
    assert exit_code(["report", str(case), "-o", str(page)]) == 0
    capsys.readouterr()
    assert exit_code(["cache", str(case), "--json"]) == 0
    (cache,), root = json.loads(capsys.readouterr().out), Document(page.read_text()).root
    (words,) = [said for each in root.all("figcaption") if (said := _said(each)).startswith("Over time")]
    lives = {row[0]: _number(row[4]) for row in _rows_of(root, "lives of the caches")}
    assert lives == {each["name"]: each["bytes"] for each in cache["caches"]}
    assert f" {in_bytes(cache['peak_bytes'])}" in words
