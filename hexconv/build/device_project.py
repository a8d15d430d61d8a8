"""FastRPC project around a built library: interface, the DSP's side, the host's side, and how both are compiled.

The project lies in the folder `fastrpc` of the library, whose files it takes from the folder above it. C that is the
same for all projects lies beside this file in `fastrpc`, and in `standin` what takes the place of SDK and device.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from hexconv.build.built_chain import Argument, BuiltFiles, c_files
from hexconv.build.rendering import PACKAGE, rendered
from hexconv.errors import InputError, Unsupported
from hexconv.spec import Target
from hexconv.whitelist import Code

FOLDER = "fastrpc"
STANDIN = "standin"
MOST_PORTS = 254
"""The most buffers that a call has in or out, beside the one of numbers that each has."""
_TEMPLATES = {
    "device.idl": "{}.idl",
    "device_dsp.c": "{}_dsp.c",
    "device_host.c": "{}_host.c",
    "device_Makefile": "Makefile",
    "device_CMakeLists.txt": "CMakeLists.txt",
    "device_README.md": "README.md",
    "standin_device.h": "standin/{}.h",
    "standin_device_stub.c": "standin/{}_stub.c",
    "standin_device_skel.c": "standin/{}_skel.c",
}
"""By template: the file that it makes; `{}` is the name of the interface."""


@dataclass(frozen=True)
class DevicePort:
    """A tensor that the host sends or gets.

    Attributes:
        name: a C identifier.
        file: the file with its values: an input, or the output that numpy computed.
        dtype: the type of an element.
        is_input: whether the host sends it.
        elements: how many elements it has.
        bytes: the bytes that it takes.
        absolute: how far an element may be from the wanted one.
        relative: the same as a share of the wanted one.
        of_largest: the same as a share of the largest wanted one.
    """

    name: str
    file: str
    dtype: str
    is_input: bool
    elements: int
    bytes: int
    absolute: float = 0.0
    relative: float = 0.0
    of_largest: float = 0.0


@dataclass(frozen=True)
class DeviceProgram:
    """A chain, or a network, that the DSP's side runs.

    Attributes:
        name: the C identifier that its functions begin with.
        header: the file that declares them.
        weights_file: the file with its weights.
        weights_bytes: the bytes of that file.
        vtcm_bytes: the VTCM that it takes.
        threads: how many threads it uses.
        ports: its inputs, then its outputs, in the order of its parameters.
        operators: whether its `init` takes operators: that of a network does.
        sources: its C files, beside the library's objects.
    """

    name: str
    header: str
    weights_file: str
    weights_bytes: int
    vtcm_bytes: int
    threads: int
    ports: tuple[DevicePort, ...]
    operators: bool = False
    sources: tuple[str, ...] = ()


def check_project(target: Target) -> None:
    """Refuse a project for another target than Hexagon.

    Raises:
        InputError: the target is this machine.
    """
    if target != "hexagon":
        raise InputError.because(
            f"--project fastrpc with --target {target}", "take --target hexagon: the project runs on a DSP"
        )


def of_chain(chain: BuiltFiles) -> DeviceProgram:
    """Return a built chain as a program."""
    name, built, accepted = chain.built.name, chain.built, chain.accepted
    ports = (
        _port("input", built.input, f"{name}.input.bin"),
        _port("output", built.output, f"{name}.output.bin", accepted.absolute, accepted.relative),
    )
    sizes = (built.weights_bytes, built.vtcm_bytes, built.threads)
    return DeviceProgram(name, f"{name}.h", f"{name}.weights.bin", *sizes, ports)


def _port(way: str, tensor: Argument, file: str, absolute: float = 0.0, relative: float = 0.0) -> DevicePort:
    elements = tensor.bytes // _item_bytes(tensor)
    return DevicePort(way, file, tensor.dtype, way == "input", elements, tensor.bytes, absolute, relative)


def _item_bytes(tensor: Argument) -> int:
    import numpy as np

    return np.dtype(tensor.dtype).itemsize


def project_files(name: str, programs: Sequence[DeviceProgram], isa: str, engine: bool) -> dict[str, bytes]:
    """Return the files of a project by their paths in the library's folder.

    Args:
        name: the C identifier of the network, or of the first chain.
        programs: what it runs: one network, or chains, whose ports have the same names.
        isa: the instruction set of the library.
        engine: whether any of them uses the matrix engine.

    Raises:
        Unsupported: more inputs or outputs than a call takes.
    """
    for way, several in (("inputs", True), ("outputs", False)):
        count = sum(port.is_input is several for port in programs[0].ports)
        if count > MOST_PORTS:
            raise Unsupported(f"{name} has {count} {way}, and a call of FastRPC takes {MOST_PORTS}")
    words = _words(name, programs, isa, engine)
    texts = {
        place.format(words["interface"]): rendered(template, words).encode() for template, place in _TEMPLATES.items()
    }
    fixed = {STANDIN: files(PACKAGE) / STANDIN}
    texts |= c_files(PACKAGE, FOLDER)
    for folder, place in fixed.items():
        texts |= {f"{folder}/{file.name}": file.read_bytes() for file in place.iterdir() if file.is_file()}
    return {f"{FOLDER}/{path}": text for path, text in texts.items()}


def _words(name: str, programs: Sequence[DeviceProgram], isa: str, engine: bool) -> Mapping[str, Any]:
    ports = programs[0].ports
    sources = sorted({source for program in programs for source in program.sources})
    return {
        "interface": Code("{}_device").format(name),
        "programs": programs,
        "ports": ports,
        "inputs": sum(port.is_input for port in ports),
        "outputs": sum(not port.is_input for port in ports),
        "isa": isa,
        "arch": int(isa.removeprefix("v")),
        "engine": int(engine),
        "sources": sources,
        "vtcm_bytes": max(program.vtcm_bytes for program in programs),
        "version": version("hexconv"),
    }
