SWEEP_CASES ?= 2000
SWEEP_SEEDS ?= 1 2 3
SWEEP_KERNEL ?=

.PHONY: sweep-deep
sweep-deep: .venv/installed ## check 2000 random cases for each of three seeds (SWEEP_CASES, SWEEP_SEEDS, SWEEP_KERNEL)
	@for seed in $(SWEEP_SEEDS); do \
		echo "seed $$seed"; \
		$(BIN)/hexconv sweep --random $(SWEEP_CASES) --seed $$seed $(SWEEP_KERNEL:%=--kernel %) || exit 1; \
	done

.PHONY: engine-sweep
engine-sweep: .venv/installed ## random cases for the matrix engine, three seeds: reports/engine_sweep.csv (takes hours, goes on where it was)
	$(BIN)/python -m reports.engine_sweep

.PHONY: engine-programs
engine-programs: .venv/installed ## random networks for the matrix engine, built and called, ten seeds: reports/engine_programs.csv (takes hours, goes on where it was)
	$(BIN)/python -m reports.engine_programs

KILLED_ROWS ?= 1000
KILLS ?= 10

.PHONY: sweep-killed
sweep-killed: .venv/installed ## sweep 1000 rows, killed ten times at random: the table of an undisturbed sweep (KILLED_ROWS, KILLS)
	$(BIN)/python -m tests.sweep.killed --rows $(KILLED_ROWS) --kills $(KILLS)
