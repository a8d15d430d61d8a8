"""The program: it runs a command, prints an error as one line, and exits with 0, 1 or 2."""

import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError, Parameter

from hexconv.cli.commands import register
from hexconv.cli.interrupted import signals
from hexconv.cli.streams import standard_streams
from hexconv.errors import HexconvError, HexconvWarning, fault, one_line, short_line

TUTORIAL = Path(__file__).parents[1] / "docs" / "start" / "chain.md"
HELP = f"""From the shapes of a conv2d chain to a proven schedule for Qualcomm Hexagon.

Start with `hexconv example`, which writes a small network. The tutorial writes a case file by hand: {TUTORIAL}.

Every command exits with 0 (it holds), 1 (it was checked and does not hold) or 2 (bad input, or a tool is missing: one
line says what was asked, what is true and what to change).
"""

app = App(
    name="hexconv",
    help=HELP,
    help_format="markdown",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(json_list=False),  # a word that begins with "[" is a pattern
)
register(app)
app.register_install_completion_command(
    help="Install completion of commands and options for this shell (bash, zsh or fish)."
)


def main(arguments: list[str] | None = None) -> None:
    """Run the program and leave with its exit code: 0 holds, 1 does not hold, 2 bad input or a missing tool.

    A fault of hexconv itself is printed as one line as well; with HEXCONV_TRACEBACK in the environment, in full.
    """
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = exit_code(given)
    except Exception as error:
        with standard_streams():
            code = refused(fault(error), 2)
    signals.ignore()  # what is left to do is to clean up
    sys.exit(code)


def exit_code(arguments: list[str]) -> int:
    """Run one command line; print an error as one line on standard error."""
    with standard_streams(), warnings.catch_warnings(), signals.handled():
        warnings.simplefilter("default", HexconvWarning)
        warnings.showwarning = partial(_warned, warnings.showwarning)
        code = _told(lambda: app(arguments, exit_on_error=False, print_error=False) or 0)
        code = _told(sys.stdout.flush) or code if sys.stdout else code
    return signals.code or code


def _told(act: Callable[[], int | None]) -> int:
    """Run a command and return its exit code; what is wrong is printed in one line."""
    try:
        return act() or 0
    except CycloptsError as error:
        return refused(short_line(str(error)), 2)
    except HexconvError as error:
        return refused(str(error), error.exit_code)
    except OSError as error:
        return refused(f"{error.filename or 'this machine'}: {error.strerror or error}; mend that, and try again", 2)
    except MemoryError:
        return refused("out of memory: this machine has less than the command asks for; use a smaller case", 2)
    except KeyboardInterrupt:
        return refused("interrupted", signals.code or 130)
    except Exception:
        if signals.received:
            return refused("interrupted", signals.code)
        raise


def _warned(others: Callable[..., None], message: Warning | str, *where: Any) -> None:
    """Print a warning of hexconv's as one line on standard error; show other warnings as Python does."""
    if isinstance(message, HexconvWarning):
        print(f"hexconv: {one_line(str(message))}", file=sys.stderr)
    else:
        others(message, *where)


def refused(message: str, code: int) -> int:
    """Print one line and hand the exit code back."""
    print(f"hexconv: {one_line(message)}", file=sys.stderr)
    return code
