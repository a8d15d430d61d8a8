# Networks as PyTorch exports them, in every form of ONNX Runtime's quantiser. Both are large, so installed on demand.
EXPORTED := build/exported
QUANTISED := build/quantised
TORCH := torch==2.13.0 torchvision==0.28.0

.PHONY: bench-networks
bench-networks: .venv/torch-installed ## every quantised network, whole, on the simulator: reports/networks.csv (takes hours, goes on where it was interrupted)
	$(BIN)/python -m tests.networks.export $(EXPORTED)
	$(BIN)/python -m tests.networks.quantise $(EXPORTED)/*.onnx --folder $(QUANTISED)
	$(BIN)/python -m reports.networks --slots $(QUANTISED)/*.onnx

.venv/torch-installed: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH) -e '.[verify]'
	@touch $@
