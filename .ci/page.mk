.PHONY: report docs test-page
report: .venv/installed ## the page about all cases: reports/index.html, for any browser, offline
	$(BIN)/hexconv report

docs: .venv/installed ## make hexconv/docs/reference/knobs.md and the pictures of the pages again
	$(BIN)/python -m hexconv.docs.mkdocs.knob_pages
	$(BIN)/python -m hexconv.docs.mkdocs.network_picture
	@mkdir -p build/docs
	$(BIN)/hexconv report schedules/split-3x3.toml --output build/docs/page.html --plots build/docs
	$(BIN)/hexconv report schedules/hvx/double-rings.toml --run --output build/docs/page.html --plots build/docs
	cp build/docs/split-3x3-lifetimes.svg build/docs/split-3x3-traffic.svg hexconv/docs/pictures/
	cp build/docs/double-rings-timeline.svg hexconv/docs/pictures/

test-page: .venv/site-installed ## open the page and the site in Chromium: build/page/*.png are screenshots
	@.ci/browser
	$(BIN)/python -m pytest -q tests/browser
