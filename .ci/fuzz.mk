# Hostile input: files, grids, layouts, command lines, networks and models. Included by the Makefile.
FUZZ_INPUTS ?= 100000
GUIDED_RUNS ?= 10000
DRAWS ?= 20000
FUZZ_TARGETS := case grid layout command network onnx weights

.PHONY: fuzz fuzz-quantised
fuzz: .venv/installed ## give 100,000 hostile inputs to all that reads, and 10,000 by coverage to each (FUZZ_INPUTS, GUIDED_RUNS)
	HEXCONV_FUZZ_INPUTS=$(FUZZ_INPUTS) $(BIN)/python -m pytest -q -s -n 0 tests/fuzz
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris 2>/dev/null || true
	@mkdir -p build; for target in $(FUZZ_TARGETS); do \
		echo "by coverage: $$target"; \
		$(BIN)/python -m tests.fuzz.guided $$target --runs $(GUIDED_RUNS) 2>build/fuzz-$$target.log || \
			{ tail -40 build/fuzz-$$target.log; exit 1; }; \
		tail -1 build/fuzz-$$target.log; \
	done

fuzz-quantised: .venv/installed ## judge 20,000 networks as quantisers write them by ONNX's definitions; goes on where it stopped (DRAWS)
	$(BIN)/python -m tests.quantisers --draws $(DRAWS) --verify-every 20 --workers $(WORKERS)
