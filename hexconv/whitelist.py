"""Text from a model, a case, a file name or a command line on its way into code: one whitelist, applied last.

`plain` keeps letters, digits, `_`, `.`, `-` and blanks of ASCII. Templates of C, Makefiles, CMake and Markdown render
only what passed: `Code` is text that hexconv wrote itself, and other text goes through `plain` as it is put into it.
"""

import re
from collections.abc import Iterable

from markupsafe import Markup

LONGEST_PLAIN = 100
LONGEST_LINE = 400
"""Characters that are kept of a text, and of a line of a comment."""
LONGEST_SLUG = 48
LONGEST_IDENTIFIER = 60
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_. -]+")
_NOT_FOR_COMMENTS = re.compile(r'[^A-Za-z0-9_. \[\](){}<>=,:"+-]+')
_HEADERS = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal string tgmath time uchar
unistd wchar wctype
"""
"""Names of the C library's headers, which a header of the same name would hide."""
_RESERVED = frozenset([*_HEADERS.split(), "main", "network"])
_RESERVED_STARTS = ("hexconv", "pthread", "qurt", "sem_", "std")


def plain(text: str) -> str:
    r"""Return a text with `_` for each run of characters that are not on the whitelist; a long one is cut.

    >>> plain("a*é/ int x;"), plain("*" * 9), plain("/layer1/conv.0")
    ('a_ int x_', '_', '_layer1_conv.0')
    """
    return _NOT_PLAIN.sub("_", text[: 2 * LONGEST_PLAIN])[:LONGEST_PLAIN]


def identifier(text: str, otherwise: str = "chain", longest: int = LONGEST_IDENTIFIER) -> str:
    """Return a text as the start of identifiers of C and of file names; keywords do, since `_init` and such follow.

    Args:
        text: the text.
        otherwise: the word that stands in front where the text alone would not do.
        longest: the most characters of the text that are kept.

    >>> identifier("b-shift"), identifier("3x3"), identifier("string"), identifier("日本", "model")
    ('b_shift', 'chain_3x3', 'chain_string', 'model_unnamed')
    """
    kept = re.sub(r"[^A-Za-z0-9]+", "_", plain(text)).strip("_")[:longest].strip("_")
    lower = kept.lower()
    if kept[:1].isalpha() and lower not in _RESERVED and not lower.startswith(_RESERVED_STARTS):
        return kept
    return f"{otherwise}_{kept or 'unnamed'}"


def slug(text: str) -> str:
    r"""Return a text as a part of the name of a case, and so of its files.

    >>> slug("/layer1/layer1.0/conv1/Conv"), slug("../../etc/passwd"), slug("\n")
    ('layer1-layer1-0-conv1-Conv', 'etc-passwd', 'conv')
    """
    return re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:LONGEST_SLUG].strip("-") or "conv"


def apart(names: Iterable[str]) -> tuple[str, ...]:
    """Number names that differ from an earlier one in case alone, or not at all: macros and some file systems do so.

    >>> apart(["a", "A", "b", "a_2", "a"])
    ('a', 'A_2', 'b', 'a_2_2', 'a_3')
    """
    found, taken = list[str](), set[str]()
    for name in names:
        number, candidate = 1, name
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        found.append(candidate)
    return tuple(found)


class Code(Markup):
    """Text of C or of a Makefile that stands in a template or in Python; what it is filled with passes the whitelist.

    >>> Code("run({}); /* {} */").format(3, "*é/")
    Code('run(3); /* _ */')
    """

    @classmethod
    def escape(cls, text: object) -> "Code":
        """Return a text as code: code as it is, all else through the whitelist."""
        return text if isinstance(text, Code) else str.__new__(cls, plain(str(text)))

    @classmethod
    def comment(cls, line: str) -> "Code":
        r"""Return a line of hexconv's own words as a comment. TOML's brackets may stand in it, and nothing can end it.

        >>> Code.comment('dtype = "uint8" */ \\')
        Code('dtype = "uint8" _ _')
        """
        return str.__new__(cls, _NOT_FOR_COMMENTS.sub("_", line[:LONGEST_LINE]))
