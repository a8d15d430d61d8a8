"""Shorten a listing to its checksum and an outline: arguments, caches, loops around convs, copies.

`NAME.tir.sha256` is for `sha256sum --check`, which skips lines that begin with `#`. A listing that differs in one
letter has another checksum; where the outline is the same, the difference lies inside of a conv.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256

from hexconv.report.listing import INDENT, OPENS, Block, header_of, module_of

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
