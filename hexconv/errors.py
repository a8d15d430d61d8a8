"""The errors that a user sees: each is one line, and has an exit code.

Every error says what was asked, what is true (and by how much it differs) and what to change. Anything else that
escapes to the command line is a bug of hexconv.
"""

import difflib
import os
import re
from collections.abc import Iterable
from textwrap import TextWrapper

_DOUBTFUL = re.compile(r"[^ -~]")
LONGEST_COMPARED = 60
LONGEST_PART = 400
"""Characters of an error that a file or a command line has given; a longer text is shown by its ends."""


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a question that names the nearest of the known names, with a blank behind it; empty if none is near.

    >>> did_you_mean("flaot32", ("float32", "float16")), did_you_mean("zebra", ("float32",))
    ('did you mean float32? ', '')
    """
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(given[:LONGEST_COMPARED].lower(), names, n=1)
    return f"did you mean {names[close[0]]}? " if close else ""


class HexconvError(Exception):
    r"""Base of all errors that the user can mend; the text is one line.

    >>> str(HexconvError("first line\n  second line"))
    'first line second line'
    """

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class HexconvWarning(UserWarning):
    """A result that is right but not as good as it should be; told in one line, and the command goes on."""


def one_line(text: str) -> str:
    r"""Return text as one line that is safe to print on a terminal: what can't be printed is escaped.

    >>> one_line("a\n b \x1b[2J")
    'a b \\x1b[2J'
    """
    return visible(" ".join(text.split()))


def flowed(line: str, width: int) -> str:
    r"""Return a line of prose broken between words; what follows is indented, and a longer word stays whole.

    >>> flowed("  conv1: 2 rolling stripes of 32 rows", 24)
    '  conv1: 2 rolling\n    stripes of 32 rows'
    """
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    whole = TextWrapper(width, indent, f"{indent}  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(whole.wrap(line.lstrip()))


def visible(text: str, kept: str = "") -> str:
    r"""Return text in which what can't be printed is escaped: control characters, marks of direction, lone surrogates.

    >>> visible("a\x1b[2J \u202egnp", kept="\n")
    'a\\x1b[2J \\u202egnp'
    """
    return _DOUBTFUL.sub(lambda c: c[0] if c[0].isprintable() or c[0] in kept else ascii(c[0])[1:-1], text)


def short_line(text: str) -> str:
    r"""Return a text as one line; a text that is too long keeps its two ends.

    >>> len(short_line("\U0010ffff" * 1000))
    403
    """
    text = one_line(text)
    return text if len(text) <= LONGEST_PART else f"{text[: LONGEST_PART // 2]}...{text[-LONGEST_PART // 2 :]}"


def fault(error: Exception) -> str:
    """Describe a fault of hexconv itself in one line.

    With HEXCONV_TRACEBACK in the environment the error is raised again instead, so that its traceback is shown.

    >>> fault(KeyError("a"))
    "a fault of hexconv's own, KeyError: 'a'; please report it with what HEXCONV_TRACEBACK=1 shows"
    """
    if os.environ.get("HEXCONV_TRACEBACK"):
        raise error
    told = f"{type(error).__name__}: {short_line(str(error))}"
    return f"a fault of hexconv's own, {told}; please report it with what HEXCONV_TRACEBACK=1 shows"


class InputError(HexconvError):
    """A file, an option or a value that can't be used.

    Args (of the constructor):
        where: the file and the field's path, `schedules/a.toml: chain.conv[0].kernel`.
        given: what was found there.
        expected: what may stand there, and what to change. Where it begins with a question (`did_you_mean`), it
            stands as a sentence of its own.

    >>> raise InputError("a.toml: plan.k_split", "0", "a positive number of 32-channel blocks")
    Traceback (most recent call last):
    ...
    hexconv.errors.InputError: a.toml: plan.k_split: got 0; expected a positive number of 32-channel blocks
    """

    def __init__(self, where: str, given: str, expected: str) -> None:
        super().__init__(f"{short_line(where)}{_found(given, expected)}{expected}")
        self.where, self.given, self.expected = where, given, expected

    @classmethod
    def because(cls, what: str, change: str) -> "InputError":
        """Build an error from two phrases: what is wrong, and what to change.

        >>> str(InputError.because("no case file given", "name one or more case files"))
        'no case file given; name one or more case files'
        """
        return cls(what, "", change)

    @classmethod
    def no_such(cls, where: str, given: str, known: Iterable[str], near: str = "") -> "InputError":
        """Build the error for a name that is none of the known ones; `near` is the name as written, if `given` isn't.

        >>> str(InputError.no_such("okk: chip", "bm168", ("bm1688", "v68")))
        'okk: chip: got bm168; did you mean bm1688? one of bm1688, v68'
        """
        names = list(known)
        return cls(where, given, f"{did_you_mean(near or given, names)}one of {', '.join(names)}")

    def within(self, source: str) -> "InputError":
        """Return the same error, with the file in front of the field's path."""
        return InputError(f"{source}: {self.where}", self.given, self.expected)


def _found(given: str, expected: str) -> str:
    """Return the words between the place of an error and what is expected there."""
    if not given:
        return "; "
    return f": got {short_line(given)}; {'' if expected.startswith('did you mean') else 'expected '}"


class Unsupported(HexconvError):
    """A well-formed case asks for something that TVM or a kernel can't do; it is refused before it is lowered."""


class ToolMissing(HexconvError):
    """A program or library that the command needs isn't on this machine; the text says how to install it."""


class RunFailed(HexconvError):
    """A run gave no answer: it trapped, overran its time or memory, or broke its guards."""


class Overran(RunFailed):
    """A run took more time or memory than it was given; nothing else is known to be wrong with it."""


class NotWritten(HexconvError):
    """A file could not be written, since there is no room or no permission; the text says what was kept."""


class Interrupted(HexconvError):
    """The user pressed Ctrl-C; the text says what is done by then."""

    exit_code = 130
