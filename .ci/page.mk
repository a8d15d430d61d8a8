.PHONY: report docs test-page
report: .venv/installed ## the page about all cases: reports/index.html, for any browser, offline
	$(BIN)/hexconv report

docs: .venv/installed ## make hexconv/docs/knobs.md and the picture of the README again
	$(BIN)/python -m hexconv.report.knobs
	@mkdir -p build/docs
	@mkdir -p build/docs
	$(BIN)/hexconv report schedules/split-3x3.toml --output build/docs/page.html --plots build/docs
	cp build/docs/split-3x3-lifetimes.svg hexconv/docs/

test-page: .venv/installed ## open the page in Chromium: build/page/*.png are its screenshots
	@.ci/browser
	$(BIN)/python -m pytest -q tests/browser
