"""Run models with ONNX Runtime on this machine's CPU, and tell which operators it has fused."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from numpy.typing import NDArray

from hexconv.errors import InputError, ToolMissing
from hexconv.run.doctor import INSTALL_RUNTIME
from hexconv.written import scratch

Array = NDArray[Any]
Values = Mapping[str, Array]
ERRORS_ALONE = 3
MOVES_ALONE = ("Transpose",)
"""Operators that only move values: ONNX Runtime adds them where it gives a tensor back in the model's order."""


class Session:
    """A model that is loaded into ONNX Runtime, ready to run.

    Args (of the constructor):
        model: the model, with all of its data inside.
        name: the name of its file, for errors.

    Raises:
        ToolMissing: ONNX Runtime is not installed.
        InputError: ONNX Runtime does not take the model.
    """

    def __init__(self, model: onnx.ModelProto, name: str) -> None:
        found = runtime()
        options = found.SessionOptions()
        options.log_severity_level = ERRORS_ALONE
        with scratch() as folder:
            optimised = folder / "optimised.onnx"
            options.optimized_model_filepath = str(optimised)
            try:
                self._session = found.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
            except Exception as error:  # ONNX Runtime's errors have no class in common
                raise _refused(name, error) from None
            nodes = onnx.load(optimised, load_external_data=False).graph.node
        self.operators = Counter(f"{node.domain}.{node.op_type}".lstrip(".") for node in nodes)
        """How many operators of each kind the optimised model has."""
        self._name = name

    def run(self, outputs: Sequence[str], inputs: Values) -> dict[str, Array]:
        """Run the model; return its outputs by name.

        Raises:
            InputError: the model can't be run on these inputs.
        """
        try:
            return dict(zip(outputs, self._session.run(list(outputs), dict(inputs)), strict=True))
        except Exception as error:
            raise _refused(self._name, error) from None

    @property
    def fusions(self) -> Counter[str]:
        """How many operators of each kind compute something; operators that only move values are left out."""
        return Counter({op: count for op, count in self.operators.items() if op not in MOVES_ALONE})


def runtime() -> Any:
    """Import ONNX Runtime.

    Raises:
        ToolMissing: it is not installed.
    """
    try:
        import onnxruntime
    except ImportError:
        raise ToolMissing(f"verify needs ONNX Runtime, which is not installed: {INSTALL_RUNTIME}") from None
    return onnxruntime


def _refused(name: str, error: Exception) -> InputError:
    told = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return InputError.because(f"{name}: ONNX Runtime refuses the model: {told}", "name a model that it runs")
