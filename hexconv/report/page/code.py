"""Write annotated TIR as HTML: every loop folds, Python's words are coloured, everything is escaped.

    for ho in range(3):          ->  <details><summary>for ho in range(3):</summary>
        body                             body
                                     </details>

The comment above a loop (`# conv2d #1`) goes into its summary. Loops that hold such a part stand open; the parts
themselves are folded, so that what shows first is the order of things.
"""

from itertools import groupby

from markupsafe import Markup, escape
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Literal, Name, Operator, _TokenType

from hexconv.report.listing import Block, module_of

LEXER = PythonLexer(stripnl=False, ensurenl=False)
CLASSES = ((Comment, "c"), (Keyword, "k"), (Operator.Word, "k"), (Literal, "l"), (Name.Decorator, "d"))


def listing_html(tir: str) -> Markup:
    """Return the module of a `.tir` file as foldable, coloured HTML."""
    return Markup("").join(_html(block) for block in module_of(tir))


def _html(block: Block) -> Markup:
    """Return the HTML of one block; a block with a body folds."""
    line = Markup("<code>{}</code>").format(_coloured(block.text))
    if not block.folds:
        return Markup("<div>{}</div>").format(line)
    label = Markup("<b>{}</b>").format(block.comment[2:]) if block.comment else ""
    inside = Markup("").join(_html(child) for child in block.body)
    state = Markup(" open") if block.holds_parts else ""
    return Markup("<details{}><summary>{}{}</summary>{}</details>").format(state, label, line, inside)


def _coloured(text: str) -> Markup:
    """The HTML of a line of Python, its keywords, numbers and comments marked; neighbours of a kind share a mark."""
    runs = groupby(LEXER.get_tokens(text), lambda token: _class(token[0]))
    return Markup("").join(_marked(kind, "".join(value for _, value in tokens)) for kind, tokens in runs)


def _marked(kind: str, text: str) -> Markup:
    return Markup('<i class="{}">{}</i>').format(kind, text) if kind else escape(text)


def _class(token: _TokenType) -> str:
    return next((name for kind, name in CLASSES if token in kind), "")
