"""Annotated TIR as HTML: every loop folds, Python's words are coloured, everything is escaped.

    for ho in range(3):          ->  <details><summary>for ho in range(3):</summary>
        body                             body
                                     </details>

The comment above a loop (`# conv2d #1`) goes into its summary. Loops that hold such a part stand open; the parts
themselves are folded, so that what shows first is the order of things.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Literal, Name, Operator, _TokenType

INDENT = 4
LEXER = PythonLexer(stripnl=False, ensurenl=False)
CLASSES = ((Comment, "c"), (Keyword, "k"), (Operator.Word, "k"), (Literal, "l"), (Name.Decorator, "d"))
OPENS = re.compile(r"(for|if|else|while|with|def|class)\b.*:$")


@dataclass(frozen=True)
class Block:
    """A line of the listing and what is indented beneath it.

    Attributes:
        depth: in steps of four spaces.
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
        """Whether it is a loop, or something else with a body."""
        return bool(self.body)

    @property
    def holds_parts(self) -> bool:
        """Whether some block beneath it has a comment of its own."""
        return any(block.folds and (block.comment or block.holds_parts) for block in self.body)


def listing_html(tir: str) -> Markup:
    """A `.tir` file as foldable, coloured HTML; the header's comments as they are, in one block."""
    lines = tir.rstrip("\n").split("\n")
    body = next((at for at, line in enumerate(lines) if line and not line.startswith("#")), len(lines))
    blocks = _blocks([line for line in lines[body:] if line.strip()])
    return Markup("".join(_html(block) for block in blocks))


def header_of(tir: str) -> str:
    """The comments above the module, without their signs."""
    lines = []
    for line in tir.split("\n"):
        if not line.startswith("#"):
            break
        if not line.startswith("# from "):
            lines.append(line.removeprefix("#").removeprefix(" "))
    return "\n".join(lines).rstrip()


def _blocks(lines: Sequence[str]) -> tuple[Block, ...]:
    """Lines as a tree, by their indentation; a comment goes to the loop beneath it."""
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
    """Whether a line is a comment and what follows it at the same depth is a loop or a condition."""
    follows = at + 1 < len(lines) and end == at + 1 and _depth(lines[at + 1]) == _depth(lines[at])
    return follows and lines[at].lstrip().startswith("#") and bool(OPENS.match(lines[at + 1].strip()))


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip())) // INDENT


def _html(block: Block) -> Markup:
    """One block; loops fold."""
    line = Markup("<code>{}</code>").format(_coloured(block.text))
    if not block.folds:
        return Markup("<div>{}</div>").format(line)
    label = Markup("<b>{}</b>").format(block.comment[2:]) if block.comment else ""
    inside = Markup("").join(_html(child) for child in block.body)
    state = Markup(" open") if block.holds_parts else ""
    return Markup("<details{}><summary>{}{}</summary>{}</details>").format(state, label, line, inside)


def _coloured(text: str) -> Markup:
    """One line of Python with its keywords, numbers and comments marked; neighbours of one kind share a mark."""
    parts: list[tuple[str, str]] = []
    for token, value in LEXER.get_tokens(text):
        kind = _class(token)
        if parts and parts[-1][0] == kind:
            parts[-1] = (kind, parts[-1][1] + value)
        else:
            parts.append((kind, value))
    return Markup("").join(_marked(parts))


def _marked(parts: Sequence[tuple[str, str]]) -> Iterator[Markup]:
    for kind, value in parts:
        yield Markup('<i class="{}">{}</i>').format(kind, value) if kind else escape(value)


def _class(token: _TokenType) -> str:
    return next((name for kind, name in CLASSES if token in kind), "")
