.PHONY: simulator

simulator: .venv/installed ## run all cases on the Hexagon simulator: reports/simulator.csv (takes minutes)
	$(BIN)/hexconv doctor
	$(BIN)/hexconv run $(CASES) --target hexagon --csv reports/simulator.csv
	$(BIN)/python -m reports.quoted
