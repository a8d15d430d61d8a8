# Today's best tools beside ours. Their packages are large (220 MB), so they are installed when the bench is first run.
.PHONY: bench
bench: .venv/bench-installed ## our kernels beside Halide's and oneDNN's: reports/bench.csv, reports/hvx*.csv
	$(BIN)/python -m hexconv.bench --hvx $(sort $(wildcard schedules/hvx/*.toml)) --host $(sort $(wildcard schedules/host/*.toml))

.venv/bench-installed: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@
