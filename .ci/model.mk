.PHONY: model rates fits bytes
model: .venv/installed ## the model of latency against 200 runs that it was not fitted to: reports/model.csv (takes minutes)
	$(BIN)/python -m hexconv.bench.model

rates: .venv/installed ## fit the prices of the model to runs on the simulator: hexconv/search/machines/v67.toml (takes minutes)
	$(BIN)/python -m hexconv.bench.rates

fits: .venv/installed ## the chains of VGG-16 and ResNet-50 in 4, 2 and 1 MiB, planned and run: reports/fits.csv (takes minutes)
	$(BIN)/python -m hexconv.bench.fits

bytes: .venv/installed ## what the best plans of published chains move, beside QNN's planner: reports/bytes.csv, quoted by a page
	$(BIN)/python -m hexconv.bench.traffic
	$(BIN)/python -m hexconv.bench.quoted
