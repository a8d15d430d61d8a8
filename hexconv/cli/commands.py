"""The commands, each imported when it is asked for: TVM and pandas take seconds that `--help` doesn't have to wait for.

What a command does is read from the docstring of its function, in the source.
"""

import ast
from inspect import cleandoc
from pathlib import Path

from cyclopts import App

COMMANDS = {
    "best": "best:best",
    "build": "build:build_",
    "cache": "cache:cache",
    "doctor": "doctor:doctor",
    "example": "example:example",
    "import": "importing:import_",
    "layout": "layout:layout",
    "report": "report:report",
    "run": "run:run",
    "sweep": "sweep:sweep",
    "tir": "tir:tir",
    "verify": "verify:verify",
}
"""By name, the module in this folder and what it has: a function, or an app of its own (`layout`)."""

SECTIONS = ("Args:", "Returns:")
"""Of a docstring: parts that say something of parameters and results."""


def register(app: App) -> None:
    """Make the commands known to the program."""
    for name, place in COMMANDS.items():
        module, _, member = place.partition(":")
        app.command(f"hexconv.cli.{place}", name=name, help=described(module, member))


def described(module: str, member: str) -> str:
    """What the docstring of a function says before its parameters; of an app, what it was given as `help`."""
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == member:
            return _head(ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [member]:
            assert isinstance(node.value, ast.Call)
            [text] = [option.value for option in node.value.keywords if option.arg == "help"]
            return str(ast.literal_eval(text))
    raise LookupError(f"hexconv.cli.{module} has no {member}")


def _head(docstring: str) -> str:
    """Without the sections."""
    ends = [at for section in SECTIONS if (at := docstring.find(f"\n{section}")) >= 0]
    return cleandoc(docstring[: min(ends, default=len(docstring))])
