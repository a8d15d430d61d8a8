"""Assemble LLVM's assembly to an object file, its packets mended first; in a process apart, which may end."""

import atexit
import errno
import os
import re
import resource
import warnings
from functools import lru_cache

import tvm
from tvm.target import Target

from hexconv.apart.process import Apart, Limits
from hexconv.errors import HexconvWarning, Unsupported
from hexconv.lower.encodable import (
    NoLowRegister,
    with_loops_in_reach,
    with_low_registers,
    with_stores_in_order,
    without_stored_loads,
)
from hexconv.lower.fewer_stalls import with_fewer_stalls
from hexconv.written import scratch

LIMITS = Limits(seconds=120, memory_bytes=4 << 30)
"""The limits of one assembly; an assembler that reaches them counts as one that refuses the text."""
_ERROR = "error: "
_TO_QUOTE = re.compile(r'[^ -~\t]|["\\]')


class Refused(Exception):
    """The assembler refuses a text; the message is its first complaint, in one line."""


def assembled(text: str, target: Target) -> bytes:
    """Return an object file of assembly for one target.

    LLVM takes assembly as part of a module: one `module asm` a line, and nothing else.

    Raises:
        Refused: LLVM doesn't take the text.
        RunFailed: no process can be started.
    """
    lines = [f'module asm "{_quoted(line)}"' for line in text.splitlines()]
    flags = ["!llvm.module.flags = !{!0}", f"!0 = !{{i32 4, {_said(target)}}}"]
    triple = f'target triple = "{target.attrs["mtriple"]}"'
    return compiled_apart("\n".join([triple, *lines, *flags]) + "\n")


def _said(target: Target) -> str:
    """Return what a module in LLVM's language says of its target."""
    return f'!"tvm_target", !"{_quoted(str(target))}"'


_SAID = re.compile(r'!"tvm_target", !"[^"]*"')


def with_target(library: tvm.runtime.Module, target: Target) -> tvm.runtime.Module:
    """Return a module that LLVM has optimised already, for a target with other options of code generation."""
    with scratch() as folder:
        module = folder / "kernel.ll"
        module.write_text(_SAID.sub(lambda _: _said(target), library.inspect_source("ll")))
        return tvm.runtime.load_module(str(module))


def compiled_apart(text: str) -> bytes:
    """Return an object file of a module in LLVM's language.

    LLVM ends its process where it doesn't take a line, and where it can't write, so a process apart does this. (A fork
    could wait for ever for locks that threads held.)

    Raises:
        Refused: LLVM doesn't take the text, or can't write what it makes of it.
        RunFailed: no process can be started.
    """
    with scratch() as folder:
        module, kernel, said = (folder / name for name in ("kernel.ll", "kernel.o", "said.txt"))
        module.write_text(text)
        ending = _assembler(os.getpid()).do({"module": str(module), "kernel": str(kernel), "said": str(said)})
        if ending.how != "answered":
            raise Refused(_first_error(said.read_text(errors="replace") if said.exists() else "") or ending.reason)
        return kernel.read_bytes()


@lru_cache(maxsize=1)
def _assembler(_process: int) -> Apart:
    """Return the process that assembles for this one."""
    apart = Apart("hexconv.assembler:assemble", LIMITS)
    atexit.register(apart.close)
    return apart


def _first_error(said: str) -> str:
    r"""Return the first complaint, with the line of text that it is about.

    >>> _first_error("error: <inline asm>:9:2: invalid instruction packet\n\t}\n\t^\n")
    'invalid instruction packet, at line 9'
    """
    complaint = next((line for line in said.splitlines() if line.startswith(_ERROR)), "")
    place, _, what = complaint.removeprefix(_ERROR).partition(": ")
    return f"{what}, at line {place.split(':')[1]}" if what and place.count(":") == 2 else complaint


def _quoted(text: str) -> str:
    r"""Quote text as LLVM's language does.

    >>> _quoted('.string "a\\n"')
    '.string \\22a\\5cn\\22'
    """
    # Nearly all are tabs.
    return _TO_QUOTE.sub(lambda letter: f"\\{ord(letter[0]):02x}", text).replace("\t", r"\09")


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


@lru_cache(maxsize=4)
def possible(text: str) -> str:
    """Return assembly whose instructions all exist, and that every simulator runs right.

    Raises:
        Unsupported: an instruction names a register that it can't encode, and its packet can't be changed.
    """
    try:
        return with_loops_in_reach(with_stores_in_order(without_stored_loads(with_low_registers(text))))
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
