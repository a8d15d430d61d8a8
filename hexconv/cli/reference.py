"""Writes the pages of the reference that are made from the code, so that they agree with it; `make site` uses them."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from io import StringIO
from pathlib import Path
from typing import Any, get_args

from rich.console import Console

from hexconv.cli.app import app
from hexconv.cli.commands import COMMANDS
from hexconv.lower.vtcm import capacities_bytes
from hexconv.report.described import attributes
from hexconv.report.units import in_bytes
from hexconv.search import machine
from hexconv.spec import Chain, Conv2d, Plan, Requantize
from hexconv.spec.document import parse_table, read_text
from hexconv.spec.knobs import Arch

WIDTH = 88
SUBCOMMANDS = ("layout compare", "layout reorder")
TABLES = (("[chain]", Chain), ("[[chain.conv]]", Conv2d), ("requantize = { .. }", Requantize), ("[plan]", Plan))


def pages() -> dict[str, str]:
    """Return the Markdown of each page, by its path in the site."""
    made: dict[str, Callable[[], str]] = {
        "cli": _commands,
        "fields": _fields,
        "architectures": _architectures,
    }
    return {f"reference/{name}.md": make() for name, make in made.items()}


def _commands() -> str:
    """Return a page with what `--help` prints for each command."""
    parts = ["# Commands", "This is what `hexconv COMMAND --help` prints."]
    for name in sorted((*COMMANDS, *SUBCOMMANDS)):
        out = StringIO()
        app.help_print(name.split(), console=Console(file=out, width=WIDTH, color_system=None))
        lines = (line.rstrip() for line in out.getvalue().strip().splitlines())
        parts += [f"## {name}", "\n".join(("```text", *lines, "```"))]
    return "\n\n".join(parts) + "\n"


def _fields() -> str:
    """Return a page with every field of a case file, from the dataclasses that check it."""
    parts = [
        "# Fields of a case",
        "Made from the classes that check a case file. [Cases](cases.md) shows a whole file.",
    ]
    for title, kind in TABLES:
        said = attributes(kind)
        rows = [f"| `{one.name}` | {_default(one)} | {said[one.name]} |" for one in fields(kind)]
        head = ["| field | if left out | what it says |", "|---|---|---|"]
        parts += [f"## `{title}`", "\n".join((*head, *rows))]
    return "\n\n".join(parts) + "\n"


def _default(one: Field[Any]) -> str:
    """Return the value that a field has if a case file leaves it out."""
    if one.default is MISSING:
        return "has to be given"
    if one.default is None or one.name == "padding":
        return "" if one.default is None else "`0`"
    words = {True: "true", False: "false"}
    shown = words[one.default] if isinstance(one.default, bool) else repr(one.default).replace("'", '"')
    return f"`{shown.replace('(', '[').replace(')', ']')}`"


def _architectures() -> str:
    """Return a page with what is known of each architecture, and where that comes from."""
    capacities = capacities_bytes()
    rows = ["| `arch` | VTCM | rates of the packet model |", "|---|---|---|"]
    for arch in get_args(Arch):
        path = Path(machine.__file__).parent / "machines" / f"{arch}.toml"
        source = parse_table(read_text(path), str(path))["source"]
        size = in_bytes(capacities[arch]) if arch in capacities else "not known: state `vtcm_bytes`"
        rows.append(f"| {arch} | {size} | {source} |")
    told = (
        "VTCM is what TVM's target tag says. `vtcm_bytes` in a plan states another size: there are v73 with 4 MiB. "
        "QEMU 7.2 runs v60 to v67; code for newer architectures is compiled, and its kernels are run as v67."
    )
    return "\n\n".join(("# Architectures", told, "\n".join(rows))) + "\n"
