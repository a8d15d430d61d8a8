"""How long the system's Chromium takes for a page: first paint, and until all of it is loaded.

`python -m tests.browser.page_load PAGE.html...` prints a line each; it needs what `make test-page` installs.
"""

# Playwright is installed for `make test-page` alone.
# pyright: reportMissingImports=false

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.conftest import CHROMIUM, missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LOADED = """() => {
  const [page] = performance.getEntriesByType('navigation');
  const [paint] = performance.getEntriesByName('first-contentful-paint');
  return page.loadEventEnd && paint ? [paint.startTime, page.loadEventEnd] : null;
}"""


def load_time(browser: "Browser", path: Path) -> str:
    """Open a page at 1400 pixels; returns its bytes and the milliseconds to its first paint and its last byte."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(path.resolve().as_uri())
    painted, loaded = page.wait_for_function(LOADED).json_value()
    page.close()
    return f"{path.stat().st_size:,} bytes: first paint after {painted:.0f} ms, loaded after {loaded:.0f} ms"


def main(pages: list[str]) -> int:
    """Measure each page; returns 2 where there is no browser."""
    if why := missing():
        print(f"not run: {why}", file=sys.stderr)
        return 2
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for page in pages:
            print(f"{page}: {load_time(browser, Path(page))}", flush=True)
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
