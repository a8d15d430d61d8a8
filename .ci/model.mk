.PHONY: model rates engine-prices fits plans bytes bytes-networks bench-search bench-qnn
SOME_NETS = $(if $(NETS),--nets $(NETS))

model: .venv/installed ## the model of latency against 200 runs that it was not fitted to: reports/model.csv (takes minutes)
	$(BIN)/python -m reports.model

rates: .venv/installed ## fit the prices of the model to runs on the simulator: hexconv/search/machines/v67.toml (takes minutes)
	$(BIN)/python -m reports.rates

engine-prices: .venv/installed ## fit what a thread does beside the matrix engine to drawn runs: hexconv/search/machines/engine.toml (takes minutes)
	$(BIN)/python -m reports.engine_prices

fits: .venv/installed ## lower, count and run every answer of the board of bytes: reports/fits.csv (takes hours; NETS="vgg16 ..." are some)
	$(BIN)/python -m reports.fits $(SOME_NETS)

plans: .venv/installed ## the search against brute force over all heights, widths and cuts: reports/plans.csv (takes minutes)
	$(BIN)/python -m reports.plans

bytes: .venv/installed ## the bytes that the best plans of 23 nets move: reports/bytes.csv, and the page that quotes it (takes minutes)
	$(BIN)/python -m reports.bytes $(SOME_NETS)
	$(BIN)/python -m reports.bytes_picture
	$(BIN)/python -m reports.quoted

bench-search: .venv/installed ## how many plans a second a search looks at, by kernel (CHAINS="fsrcnn mobilenetv2/stem my.toml" are some)
	$(BIN)/python -m reports.planning $(CHAINS)

# QNN's planner has an environment of its own. Its licence allows use for benchmarks; hexconv never imports it.
QNN := build/qnn
QNN_PACKAGES := onnxruntime==1.31.1 onnxruntime-qnn==2.7.0
bench-qnn: $(QNN)/installed ## ask QNN's planner for its bytes, on x86-64: reports/qnn.csv; then `make bytes`
	$(BIN)/python -m reports.qnn $(QNN)/bin/python $(SOME_NETS)
	$(MAKE) bytes

$(QNN)/installed: .venv/installed
	$(BIN)/python -m venv $(QNN)
	$(QNN)/bin/python -m pip install --quiet --disable-pip-version-check $(QNN_PACKAGES)
	@touch $@

IN_CODES := resnet18 resnet50 mobilenet_v2 mobilenet_v3 efficientnet_b0 googlenet squeezenet densenet121 unet edsr fsrcnn
bytes-networks: .venv/installed ## the bytes of whole networks at 1 to 8 MiB: reports/networks_bytes.csv; asks QNN's planner, too, where `make bench-qnn` installed it
	$(BIN)/python -m tests.verify.full_size build/codes $(IN_CODES) --forms tensor --codes
	$(BIN)/python -m reports.networks_bytes $(IN_CODES:%=build/codes/%-tensor-codes.onnx) $(addprefix --qnn ,$(wildcard $(QNN)/bin/python))
