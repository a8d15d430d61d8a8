"""From assembly text to an object file, by the LLVM inside of TVM: the one that wrote the text."""

import tempfile
from pathlib import Path

import tvm
from tvm.target import Target


def assembled(text: str, target: Target) -> bytes:
    """An object file of assembly for one target.

    LLVM takes assembly as part of a module: one `module asm` a line, and nothing else.
    """
    lines = [f'module asm "{_quoted(line)}"' for line in text.splitlines()]
    flags = ["!llvm.module.flags = !{!0}", f'!0 = !{{i32 4, !"tvm_target", !"{_quoted(str(target))}"}}']
    triple = f'target triple = "{target.attrs["mtriple"]}"'
    with tempfile.TemporaryDirectory(prefix="hexconv-") as folder:
        module, kernel = Path(folder) / "kernel.ll", Path(folder) / "kernel.o"
        module.write_text("\n".join([triple, *lines, *flags]) + "\n")
        tvm.runtime.load_module(str(module)).write_to_file(str(kernel), "o")
        return kernel.read_bytes()


def _quoted(text: str) -> str:
    r"""Text inside of the quotes of LLVM's language.

    >>> _quoted('.string "a\\n"')
    '.string \\22a\\5cn\\22'
    """
    return "".join(
        letter if " " <= letter <= "~" and letter not in '"\\' else f"\\{ord(letter):02x}" for letter in text
    )
