# The real implementations of the layouts: large, so apart from the other tests. Included by the Makefile.
ORACLES := build/oracles

.PHONY: test-oracles golden-oracles
test-oracles: .venv/installed ## check layouts against oneDNN, OpenCL and Sophgo's simulators (230 MB, downloaded once)
	$(BIN)/python -m tests.oracles.install $(ORACLES)
	HEXCONV_ORACLES=$(ORACLES) $(BIN)/python -m pytest -q tests/oracles

golden-oracles: .venv/installed ## ask the oracles again and write tests/layout/golden
	$(BIN)/python -m tests.oracles.install $(ORACLES)
	HEXCONV_ORACLES=$(ORACLES) $(BIN)/python -m tests.oracles.record

.PHONY: bench-layout
bench-layout: .venv/installed ## how quick layouts are, beside numpy's own transpose
	$(BIN)/python -m tests.layout.benchmark
