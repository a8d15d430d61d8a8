"""Install what the oracles need: `python -m tests.oracles.install FOLDER`. Called by `make test-oracles`.

The libraries are taken out of wheels and kept in one folder; OpenCL goes into the virtual environment.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEELS = {
    "onednn-cpu-gomp==2023.2.0": {
        "onednn_cpu_gomp-2023.2.0.data/data/lib/libdnnl.so.3.2": "libdnnl.so.3",
    },
    # Declares Python 3.10 alone, but its simulators are plain shared libraries.
    "tpu_mlir==1.6.1": {
        f"tpu_mlir/lib/libcmodel_{chip}.so": f"libcmodel_{chip}.so" for chip in ("1684", "1684x", "1688")
    },
}
OPENCL = ("pyopencl>=2025", "pocl-binary-distribution==3.0")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for package, libraries in WHEELS.items():
        if not all((folder / name).exists() for name in libraries.values()):
            _tell(package, _unpack(package, libraries, folder))
    if importlib.util.find_spec("pyopencl") is None:
        _tell("OpenCL", _pip("install", *OPENCL))
    if not _compiles():
        _tell("a newer pocl: this one doesn't know the processor", _system_pocl())


def _unpack(package: str, libraries: dict[str, str], folder: Path) -> bool:
    """Take shared libraries out of a wheel."""
    with tempfile.TemporaryDirectory() as download:
        anyway = ("--no-deps", "--ignore-requires-python", "--python-version", "3.10", "--only-binary=:all:")
        if not _pip("download", *anyway, "--dest", download, package):
            return False
        with zipfile.ZipFile(next(Path(download).glob("*.whl"))) as wheel:
            for inside, name in libraries.items():
                (folder / name).write_bytes(wheel.read(inside))
    return True


def _pip(*arguments: str) -> bool:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=False).returncode == 0


def _compiles() -> bool:
    """Whether any OpenCL platform compiles kernels for this processor."""
    source = "from tests.oracles.opencl import device; device()"
    return subprocess.run([sys.executable, "-c", source], check=False, capture_output=True).returncode == 0


def _system_pocl() -> bool:
    """pocl of the distribution, where we may install it; what is installed is said before."""
    apt = shutil.which("apt-get")
    if not apt or os.geteuid() != 0:
        print("install pocl-opencl-icd with the system's package manager", file=sys.stderr)
        return False
    print(
        "apt-get install pocl-opencl-icd: OpenCL on this processor, for the layouts of MACE's images", file=sys.stderr
    )
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([apt, "update", "-qq"], check=False, env=quiet)
    command = [apt, "install", "-y", "-qq", "--no-install-recommends", "pocl-opencl-icd"]
    return subprocess.run(command, check=False, env=quiet).returncode == 0


def _tell(what: str, installed: bool) -> None:
    """A missing oracle isn't the end: its tests say that they didn't run."""
    print(f"{what}: {'installed' if installed else 'missing, its tests will not run'}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
