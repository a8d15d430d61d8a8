# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportArgumentType=false
# The types of the packages that it imports are not installed where the rest is checked.
"""Prepare one model for an HTP with the planner of onnxruntime-qnn; its log goes to standard error.

This file is run by the Python of the environment that has onnxruntime-qnn, and imports nothing of hexconv:

    python prepare.py MODEL.onnx VTCM_MIB HTP_ARCH
"""

import sys
from pathlib import Path

VERBOSE = 0


def main(model: str, vtcm_mib: str, htp_arch: str) -> None:
    """Open a session, which prepares the graph, and does not run it."""
    # Imported here: tests import this file where only hexconv's own packages are installed.
    import onnxruntime
    import onnxruntime_qnn

    onnxruntime.set_default_logger_severity(VERBOSE)
    onnxruntime.register_execution_provider_library("QNN", onnxruntime_qnn.get_library_path())
    device = next(each for each in onnxruntime.get_ep_devices() if each.ep_name == "QNN")
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_file_path", str(Path(model).with_suffix(".context.onnx")))
    options.add_provider_for_devices(
        [device],
        {
            "backend_path": str(Path(onnxruntime_qnn.__file__).parent / "libQnnHtp.so"),
            "htp_arch": htp_arch,
            "vtcm_mb": vtcm_mib,
            "htp_graph_finalization_optimization_mode": "3",
            "offload_graph_io_quantization": "0",
        },
    )
    onnxruntime.InferenceSession(model, options)


if __name__ == "__main__":
    main(*sys.argv[1:])
