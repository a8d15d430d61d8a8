.PHONY: report test-page
report: .venv/installed ## the page about all cases: reports/index.html, for any browser, offline
	$(BIN)/hexconv report

test-page: .venv/installed ## open the page in Chromium: build/page/*.png are its screenshots
	@.ci/browser
	$(BIN)/python -m pytest -q tests/browser
