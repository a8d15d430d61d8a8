"""Links a kernel and the C code between the kernel and its caller to one object."""

from collections.abc import Mapping
from importlib import resources

from hexconv.run.simulator.toolchain import ZIG_TARGET, zig
from hexconv.spec import Target
from hexconv.written import scratch

FLAGS = (
    "-O2",
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fno-stack-protector",
    "-fno-sanitize=all",
    "-ffreestanding",
    "-fPIC",
    "-g0",  # zig's own default would put the paths of the folder that is compiled in into the object
)
PLATFORM_HEADER = "hexconv_platform.h"


def platform_files() -> dict[str, bytes]:
    """Return the texts of the C files that are the same for every chain, by file name."""
    return c_files("hexconv.build", "platform")


def c_files(package: str, folder_name: str) -> dict[str, bytes]:
    """Return the texts of the C files in a folder of a package, by file name."""
    folder = resources.files(package) / folder_name
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith((".c", ".h"))}


def machine_flags(target: Target, isa: str) -> tuple[str, ...]:
    """Return the flags that tell zig which machine to compile for."""
    return ("-target", ZIG_TARGET, f"-mcpu=hexagon{isa}") if target == "hexagon" else ()


def linked(kernel: bytes, texts: Mapping[str, str], name: str, target: Target, isa: str) -> bytes:
    """Link `NAME.o`, which has the kernel's code, and `NAME_init` and `NAME_run` that call it.

    Args:
        kernel: the object that TVM made.
        texts: the texts of `NAME.c` and `NAME.h`.
        name: the C name of the chain.
        target: `hexagon`, or `llvm` for this machine.
        isa: the instruction set, for Hexagon.

    Raises:
        ToolMissing: no zig.
    """
    with scratch() as place:
        (place / PLATFORM_HEADER).write_bytes(platform_files()[PLATFORM_HEADER])
        (place / "kernel.o").write_bytes(kernel)
        for file in (f"{name}.c", f"{name}.h"):
            (place / file).write_text(texts[file])
        sources = [str(place / f"{name}.c"), str(place / "kernel.o")]
        zig("cc", *machine_flags(target, isa), *FLAGS, "-nostdlib", "-r", *sources, "-o", str(place / "whole.o"))
        return (place / "whole.o").read_bytes()


def archived(objects: Mapping[str, bytes]) -> bytes:
    """Put objects, given by the names of their files, into one library; the same objects give the same bytes.

    Raises:
        ToolMissing: no zig.
    """
    with scratch() as place:
        for name, content in objects.items():
            (place / name).write_bytes(content)
        whole = place / "whole.a"
        zig("ar", "rcsD", str(whole), *(str(place / name) for name in objects))
        return whole.read_bytes()
