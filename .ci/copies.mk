COPY_SEEDS ?= 100
COPY_CASES := $(sort $(wildcard schedules/double-*.toml))
COPY_HVX_CASES := $(sort $(wildcard schedules/hvx/double-*.toml))

.PHONY: copies-deep
copies-deep: .venv/installed ## run the cases of asynchronous copies early, late, and at COPY_SEEDS random moments
	$(BIN)/hexconv run $(COPY_CASES) --copies early
	$(BIN)/hexconv run $(COPY_CASES) --copies late
	$(BIN)/hexconv run $(COPY_CASES) --copies random --fill random --seeds $(COPY_SEEDS)
	$(BIN)/hexconv run $(COPY_HVX_CASES) --target hexagon --no-slots --copies early
	$(BIN)/hexconv run $(COPY_HVX_CASES) --target hexagon --no-slots --copies late
	$(BIN)/hexconv run $(COPY_HVX_CASES) --target hexagon --no-slots --copies random --fill random --seeds $(COPY_SEEDS)
