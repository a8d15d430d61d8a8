"""The program: one function per command, errors as one line, exit codes 0 / 1 / 2."""

import sys

from cyclopts import App, CycloptsError

from hexconv.errors import HexconvError, one_line, short_line

HELP = """From the shapes of a conv2d chain to a proven schedule for Qualcomm Hexagon.

A case file (TOML) says what is computed and how; begin with `hexconv cache schedules/split-3x3.toml`, or with the
tutorial in hexconv/docs/tutorial.md. Every command exits 0 (holds), 1 (checked, and does not hold) or 2 (bad input or a
missing tool: one line that says what was asked, what is true and what to change).
"""

app = App(
    name="hexconv",
    help=HELP,
    help_format="markdown",
    result_action="return_value",
    default_parameter=None,
)
app.register_install_completion_command(
    help="Install completion of commands and options for this shell (bash, zsh or fish)."
)


def main(arguments: list[str] | None = None) -> None:
    """Run the program and leave with its exit code: 0 holds, 1 does not hold, 2 bad input or a missing tool."""
    sys.exit(exit_code(sys.argv[1:] if arguments is None else arguments))


def exit_code(arguments: list[str]) -> int:
    """Run one command line; print an error as one line on standard error."""
    try:
        return app(arguments, exit_on_error=False, print_error=False) or 0
    except CycloptsError as error:
        return refused(short_line(str(error)), 2)
    except HexconvError as error:
        return refused(str(error), error.exit_code)
    except MemoryError:
        return refused("out of memory: this machine has less than the command asks for; use a smaller case", 2)
    except KeyboardInterrupt:
        return refused("interrupted", 130)


def refused(message: str, code: int) -> int:
    """Print one line and hand the exit code back."""
    print(f"hexconv: {one_line(message)}", file=sys.stderr)
    return code
