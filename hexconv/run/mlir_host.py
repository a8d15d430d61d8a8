"""Run a chain's linalg on this machine: mlir-opt lowers it to LLVM's dialect, mlir-translate to IR, clang to code.

MLIR's tools are the distribution's. What the code allocates starts as poison and lies between guards; so does the
output. The code is called in a process of its own, which it may crash.
"""

import atexit
import ctypes
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

import numpy as np
import tvm

from hexconv.apart.process import Apart, Limits, Task
from hexconv.errors import Overran, RunFailed, ToolMissing
from hexconv.mlir.linalg_chain import TILED, arguments_of, linalg_text
from hexconv.run.host import Guarded
from hexconv.run.measurement import Array, Measurement, ShapeAndType
from hexconv.run.simulator.made_files import cached, content_key
from hexconv.run.simulator.needs import INSTALL_MLIR
from hexconv.run.simulator.toolchain import zig, zig_version
from hexconv.spec import Case
from hexconv.written import scratch

MLIR_OPT, MLIR_TRANSLATE = "mlir-opt", "mlir-translate"
OLDEST_MLIR, NEWEST_MLIR = 19, 30
"""The versions whose names are looked for. LLVM 19 is the oldest that reads the text."""
PASSES = (
    *("--canonicalize", "--cse"),
    "--one-shot-bufferize=bufferize-function-boundaries=1 function-boundary-type-conversion=identity-layout-map",
    *("--canonicalize", "--cse", "--drop-equivalent-buffer-results", "--buffer-deallocation-pipeline"),
    *("--scf-forall-to-for", "--convert-linalg-to-loops", "--expand-strided-metadata", "--lower-affine"),
    *("--canonicalize", "--cse", "--loop-invariant-code-motion", "--convert-scf-to-cf", "--convert-arith-to-llvm"),
    *("--finalize-memref-to-llvm=use-generic-functions=1", "--convert-func-to-llvm", "--convert-cf-to-llvm"),
    "--reconcile-unrealized-casts",
)
"""From linalg on tensors to LLVM's dialect."""
_FLAGS = ("-shared", "-fPIC", "-O3", "-fno-sanitize=all", "-Wno-override-module")
ENTRY = "_mlir_ciface_"
"""How the name of a function begins that takes pointers to descriptors."""
MEMORY = "mlir_memory.c"
RESULT = "result.npy"
SECONDS, MEMORY_BYTES = 600.0, 8 << 30


@dataclass(frozen=True)
class MlirTools:
    """The tools of one version of MLIR.

    Attributes:
        opt: the path of mlir-opt.
        translate: the path of mlir-translate.
        version: its version.
    """

    opt: str
    translate: str
    version: str


@cache
def find_mlir() -> MlirTools:
    """Find mlir-opt and mlir-translate on PATH, under their plain names or with a version behind, the oldest first.

    Raises:
        ToolMissing: one of them is not there, or they are too old.
    """
    for suffix in ("", *(f"-{version}" for version in range(OLDEST_MLIR, NEWEST_MLIR))):
        opt, translate = (shutil.which(name + suffix) for name in (MLIR_OPT, MLIR_TRANSLATE))
        if opt and translate and (version := _version(opt)) and int(version.split(".")[0]) >= OLDEST_MLIR:
            return MlirTools(opt, translate, version)
    raise ToolMissing(f"{MLIR_OPT} of LLVM {OLDEST_MLIR} or newer is not installed; {INSTALL_MLIR}")


def _version(opt: str) -> str:
    """Return the version of a tool; empty where it doesn't say."""
    done = subprocess.run([opt, "--version"], capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"LLVM version (\d+[.\d]*)", done.stdout)
    return found.group(1) if found else ""


def optimised(text: str, passes: Iterable[str] = ()) -> str:
    """Return what mlir-opt makes of a module, which it verifies.

    Raises:
        ToolMissing: mlir-opt is not installed.
        RunFailed: the text is no valid MLIR, or a pass fails, or takes too long.
    """
    return _piped(find_mlir().opt, list(passes), text)


def _piped(tool: str, arguments: Sequence[str], text: str) -> str:
    try:
        done = subprocess.run(
            [tool, *arguments], input=text, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise Overran(f"{Path(tool).name} took more than {SECONDS:.0f} s; use a smaller case") from None
    if done.returncode != 0:
        raise RunFailed(f"{Path(tool).name} failed: {done.stderr.strip()[:600]}")
    return done.stdout


def library(text: str) -> Path:
    """Return a module of MLIR as a shared library for this machine, from the cache or compiled now.

    Raises:
        ToolMissing: MLIR's tools or zig are not installed, or the cache folder can't be written.
        RunFailed: the text is no valid MLIR, or doesn't compile.
    """
    tools, memory = find_mlir(), resources.files("hexconv.run") / MEMORY
    key = content_key(text, tools.version, zig_version(), memory.read_bytes(), *PASSES, *_FLAGS)

    def build(path: Path) -> None:
        code = _piped(tools.translate, ["--mlir-to-llvmir"], optimised(text, PASSES))
        if code.count(f"define void @{ENTRY}") < code.count(f"@{ENTRY}"):
            raise RunFailed("a function returns memory of its own, and doesn't fill its last argument")
        with scratch() as folder, resources.as_file(memory) as source:
            unit = folder / "chain.ll"
            unit.write_text(code)
            zig("cc", *_FLAGS, str(unit), str(source), "-o", str(path))

    return cached("linalg", key, build)


@dataclass(frozen=True)
class MlirHost:
    """The `mlir` target: the linalg of a case as code for the CPU that hexconv runs on.

    Attributes:
        case: the case, loaded for this machine, so that its tensors are those of the documents.
        entry: the function that is called.
        passes: passes of mlir-opt that change the text first.
    """

    case: Case
    entry: str = TILED
    passes: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The name of this runner on the command line."""
        return "mlir"

    def run(self, module: tvm.IRModule, inputs: Sequence[Array], outputs: Sequence[ShapeAndType]) -> Measurement:
        """Call the function once; the module, which computes the same, is left aside.

        Raises:
            RunFailed: the text is no valid MLIR, or its code wrote beside a buffer, or crashed.
            ToolMissing: MLIR's tools, or zig, which compiles what they make, are not installed.
        """
        del module
        text = linalg_text(self.case)
        text = optimised(text, self.passes) if self.passes else text
        code = library(text)
        wanted = [each.shape for each in arguments_of(self.case.chain).values()]
        assert [*(each.shape for each in inputs), outputs[0][0]] == wanted, "tensors of the documents"
        with scratch() as folder:
            for number, array in enumerate(inputs):
                np.save(folder / f"{number}.npy", array, allow_pickle=False)
            task = {"code": str(code), "entry": self.entry, "folder": str(folder), "output": outputs[0]}
            ending = _caller(os.getpid()).do(task)
            if ending.how != "answered":
                overran = ending.how in ("overran", "out_of_memory")
                raise (Overran if overran else RunFailed)(f"the code that MLIR made gave no answer: {ending.reason}")
            return Measurement((np.load(folder / RESULT, allow_pickle=False),), ending.answer["seconds"])


@lru_cache(maxsize=1)
def _caller(_process: int) -> Apart:
    """Return the process that calls for this one what may crash."""
    apart = Apart("hexconv.run.mlir_host:call", Limits(SECONDS, MEMORY_BYTES))
    atexit.register(apart.close)
    return apart


def call(task: Task) -> Task:
    """Call a function on the arrays of a folder, `0.npy` and so on, and leave its result there; return its seconds.

    Args:
        task: `code`, a shared library; `entry`, a function of it; `folder`; `output`, its result's shape and dtype.

    Raises:
        RunFailed: the code wrote beside a buffer.
    """
    code, folder = ctypes.CDLL(task["code"]), Path(task["folder"])
    shape, dtype = task["output"]
    result = Guarded.of(tuple(shape), dtype)
    arrays = [
        np.load(folder / f"{number}.npy", allow_pickle=False) for number in range(len(list(folder.glob("*.npy"))))
    ]
    descriptors = [_descriptor(array) for array in (*arrays, result.array)]
    function = getattr(code, f"{ENTRY}{task['entry']}")
    function.restype = None
    broken = ctypes.c_int64.in_dll(code, "hexconv_broken_guards")
    broken.value, started = 0, time.perf_counter()
    function(*(ctypes.c_void_p(each.ctypes.data) for each in descriptors))
    seconds = time.perf_counter() - started
    result.check("the output")
    if broken.value:
        raise RunFailed(f"it wrote outside of {broken.value} of the buffers that it allocated")
    np.save(folder / RESULT, result.array, allow_pickle=False)
    return {"seconds": seconds}


def _descriptor(array: Array) -> Array:
    """Return MLIR's descriptor of a contiguous array: allocated, aligned, offset, sizes, strides."""
    strides = [stride // array.itemsize for stride in array.strides]
    return np.array([array.ctypes.data, array.ctypes.data, 0, *array.shape, *strides], np.int64)
