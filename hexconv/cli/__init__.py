"""The command line: `hexconv COMMAND`, one module a command."""

from hexconv.cli.app import app, main

__all__ = ["app", "main"]
