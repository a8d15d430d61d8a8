# Small changes of the code that a test should notice, drawn by a seed; never in CI, since it takes an hour or two.
MUTANTS ?= 200
MUTANTS_SEED ?= 1
MUTATION_TOOLS := build/mutants/tools
PACKAGES_OF := python -c "import sysconfig; print(sysconfig.get_path('purelib'))"

.PHONY: mutants
mutants: .venv/installed ## change a line and run quick tests that execute it, MUTANTS times: reports/mutants.csv
	$(BIN)/python -m venv $(MUTATION_TOOLS)
	$(MUTATION_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check cosmic-ray coverage
	$(BIN)/$(PACKAGES_OF) > "$$($(MUTATION_TOOLS)/bin/$(PACKAGES_OF))/hexconv_environment.pth"
	for step in trace run; do \
	    $(MUTATION_TOOLS)/bin/python -m tests.mutants $$step --mutants $(MUTANTS) --seed $(MUTANTS_SEED) || exit 1; \
	done
