COPY_SEEDS ?= 100

.PHONY: copies-deep
copies-deep: .venv/installed ## run the cases of asynchronous copies early, late, and at COPY_SEEDS random moments
	$(BIN)/hexconv run schedules/double-*.toml --copies early
	$(BIN)/hexconv run schedules/double-*.toml --copies late
	$(BIN)/hexconv run schedules/double-*.toml --copies random --fill random --seeds $(COPY_SEEDS)
