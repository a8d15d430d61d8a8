"""The site as people meet it: from a folder, without a server or a network, narrow and wide, dark and light."""

# Playwright and axe are installed for `make test-page` alone.
# pyright: reportMissingImports=false

import importlib.util
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Scheme = Literal["light", "dark"]

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "hexconv" / "docs" / "mkdocs" / "mkdocs.yml"
SCREENSHOTS = ROOT / "build" / "page"
SAMPLE = (
    *("index.html", "background/comparison.html", "background/measurements.html", "concepts/index.html"),
    *("reference/api.html", "reference/cli.html", "reference/layouts.html"),
)
"""Pages that are looked at in both widths and both schemes: pictures, wide tables, what other tools make."""
HIDDEN = "() => [...document.querySelectorAll('[data-hidden]')].map((each) => each.dataset.hidden)"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built anew; a warning fails."""
    if not importlib.util.find_spec("mkdocs"):
        if os.environ.get("CI") == "true":
            pytest.fail("mkdocs is not installed: make site")
        pytest.skip("mkdocs is not installed: make site")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*build, "--config-file", str(CONFIG), "--site-dir", str(folder)], check=True, env=quiet)
    return folder


@pytest.fixture
def window(browser: "Browser") -> Iterator["Page"]:
    """A wide window; anything on the console, and any request that leaves the folder, fails the test."""
    opened = browser.new_page(viewport={"width": 1400, "height": 900})
    said: list[str] = []
    asked: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    yield opened
    opened.close()
    assert said == []
    assert [url for url in asked if not url.startswith("file:")] == []


def test_a_search_finds_a_word_without_a_server(window: "Page", site: Path) -> None:
    window.goto((site / "start" / "chain.html").as_uri())
    window.locator(".md-search__input").click()
    window.keyboard.type("roofline")
    found = window.locator(".md-search-result__link")
    found.first.wait_for(state="attached")
    assert any("glossary.html" in (found.nth(at).get_attribute("href") or "") for at in range(found.count()))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_axe_finds_no_barrier(width: int, scheme: Scheme, browser: "Browser", site: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    violations, wide = [], []
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if name == "404.html":  # its links begin at the top of a server
            continue
        if (width, scheme) != (390, "light") and name not in SAMPLE:  # a phone shows no less than a desktop does
            continue
        page.goto(path.as_uri())
        found = Axe().run(page).response["violations"]
        violations += [(name, rule["id"], rule["nodes"][0]["html"][:150]) for rule in found]
        wide += [name] if page.evaluate("document.documentElement.scrollWidth") > width else []
        if name in SAMPLE:
            page.screenshot(path=SCREENSHOTS / f"site-{path.stem}-{width}-{scheme}.png")
    page.close()
    assert violations == []
    assert wide == []


def test_a_table_that_is_too_wide_for_a_phone_says_that_it_scrolls(browser: "Browser", site: Path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((site / "background" / "comparison.html").as_uri())
    page.wait_for_function(f"() => ({HIDDEN})().includes('right')")
    told = "each => [each.tabIndex, getComputedStyle(each, '::after').content.includes('Scroll sideways')]"
    assert page.locator("[data-hidden=right]").first.evaluate(told) == [0, True]
    page.locator("[data-hidden=right]").first.evaluate("each => { each.scrollLeft = each.scrollWidth }")
    page.wait_for_function(f"() => ({HIDDEN})().includes('left')")
    page.set_viewport_size({"width": 1400, "height": 900})
    page.wait_for_function(f"() => ({HIDDEN})().every((sides) => !sides)")
    page.close()


def test_the_first_page_shows_all_of_its_drawing(browser: "Browser", site: Path) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto((site / "index.html").as_uri())
    assert not page.locator("pre > code").first.evaluate("code => code.scrollWidth > code.clientWidth")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_are_as_dark_as_the_page(scheme: Scheme, browser: "Browser", site: Path) -> None:
    from PIL import Image

    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    for name in ("index.html", "concepts/index.html", "background/comparison.html"):
        page.goto((site / name).as_uri())
        images = page.locator(".md-content img")
        assert images.count() > 0
        for at in range(images.count()):
            shot = Image.open(io.BytesIO(images.nth(at).screenshot()))
            paper = shot.convert("L").getpixel((2, shot.height // 2))
            assert isinstance(paper, int)
            assert (paper < 60) == (scheme == "dark"), name
    page.close()
