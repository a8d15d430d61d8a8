"""Link a kernel's object file to a program for the simulator, with the compiler and linker of the package `ziglang`.

Two libraries supply what LLVM calls instead of emitting: compiler-rt (integer division, of which Hexagon has
none, float16, float64, memcpy) and zig's libc (rint and the like). They and the harness are built once per
instruction set; only what a kernel calls is linked. Most kernels call nothing but Hexagon's own functions and copies of
memory, and these are built in a tenth of the time. So a kernel is linked with them first, and only one that lacks
a symbol has the whole libraries built.
"""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import tvm_ffi.libinfo

from hexconv.errors import RunFailed, ToolMissing
from hexconv.lower.hexagon_object import HexagonObject
from hexconv.run.simulator.made_files import cache_folder, cached, content_key
from hexconv.run.simulator.needs import INSTALL_ZIG
from hexconv.written import scratch

ZIG_TARGET = "hexagon-linux-musl"  # names an ABI for zig's libc; the programs are freestanding

_HARNESS_FLAGS = (
    *("-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-nostdlib"),
    *("-fno-stack-protector", "-fno-sanitize=all", "-g0"),
)
_HOST_FLAGS = ("-shared", "-fPIC", "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fno-sanitize=all")
_LIBRARY_FLAGS = ("-O", "ReleaseFast", "-ffunction-sections", "-fstrip", "-lc")
_COMPILER_RT = "compiler_rt.zig"
_LIBRARIES = (_COMPILER_RT, "c.zig")
_MOST_CALLED = ("hexagon", "memcpy", "memmove")
"""The files of compiler-rt that most kernels need no others beside; its root has `memset` and `memcmp`."""
_IMPORT = re.compile(r'^\s*_ = @import\("compiler_rt/(\w+)\.zig"\);\n', re.MULTILINE)


def zig_folder() -> Path:
    """Return the folder where the package `ziglang` is installed.

    Raises:
        ToolMissing: the package isn't installed.
    """
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None:
        raise ToolMissing(f"the package ziglang (clang and lld for Hexagon) is not installed; {INSTALL_ZIG}")
    return Path(found.origin).parent


def zig_version() -> str:
    """Return the version of the package `ziglang`."""
    zig_folder()
    return importlib.metadata.version("ziglang")


def program(kernel: HexagonObject, functions: str = "") -> Path:
    """Return a static program that runs this kernel in the harness, from the cache or linked now.

    Args:
        kernel: the kernel.
        functions: C of functions that take the place of the harness's of their names.

    Raises:
        ToolMissing: zig is not installed, or the cache folder can't be written.
        RunFailed: the kernel doesn't link; the text names the symbols it asks for.
    """
    own, most_called = [_harness(kernel.isa), *_compiled_text(functions, kernel.isa)], _most_called(kernel.isa)

    def build(path: Path) -> None:
        try:
            _link(kernel, (*own, most_called), path)
        except RunFailed:  # it calls more
            _link(kernel, (*own, *(_library(source, kernel.isa) for source in _LIBRARIES)), path)

    return cached("programs", content_key(kernel.elf, *(part.name for part in (*own, most_called))), build)


def _compiled_text(text: str, isa: str) -> list[Path]:
    """Compile C; nothing where there is none."""
    if not text:
        return []
    with scratch() as folder:
        source = folder / "functions.c"
        source.write_text(text)
        return [kept_object(source, *harness_flags(isa))]


def probe_program() -> Path:
    """Return a program of the oldest instruction set that uses HVX once and exits with status 0."""
    source = resources.files("hexconv.run.simulator") / "harness" / "probe.s"
    key = content_key(source.read_bytes(), zig_version())
    flags = ["-mcpu=hexagonv60", "-mhvx", "-nostdlib", "-static"]

    def build(path: Path) -> None:
        with resources.as_file(source) as assembly:
            zig("cc", "-target", ZIG_TARGET, *flags, str(assembly), "-o", str(path))

    return cached("probes", key, build)


def engine_library() -> Path:
    """Return the harness's copy engine as a shared library for this machine.

    Raises:
        ToolMissing: zig is not installed, or the cache folder can't be written.
    """
    folder = resources.files("hexconv.run.simulator") / "harness"
    names = ("copies.c", "copies.h", "counters.h", "events.h", "threads.h", "host/counters.c")
    key = content_key(
        zig_version(), *_HOST_FLAGS, *(part for name in names for part in (name, folder.joinpath(name).read_bytes()))
    )

    def build(path: Path) -> None:
        with resources.as_file(folder) as place:
            units = [str(place / name) for name in names if name.endswith(".c")]
            zig("cc", *_HOST_FLAGS, *units, "-o", str(path))

    return cached("engines", key, build)


def kept_object(source: Path, *flags: str) -> Path:
    """Compile a C file to an object that is kept, by its text, the `hexconv_*.h` beside it and the flags.

    Raises:
        ToolMissing: zig is not installed, or the cache folder can't be written.
        RunFailed: it doesn't compile.
    """
    texts = [source, *sorted(source.parent.glob("hexconv_*.h"))]
    key = content_key(zig_version(), *flags, *(part for text in texts for part in (text.name, text.read_bytes())))
    return cached("objects", f"{key}.o", lambda path: zig("cc", *flags, "-c", str(source), "-o", str(path)))


def harness_flags(isa: str) -> tuple[str, ...]:
    """The flags that C beside the harness is compiled with."""
    return "-target", ZIG_TARGET, f"-mcpu=hexagon{isa}", *_HARNESS_FLAGS


def join_foreign(kernel: Path, entry: Path, isa: str, *flags: str) -> bytes:
    """Join a kernel that another compiler made and a C file, with the entry that the harness calls, to one object.

    Raises:
        ToolMissing: zig is not installed.
        RunFailed: the entry doesn't compile.
    """
    headers = (tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path())
    flags = (*harness_flags(isa), *(f"-I{folder}" for folder in headers), *flags)
    with scratch() as folder:
        joined = folder / "joined.o"
        zig("cc", *flags, "-r", str(entry), str(kernel), "-o", str(joined))
        return joined.read_bytes()


def _link(kernel: HexagonObject, parts: Sequence[Path], path: Path) -> None:
    with scratch() as folder:
        unlinked = folder / "kernel.o"
        unlinked.write_bytes(kernel.elf)
        zig("ld.lld", "-static", "--gc-sections", *map(str, parts), str(unlinked), "-o", str(path))


def _harness(isa: str) -> Path:
    folder = resources.files("hexconv.run.simulator") / "harness"
    sources = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.endswith((".c", ".h"))}
    contents = [part for name in sorted(sources) for part in (name, sources[name])]
    ffi_version = importlib.metadata.version("apache-tvm-ffi")  # its headers are the ABI
    key = content_key(isa, zig_version(), ffi_version, *_HARNESS_FLAGS, *contents)

    def build(path: Path) -> None:
        headers = (tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path())
        flags = [*harness_flags(isa), *(f"-I{folder}" for folder in headers)]
        with resources.as_file(folder) as place:
            units = [str(place / name) for name in sorted(sources) if name.endswith(".c")]
            zig("cc", *flags, "-r", *units, "-o", str(path))

    return cached("harness", key, build)


def _library(source: str, isa: str) -> Path:
    """Build one of zig's own libraries from its root file."""
    key = content_key(source, isa, zig_version(), *_LIBRARY_FLAGS)
    return cached("libraries", key, lambda path: _compiled(zig_folder() / "lib" / source, isa, path))


def _most_called(isa: str) -> Path:
    """Build the part of compiler-rt that most kernels call: its root file without its other imports."""
    key = content_key(_COMPILER_RT, *_MOST_CALLED, isa, zig_version(), *_LIBRARY_FLAGS)

    def build(path: Path) -> None:
        library = zig_folder() / "lib"
        text = (library / _COMPILER_RT).read_text()
        with scratch() as folder:
            (folder / "compiler_rt").symlink_to(library / "compiler_rt")
            root = folder / _COMPILER_RT
            root.write_text(_IMPORT.sub(lambda line: line[0] if line[1] in _MOST_CALLED else "", text))
            _compiled(root, isa, path)

    return cached("libraries", key, build)


def _compiled(root: Path, isa: str, path: Path) -> None:
    """Compile a library from its root file."""
    arguments = ["-target", ZIG_TARGET, f"-mcpu=hexagon{isa}", *_LIBRARY_FLAGS, str(root)]
    zig("build-obj", *arguments, f"-femit-bin={path}")


def zig(*arguments: str) -> None:
    """Run zig with its own caches inside ours."""
    caches = {name: str(cache_folder() / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    command = [str(zig_folder() / "zig"), *arguments]
    done = subprocess.run(command, env={**os.environ, **caches}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunFailed(f"zig {arguments[0]} failed: {done.stderr.strip()[:600]}")
