"""The page as people meet it: links, folds, keys, narrow and wide, dark and light, with and without scripts."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import SCREENSHOTS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

WIDTHS = {"phone": (360, 740), "desktop": (1280, 900)}
UNFOLD = "for (const block of document.querySelectorAll('details')) block.open = true"


def test_every_link_of_the_page_leads_to_something_that_shows(page: "Page") -> None:
    links = page.locator("a[href^='#']")
    assert links.count() > 8
    for at in range(links.count()):
        if links.nth(at).get_attribute("class") == "skip":
            continue
        links.nth(at).click()
        target = page.locator(f"[id='{links.nth(at).get_attribute('href')[1:]}']")
        assert target.is_visible()


def test_a_link_opens_the_folds_around_its_target(page: "Page", report: Path) -> None:
    case = page.locator("details.case", has=page.locator("[id='case-bottleneck']"))
    assert not case.evaluate("block => block.open")
    page.goto(f"{report.as_uri()}#plot-bottleneck-traffic")
    assert case.evaluate("block => block.open")
    assert page.locator("[id='plot-bottleneck-traffic']").is_visible()


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
def test_it_fits_every_screen(device: str, scheme: str, browser: "Browser", report: Path) -> None:
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
def test_axe_finds_no_barrier(scheme: str, browser: "Browser", report: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page.goto(report.as_uri())
    page.evaluate("for (const table of document.querySelectorAll('.numbers')) table.open = true")
    found = Axe().run(page)
    assert [
        (rule["id"], len(rule["nodes"]), rule["nodes"][0]["html"][:150]) for rule in found.response["violations"]
    ] == []
    page.close()


def test_a_screen_reader_hears_every_plot_and_its_table(page: "Page") -> None:
    told = "Footprint, MiB. Footprint over k_split and h_split. 23 of 32 plans fit the 4 MiB of v68."
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


def test_what_the_file_may_not_load_it_does_not(browser: "Browser", report: Path) -> None:
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(report.as_uri())
    page.evaluate("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}))")
    page.wait_for_timeout(100)
    assert any("Content Security Policy" in text for text in refused)
    page.close()
