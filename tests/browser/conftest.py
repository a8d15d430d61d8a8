"""The page in the system's Chromium. Without it the tests are not run, and say so; on CI they fail."""

# Playwright and axe are installed for `make test-page` alone.
# pyright: reportMissingImports=false

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hexconv.cli.app import exit_code

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SCHEDULES = Path(__file__).parents[2] / "schedules"
SCREENSHOTS = Path(__file__).parents[2] / "build" / "page"
CASES = ("split-3x3.toml", "bottleneck.toml", "hvx/32-channels.toml")


def missing() -> str:
    if not CHROMIUM:
        return "chromium is not on PATH: apt-get install chromium"
    if not importlib.util.find_spec("playwright") or not importlib.util.find_spec("axe_playwright_python"):
        return "playwright is not installed: make test-page"
    return ""


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "simulator.csv").write_text("case,macs_per_packet,packets\nsplit-3x3,0.343,3202236624\nother,12.5,\n")
    page = folder / "index.html"
    cases = [str(SCHEDULES / name) for name in CASES]
    assert exit_code(["report", *cases, "--tables", str(folder), "--output", str(page)]) == 0
    return page


@pytest.fixture(scope="session")
def documented_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page about all documented cases."""
    page = tmp_path_factory.mktemp("documented") / "index.html"
    assert exit_code(["report", str(SCHEDULES), "--output", str(page)]) == 0
    return page


CHAIN = """[chain]
input = [1, 20, 12, 8]
dtype = "uint8"
conv = [{ out_channels = 32, kernel = [3, 3], requantize = { multiplier = 1518500250, shift = -11 } }]
"""
MANIFEST = """model = "small.onnx"
[[chain]]
case = "first"
convs = ["a"]
input = "image"
output = "middle"
ended_by = "branch"
reason = "middle is read by 2 nodes: Conv b, Add c"
[[chain]]
case = "second"
convs = ["b"]
input = "middle"
output = "end"
ended_by = "output"
reason = "the model gives end back"
after = ["first"]
"""


@pytest.fixture(scope="session")
def network_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page about a network of two chains, run on the simulator."""
    folder = tmp_path_factory.mktemp("network")
    (folder / "network.toml").write_text(MANIFEST)
    for name in ("first", "second"):
        (folder / f"{name}.toml").write_text(CHAIN)
    page = folder / "index.html"
    assert exit_code(["report", str(folder), "--run", "--vtcm", "1MiB", "-o", str(page)]) == 0
    return page


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    if reason := missing():
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def page(browser: "Browser", report: Path) -> Iterator["Page"]:
    """The report in a window; anything on the console, and any request but the file's own, fails the test."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(report.as_uri())
    yield opened
    opened.close()
    assert said == []
    assert {url.partition("#")[0] for url in asked} == {report.as_uri()}
