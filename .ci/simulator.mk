.PHONY: simulator

simulator: .venv/installed ## run all cases on the Hexagon simulator: reports/simulator.csv (takes minutes)
	$(BIN)/hexconv doctor
	$(BIN)/python -m reports.simulator $(CASES)
	$(BIN)/python -m reports.quoted
