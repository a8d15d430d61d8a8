"""Make an object file of what LLVM has compiled for Hexagon, by way of its assembly, where packets are mended."""

import errno
import os
import re
import resource
import warnings

import tvm
from tvm.target import Target

from hexconv.errors import HexconvWarning, Unsupported
from hexconv.lower.packets.assembled import Refused, assembled, compiled_apart
from hexconv.lower.packets.far_loops import with_loops_in_reach
from hexconv.lower.packets.fewer_stalls import with_fewer_stalls
from hexconv.lower.packets.low_registers import NoLowRegister, with_low_registers
from hexconv.lower.packets.stored_loads import without_stored_loads

_VECTOR = re.compile(r"^\t\tv\d", re.MULTILINE)  # an instruction of LLVM's assembly that writes a vector register


def has_vectors(text: str) -> bool:
    """Whether assembly has instructions of HVX."""
    return _VECTOR.search(text) is not None


def object_file(library: tvm.runtime.Module, text: str, isa: str, target: Target) -> tuple[bytes, str]:
    """Assemble what LLVM has made: return an object file, its packets with fewer stalls, and its assembly.

    Code without vectors keeps LLVM's own packets; so does, with a warning, code whose improved packets the assembler
    refuses. If the assembler refuses LLVM's own packets too, there is no object file: LLVM's would compute something
    else.

    Args:
        library: LLVM's module.
        text: its assembly.
        isa: the instruction set.
        target: TVM's target for that instruction set.

    Raises:
        Unsupported: LLVM has written instructions that do not exist.
    """
    if not has_vectors(text):
        return as_it_is(library), text
    text = possible(text)
    changed = with_fewer_stalls(text, isa)
    try:
        return assembled(changed, target), changed
    except Refused as refused:
        warnings.warn(
            f"LLVM's assembler refuses the packets with fewer stalls for {isa} ({refused}); its own are used, with the "
            "stalls that they have; please report it",
            HexconvWarning,
            stacklevel=2,
        )
    try:
        return assembled(text, target), text
    except Refused as refused:
        raise _impossible(str(refused)) from refused


def possible(text: str) -> str:
    """Return assembly whose instructions all exist, and that every simulator runs right.

    Raises:
        Unsupported: an instruction names a register that it can't encode, and its packet can't be changed.
    """
    try:
        return with_loops_in_reach(without_stored_loads(with_low_registers(text)))
    except NoLowRegister as packet:
        raise _impossible(f"in the packet {packet}") from packet


def _impossible(where: str) -> Unsupported:
    """Build the error for assembly that LLVM writes and its assembler refuses."""
    return Unsupported(
        f"LLVM compiles this kernel to an instruction that does not exist ({where}), so its object file would compute "
        'something else; state another plan, such as activations = "words", and please report it'
    )


def as_it_is(library: tvm.runtime.Module) -> bytes:
    """Return the object file that LLVM makes of its own packets, by memory: on a full disk LLVM ends the process.

    It does so too where a limit of files is reached, which memory has as well; a process apart makes it then.

    Raises:
        OSError: files may not grow as large as this one is.
    """
    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        try:
            return compiled_apart(library.inspect_source("ll"))
        except Refused as refused:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG)) from refused
    file = os.memfd_create("kernel.o")
    try:
        library.write_to_file(f"/proc/self/fd/{file}", "o")
        return os.pread(file, os.fstat(file).st_size, 0)
    finally:
        os.close(file)
