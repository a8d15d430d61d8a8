"""The command line, `hexconv COMMAND`: each command has a module of its own."""

from hexconv.cli.app import app, main

__all__ = ["app", "main"]
