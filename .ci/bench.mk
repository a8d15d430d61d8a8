# Halide is large, so it is installed when the bench is first run.
.PHONY: bench trapped-words packets-pass mlir bench-start
bench: .venv/bench-installed ## our kernels beside Halide's: reports/hvx*.csv, quoted by README and pages
	$(BIN)/python -m reports.hvx --hvx $(sort $(wildcard schedules/hvx/*.toml))
	$(BIN)/python -m reports.hmx $(HMX_CASES)
	$(BIN)/python -m reports.quoted

trapped-words: .venv/installed ## the matrix engine's own words beside calls of its model, on QEMU 11: reports/trapped_words.csv
	$(BIN)/python -m reports.trapped_words $(HMX_CASES)

packets-pass: .venv/installed ## the pass over LLVM's packets, each case with and without it: reports/packets_pass.csv (takes minutes)
	$(BIN)/python -m reports.packets_pass $(HVX_CASES)

mlir: .venv/installed ## the linalg of all cases, compiled by MLIR's tools and run: reports/mlir.csv (takes minutes)
	$(BIN)/python -m reports.mlir $(CASES) $(HVX_CASES) $(HMX_CASES)

bench-start: .venv/installed ## how long --help takes, of the program and of each command
	$(BIN)/python -m reports.start

.venv/bench-installed: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@
