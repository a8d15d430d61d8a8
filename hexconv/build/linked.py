"""A kernel and the C between it and its caller, in one object."""

import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from hexconv.run.simulator.toolchain import ZIG_TARGET, zig
from hexconv.spec import Target

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
)
PLATFORM_HEADER = "hexconv_platform.h"


def platform_files() -> dict[str, bytes]:
    """The C files that are the same for every chain, by name."""
    return c_files("hexconv.build", "platform")


def c_files(package: str, folder_name: str) -> dict[str, bytes]:
    """The C files in a folder of a package, by name."""
    folder = resources.files(package) / folder_name
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith((".c", ".h"))}


def machine_flags(target: Target, isa: str) -> tuple[str, ...]:
    """What zig has to know of the machine."""
    return ("-target", ZIG_TARGET, f"-mcpu=hexagon{isa}") if target == "hexagon" else ()


def linked(kernel: bytes, texts: Mapping[str, str], name: str, target: Target, isa: str) -> bytes:
    """`NAME.o`: the kernel's code, and `NAME_init` and `NAME_run` before it.

    Args:
        kernel: the object that TVM made.
        texts: `NAME.c` and `NAME.h`.
        name: of the chain.
        target: what the object is for.
        isa: the instruction set, of Hexagon.

    Raises:
        ToolMissing: no zig.
    """
    with tempfile.TemporaryDirectory(prefix="hexconv-") as folder:
        place = Path(folder)
        (place / PLATFORM_HEADER).write_bytes(platform_files()[PLATFORM_HEADER])
        (place / "kernel.o").write_bytes(kernel)
        for file in (f"{name}.c", f"{name}.h"):
            (place / file).write_text(texts[file])
        sources = [str(place / f"{name}.c"), str(place / "kernel.o")]
        zig("cc", *machine_flags(target, isa), *FLAGS, "-nostdlib", "-r", *sources, "-o", str(place / "whole.o"))
        return (place / "whole.o").read_bytes()


def archived(objects: Mapping[str, bytes]) -> bytes:
    """Objects, by the names of their files, in one library; the same objects give the same bytes.

    Raises:
        ToolMissing: no zig.
    """
    with tempfile.TemporaryDirectory(prefix="hexconv-") as folder:
        for name, content in objects.items():
            (Path(folder) / name).write_bytes(content)
        whole = Path(folder) / "whole.a"
        zig("ar", "rcsD", str(whole), *(str(Path(folder) / name) for name in objects))
        return whole.read_bytes()
