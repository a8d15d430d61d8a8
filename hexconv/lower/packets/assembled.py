"""Assemble text to an object file by the LLVM inside of TVM, which also wrote the text."""

import atexit
import os
import re
from functools import lru_cache

import tvm
from tvm.target import Target

from hexconv.apart.process import Apart, Limits, Task
from hexconv.written import scratch

LIMITS = Limits(seconds=120, memory_bytes=4 << 30)
"""The limits of one assembly; an assembler that reaches them counts as one that refuses the text."""
_STDERR = 2
_ERROR = "error: "
_TO_QUOTE = re.compile(r'[^ -~]|["\\]')


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
    flags = ["!llvm.module.flags = !{!0}", f'!0 = !{{i32 4, !"tvm_target", !"{_quoted(str(target))}"}}']
    triple = f'target triple = "{target.attrs["mtriple"]}"'
    return compiled_apart("\n".join([triple, *lines, *flags]) + "\n")


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
    apart = Apart("hexconv.lower.packets.assembled:assemble", LIMITS)
    atexit.register(apart.close)
    return apart


def assemble(task: Task) -> Task:
    """Assemble `module` (LLVM's text) to `kernel` (an object) in the process apart; LLVM's messages go to `said`."""
    usual = os.dup(_STDERR)
    said = os.open(task["said"], os.O_WRONLY | os.O_CREAT)
    os.dup2(said, _STDERR)
    os.close(said)
    try:
        tvm.runtime.load_module(task["module"]).write_to_file(task["kernel"], "o")
    finally:
        os.dup2(usual, _STDERR)
        os.close(usual)
    return {}


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
    return _TO_QUOTE.sub(lambda letter: f"\\{ord(letter[0]):02x}", text)
