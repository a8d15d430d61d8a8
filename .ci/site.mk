# The web site of hexconv/docs. Its tool is installed when the site is first built.
.PHONY: site
site: .venv/site-installed ## build the web site of all pages: build/site/index.html, for any browser, offline
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --config-file hexconv/docs/mkdocs/mkdocs.yml

.venv/site-installed: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e '.[site]'
	@touch $@
