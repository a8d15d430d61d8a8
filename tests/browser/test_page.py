"""The page as people meet it: links, folds, keys, narrow and wide, dark and light, with and without scripts."""

# Playwright and axe are installed for `make test-page` alone.
# pyright: reportMissingImports=false

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.browser.conftest import SCREENSHOTS
from tests.browser.page_load import load_time

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]

WIDTHS = {"phone": (390, 844), "desktop": (1400, 900)}
UNFOLD = """async () => {
  for (const block of document.querySelectorAll('details')) block.open = true;
  while (document.querySelector('noscript')) await new Promise((made) => setTimeout(made));
  for (const block of document.querySelectorAll('details')) block.open = true;
}"""
"""What a case holds is made when it opens, its own folds with it."""


def test_every_link_of_the_page_leads_to_something_that_shows(page: "Page") -> None:
    links = page.locator("a[href^='#']")
    assert links.count() > 8
    for at in range(links.count()):
        if links.nth(at).get_attribute("class") == "skip":
            continue
        links.nth(at).click()
        target = page.locator(f"[id='{(links.nth(at).get_attribute('href') or '')[1:]}']")
        assert target.is_visible()


def test_a_link_opens_the_folds_around_its_target(page: "Page", report: Path) -> None:
    case = page.locator("details.case", has=page.locator("[id='case-bottleneck']"))
    assert not case.evaluate("block => block.open")
    page.goto(f"{report.as_uri()}#plot-bottleneck-traffic")
    page.locator("[id='plot-bottleneck-traffic']").wait_for()
    assert case.evaluate("block => block.open")


def test_all_loops_unfold_and_fold_at_once(page: "Page") -> None:
    code = page.locator("section.code").first
    loops = code.locator(".tir details")
    assert loops.count() > 10
    opened = "blocks => blocks.filter(block => block.open).length"
    code.get_by_role("button", name="Unfold all").click()
    assert loops.evaluate_all(opened) == loops.count()
    assert code.get_by_text("# filter1_cache: 73728 elements").is_visible()
    code.get_by_role("button", name="Fold all", exact=False).last.click()
    assert loops.evaluate_all(opened) == 0


def test_keys_alone_reach_the_content_and_fold_a_loop(page: "Page") -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    loop = page.locator(".tir summary", has_text="conv2d #1").first
    loop.focus()
    before = loop.evaluate("summary => summary.parentElement.open")
    page.keyboard.press("Enter")
    assert loop.evaluate("summary => summary.parentElement.open") != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", WIDTHS)
def test_it_fits_every_screen(device: str, scheme: Scheme, browser: "Browser", report: Path) -> None:
    width, height = WIDTHS[device]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(report.as_uri())
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{device}-{scheme}.png", full_page=True)
    page.evaluate(UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    red, *_ = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (red < 60) == (scheme == "dark")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", WIDTHS)
def test_axe_finds_no_barrier(device: str, scheme: Scheme, browser: "Browser", report: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    width, height = WIDTHS[device]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(report.as_uri())
    page.evaluate("for (const table of document.querySelectorAll('.numbers')) table.open = true")
    found = Axe().run(page)
    assert [
        (rule["id"], len(rule["nodes"]), rule["nodes"][0]["html"][:150]) for rule in found.response["violations"]
    ] == []
    page.close()


def test_a_screen_reader_hears_every_plot_and_its_table(page: "Page") -> None:
    told = (
        "Footprint, MiB. Footprint over k_split and h_split. 23 of 32 plans fit the 4 MiB of v68, ✗ marks the others."
    )
    assert page.get_by_role("img", name=told).count() == 1
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1
    page.locator("[id='plot-split-3x3-footprint'] summary").click()
    table = page.get_by_role("table", name="split-3x3: footprint by splits")
    assert table.get_by_role("row").count() == 33


def test_without_scripts_it_is_whole(browser: "Browser", report: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(report.as_uri())
    assert page.locator("svg.plot").first.is_visible()
    assert not page.get_by_role("button").count()
    page.locator("[id='case-bottleneck']").click()
    assert page.locator("[id='plot-bottleneck-vtcm']").is_visible()
    page.close()


def test_without_scripts_a_folded_case_holds_all_that_it_holds_with_them(
    browser: "Browser", network_report: Path
) -> None:
    def parts(scripts: bool) -> list[int]:
        page = browser.new_page(java_script_enabled=scripts)
        page.goto(network_report.as_uri())
        for each in page.locator(".case").all():
            each.locator("summary").first.click()
        count = [page.locator(f".case {tag}").count() for tag in ("svg", "table", "code", "details", "h4")]
        page.close()
        return count

    assert parts(scripts=True) == parts(scripts=False)
    assert min(parts(scripts=True)) > 2


MADE = "() => [...document.querySelectorAll('.case')].map((each) => each.getElementsByTagName('svg').length > 0)"


def test_a_network_loads_its_head_and_makes_a_case_when_it_is_opened(browser: "Browser", network_report: Path) -> None:
    """Charts and loops of cases are nearly all of the page: no element of them is there before."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(network_report.as_uri())
    assert page.evaluate(MADE) == [False, False]
    head = page.evaluate("document.getElementsByTagName('*').length")
    assert head < 300
    page.locator("#case-second").click()
    assert page.evaluate(MADE) == [False, True]
    assert page.evaluate("document.getElementsByTagName('*').length") > 2 * head
    page.locator("#case-second").click()
    assert page.evaluate(MADE) == [False, True]
    page.locator("#case-second").click()
    assert page.locator(".case[open] section.code").count() == 1
    page.close()


@pytest.mark.parametrize("way", ["#case-first", "#plot-first-vtcm", "#tir-first"])
def test_an_address_makes_the_case_that_it_leads_to_and_no_other(
    way: str, browser: "Browser", network_report: Path
) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(network_report.as_uri() + way)
    assert page.locator(way).is_visible()
    assert page.locator("section.code").first.is_visible()
    assert page.evaluate(MADE) == [True, False]
    page.close()


@pytest.mark.parametrize("key", ["Control+f", "Meta+F", "F3"])
def test_a_search_finds_what_is_folded(key: str, browser: "Browser", network_report: Path) -> None:
    page = browser.new_page()
    page.goto(network_report.as_uri())
    page.keyboard.press("f")
    assert page.evaluate(MADE) == [False, False]
    page.keyboard.press(key)
    assert page.evaluate(MADE) == [True, True]
    page.close()


def test_what_the_file_may_not_load_it_does_not(browser: "Browser", report: Path) -> None:
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(report.as_uri())
    page.evaluate("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))")
    page.wait_for_timeout(100)
    assert any("Content Security Policy" in text for text in refused)
    page.close()


def test_a_heading_sorts_the_table_by_size_and_back(page: "Page") -> None:
    """In bytes, not in letters: 528 KiB is less than 1.78 MiB."""

    def shown() -> list[float]:
        cells = page.locator("table.overview tbody tr td:nth-child(3)").all_inner_texts()
        sizes = [cell.split() for cell in cells]
        return [float(number.replace(",", "")) * 1024 ** ["bytes", "KiB", "MiB"].index(unit) for number, unit in sizes]

    heading = page.get_by_role("button", name="footprint")
    heading.click()
    assert shown() == sorted(shown(), reverse=True)
    assert page.locator("th", has=heading).get_attribute("aria-sort") == "descending"
    heading.click()
    assert shown() == sorted(shown())


SMALLEST_TEXT = """() => Math.min(...[...document.querySelectorAll('svg text')].map((text) => {
  const svg = text.closest('svg'), shown = svg.getBoundingClientRect().width;
  return shown ? parseFloat(getComputedStyle(text).fontSize) * shown / svg.viewBox.baseVal.width : 99;
}))"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("which", ["report", "network_report"])
def test_text_in_drawings_is_legible(
    width: int, which: str, browser: "Browser", request: pytest.FixtureRequest
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(request.getfixturevalue(which).as_uri())
    page.evaluate(UNFOLD)
    assert page.evaluate(SMALLEST_TEXT) >= 11
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


@pytest.mark.parametrize(("width", "hides"), [(390, True), (1400, False)])
def test_a_table_that_is_too_wide_says_that_it_scrolls(
    width: int, hides: bool, browser: "Browser", report: Path
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(report.as_uri())
    region = page.get_by_role("region", name="All cases")
    sides = "region => region.dataset.scrolls"
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
    assert region.evaluate(sides) == ("right" if hides else None)
    told = region.evaluate("region => getComputedStyle(region, '::after').content")
    assert ("Scroll sideways" in told) == hides
    if hides:
        region.evaluate("region => { region.scrollLeft = region.scrollWidth }")
        page.wait_for_function("() => document.querySelector('[aria-label=\"All cases\"]').dataset.scrolls === 'left'")
    page.close()


def test_an_address_keeps_how_a_table_is_sorted(page: "Page", report: Path) -> None:
    names = page.locator("#all-cases tbody th")
    page.get_by_role("button", name="footprint").click()
    assert page.evaluate("location.hash") == "#all-cases;sort=2,descending"
    shown = names.all_inner_texts()
    page.goto("about:blank")
    page.goto(f"{report.as_uri()}#all-cases;sort=2,descending")
    assert names.all_inner_texts() == shown
    assert page.locator("#all-cases th[aria-sort=descending]").inner_text().strip().startswith("footprint")
    for wrong in ("sort=99,descending", "sort=2,sideways", "sort=", "x"):
        page.goto(f"{report.as_uri()}#all-cases;{wrong}")


def test_an_address_keeps_which_case_is_open(page: "Page") -> None:
    page.locator("[id='case-bottleneck']").click()
    assert page.evaluate("location.hash") == "#case-bottleneck"
    page.locator("[id='case-bottleneck']").click()
    assert page.evaluate("location.hash") == "#cases"


def test_stripes_move_by_hand_and_by_themselves_and_stop(page: "Page") -> None:
    figure = page.locator("figure.moving").first
    made, output = figure.locator("[data-box=made]").last, figure.locator("output")
    count = int(figure.get_by_role("slider").get_attribute("max") or 0)
    figure.get_by_role("slider").fill(str(count))
    last = made.get_attribute("y")
    assert output.inner_text().startswith(f"Step {count} of {count}.")
    figure.get_by_role("slider").fill("1")
    assert made.get_attribute("y") != last
    play = figure.locator("[data-play]")
    play.click()
    figure.page.wait_for_function("() => document.querySelector('.moving output').textContent.startsWith('Step 2')")
    play.click()
    assert play.inner_text() == "Play"


def test_nothing_moves_by_itself_for_those_who_do_not_want_it(browser: "Browser", report: Path) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(report.as_uri())
    assert not page.locator("[data-play]").first.is_visible()
    assert page.locator("figure.moving input").first.is_visible()
    page.close()


@pytest.mark.simulator
def test_a_network_opens_on_its_graph_and_what_its_plans_save(browser: "Browser", network_report: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(network_report.as_uri())
    assert page.locator("h1").first.inner_text() == "small.onnx"
    graph = page.get_by_role("img", name="2 chains: first, fused")
    assert graph.count() == 1
    assert "second, behind first, fused" in (graph.get_attribute("aria-label") or "")
    assert page.get_by_text("2 of 2 are right").count() == 1
    assert "ends because middle is read by 2 nodes" in page.locator("ol.worst").inner_text()
    page.get_by_role("link", name="first").first.click()
    packets = page.locator("#hot-first ol.packets li")
    packets.first.wait_for()  # the browser tells the page of a new address after the click
    assert packets.count() > 3
    assert "vrmpy" in packets.first.page.locator("#hot-first").inner_text()
    assert page.get_by_role("img", name="Over issue slots.").count() == 1
    page.close()


@pytest.mark.simulator
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", WIDTHS)
def test_axe_finds_no_barrier_in_a_network(
    device: str, scheme: Scheme, browser: "Browser", network_report: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    width, height = WIDTHS[device]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(network_report.as_uri())
    page.evaluate(UNFOLD)
    tags = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
    found = Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}})
    assert [
        (rule["id"], len(rule["nodes"]), rule["nodes"][0]["html"][:150]) for rule in found.response["violations"]
    ] == []
    page.close()


SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
    .observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(sum), 200);
})"""


def test_nothing_shifts_while_it_loads_and_it_is_small(page: "Page", report: Path) -> None:
    assert page.evaluate(SHIFTS) == 0
    assert report.stat().st_size < 1_000_000
    assert (
        page.evaluate("document.querySelector('meta[name=viewport]').content") == "width=device-width, initial-scale=1"
    )


@pytest.mark.simulator
def test_a_small_chain_adds_at_most_80_kilobytes_and_nearly_all_of_them_wait(network_report: Path) -> None:
    """ResNet-18 has eighteen pieces with longer loops: its page stays under two megabytes."""
    html = network_report.read_bytes()
    waiting = [len(part.partition(b"</noscript>")[0]) for part in html.split(b"<noscript>")[1:]]
    assert len(waiting) == 2
    assert max(waiting) < 80_000
    assert len(html) - sum(waiting) < 30_000


def test_all_documented_cases_take_three_megabytes(browser: "Browser", documented_report: Path) -> None:
    assert documented_report.stat().st_size < 3_000_000
    print(load_time(browser, documented_report))
