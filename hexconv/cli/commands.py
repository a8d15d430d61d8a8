"""The commands, each imported only when it is asked for, so that `--help` doesn't wait for TVM and pandas.

The help text of a command is read from the docstring of its function, in the source file.
"""

import ast
from inspect import cleandoc
from pathlib import Path

from cyclopts import App

COMMANDS = {
    "best": "best:best",
    "build": "build:build_",
    "cache": "cache:cache",
    "calibrate": "calibrate:calibrate",
    "doctor": "doctor:doctor",
    "example": "example:example",
    "import": "import_model:import_",
    "layout": "layout:layout",
    "report": "report:report",
    "run": "run:run",
    "sweep": "sweep:sweep",
    "tir": "tir:tir",
    "verify": "verify:verify",
}
"""By command name: the module in this folder, and the function in it, or the app of its own (`layout`)."""

SECTIONS = ("Args:", "Returns:")
"""The sections of a docstring that describe parameters and results."""


def register(app: App) -> None:
    """Add all commands to the program."""
    for name, place in COMMANDS.items():
        module, _, member = place.partition(":")
        app.command(f"hexconv.cli.{place}", name=name, help=described(module, member))


def described(module: str, member: str) -> str:
    """Return the text of a function's docstring before its parameters; for an app, the text of its `help`."""
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
    """Return a docstring without its sections."""
    ends = [at for section in SECTIONS if (at := docstring.find(f"\n{section}")) >= 0]
    return cleandoc(docstring[: min(ends, default=len(docstring))])
