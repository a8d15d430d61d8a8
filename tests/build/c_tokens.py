"""Tokens of C as its translation phases give them, and of a Makefile; and whether two texts differ in names alone."""

import re

TRIGRAPHS = {
    "??=": "#",
    "??(": "[",
    "??/": "\\",
    "??)": "]",
    "??'": "^",
    "??<": "{",
    "??!": "|",
    "??>": "}",
    "??-": "~",
}
TOKEN = re.compile(
    r"""(?P<blank>\s+|/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\.?\d[\w.]*(?:[+-][\w.]+)?|\w+|.""",
    re.DOTALL | re.ASCII,
)
WORD = re.compile(r"\w+|\W", re.ASCII)


def tokens_of_c(text: str) -> list[str]:
    """Trigraphs, spliced lines, comments, tokens; every end of a line that a compiler may know is one."""
    text = re.sub(r"\?\?[=(/)'<!>-]", lambda found: TRIGRAPHS[found[0][-1]], text)
    text = re.sub(r"\\[ \t\f\v]*\n", "", re.sub(r"\r\n?", "\n", text))
    return [found[0] for found in TOKEN.finditer(text) if found["blank"] is None]


def words_of_make(text: str) -> list[str]:
    """All words and signs outside of comments, ends of lines too; CMake's lists of commands are read alike."""
    text = re.sub(r"\\\n", " ", re.sub(r"\r\n?", "\n", text))
    return re.findall(r"[\w.%/-]+|[^\w ]", re.sub(r"#[^\n]*", "", text), re.ASCII)


class Renaming:
    """Which name of one text stands for which of the other: each for one, and never one for two."""

    def __init__(self) -> None:
        self.there, self.back = dict[str, str](), dict[str, str]()

    def serves(self, one: list[str], other: list[str]) -> None:
        """Assert that two token streams are the same, up to a renaming of identifiers that is one for all texts."""
        for place, (left, right) in enumerate(zip(one, other, strict=False)):
            assert self._is_renamed(left, right), f"{one[place - 9 : place + 2]} became {other[place - 9 : place + 2]}"
        assert len(one) == len(other), f"{one[len(other) :]} or {other[len(one) :]}"

    def _is_renamed(self, left: str, right: str) -> bool:
        if left[0] == right[0] == '"':
            parts = WORD.findall(left), WORD.findall(right)
            return len(parts[0]) == len(parts[1]) and all(
                one == other or (one.isidentifier() and other.isidentifier()) for one, other in zip(*parts, strict=True)
            )
        if left[0].isdigit() and right[0].isdigit():
            return True
        if not (left.isidentifier() and right.isidentifier() and right.isascii()):
            return left == right
        return self.there.setdefault(left, right) == right and self.back.setdefault(right, left) == left
