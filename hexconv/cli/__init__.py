"""The command line: `hexconv COMMAND`, one module a command."""

# Importing a module registers its command.
from hexconv.cli import best, cache, doctor, importing, layout, report, run, sweep, tir
from hexconv.cli.app import app, main

__all__ = ["app", "best", "cache", "doctor", "importing", "layout", "main", "report", "run", "sweep", "tir"]
