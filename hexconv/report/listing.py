"""Read a listing as a tree of lines, and shorten it to its checksum and an outline: arguments, caches, loops, copies.

`NAME.tir.sha256` is for `sha256sum --check`, which skips lines that begin with `#`. A listing that differs in one
letter has another checksum; where the outline is the same, the difference lies inside of a conv.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

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


SUFFIX = ".sha256"
# Comments with sizes of caches are in the header too.
_SHOWN = re.compile(r"# (?!\w+: \d)|\w+: T\.Buffer\(|T\.evaluate\(T\.call_intrin\(.*dma_copy")
_AROUND = re.compile(r"class|def|\)|with")
_CONV = re.compile(r"# conv2d #\d+$")


def digest_of(name: str, tir: str) -> str:
    """Return the text of `NAME.sha256`.

    Args:
        name: the name of the listing's file.
        tir: the listing.
    """
    comments = [*header_of(tir).splitlines(), "", *_outline(module_of(tir))]
    return f"{sha256(tir.encode()).hexdigest()}  {name}\n" + "".join(f"# {line}".rstrip() + "\n" for line in comments)


def _outline(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the outline of some lines; a conv is outlined by its name and its outermost loop."""
    for block in blocks:
        indent = " " * INDENT * (block.depth - 1)
        is_around = _AROUND.match(block.text)
        if block.comment:
            yield indent + block.comment
        if not is_around and (OPENS.match(block.text) or _SHOWN.match(block.text)):
            yield indent + block.text
        if not _CONV.match(block.comment):
            yield from _outline(block.body)
