"""Read a `.tir` file as a tree of lines: a loop holds the lines indented beneath it and the comment that names it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

INDENT = 4
OPENS = re.compile(r"(for|if|else|while|with|def|class)\b.*:$")


@dataclass(frozen=True)
class Block:
    """A line of the listing and the lines indented beneath it.

    Attributes:
        depth: its indentation, in steps of four spaces.
        text: the line, without its indentation.
        comment: the comment line above it, if it folds.
        body: the lines beneath it.
    """

    depth: int
    text: str
    comment: str
    body: "tuple[Block, ...]"

    @property
    def folds(self) -> bool:
        """Whether the line has a body, as loops have."""
        return bool(self.body)

    @property
    def holds_parts(self) -> bool:
        """Whether some block beneath it has a comment of its own."""
        return any(block.folds and (block.comment or block.holds_parts) for block in self.body)


def module_of(tir: str) -> tuple[Block, ...]:
    """Return the lines of the module, without the header's comments and without empty lines."""
    lines = tir.rstrip("\n").split("\n")
    body = next((at for at, line in enumerate(lines) if line and not line.startswith("#")), len(lines))
    return _blocks([line for line in lines[body:] if line.strip()])


def header_of(tir: str) -> str:
    """Return the comments above the module, without their `#`."""
    lines = []
    for line in tir.split("\n"):
        if not line.startswith("#"):
            break
        if not line.startswith("# from "):
            lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines).rstrip()


def _blocks(lines: Sequence[str]) -> tuple[Block, ...]:
    """Build the tree of some lines by their indentation; a comment goes to the loop beneath it."""
    blocks: list[Block] = []
    at, comment = 0, ""
    while at < len(lines):
        depth, text = _depth(lines[at]), lines[at].strip()
        end = at + 1
        while end < len(lines) and _depth(lines[end]) > depth:
            end += 1
        if _is_comment_of_next(lines, at, end):
            comment = text
        else:
            blocks.append(Block(depth, text, comment, _blocks(lines[at + 1 : end])))
            comment = ""
        at = end
    return tuple(blocks)


def _is_comment_of_next(lines: Sequence[str], at: int, end: int) -> bool:
    """Tell whether a line is a comment that is followed by a loop or a condition at the same depth."""
    follows = at + 1 < len(lines) and end == at + 1 and _depth(lines[at + 1]) == _depth(lines[at])
    return follows and lines[at].lstrip().startswith("#") and bool(OPENS.match(lines[at + 1].strip()))


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip())) // INDENT
