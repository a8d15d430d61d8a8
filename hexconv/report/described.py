"""Describe values for the pages of the site: a sentence for each field, taken from the docstrings of dataclasses."""

import re
from collections.abc import Iterable
from inspect import cleandoc

Row = tuple[str, str]
"""A name and its sentence."""


def attributes(kind: type) -> dict[str, str]:
    """Return what the docstring of a class says of each attribute, in one line each.

    >>> from hexconv.spec import Chain
    >>> attributes(Chain)["conv"]
    'the convs in order.'
    """
    text = cleandoc(kind.__doc__ or "")
    section = re.split(r"\n\n\w+:\n", text.partition("Attributes:\n")[2])[0]
    entries = re.findall(r"^(\w+): (.*(?:\n +.*)*)", cleandoc(section), re.M)
    return {name: " ".join(said.split()).replace("|", "\\|") for name, said in entries}


def _stated(said: str) -> str:
    """Return a sentence without the point at its end."""
    return said if said.endswith("...") else said.removesuffix(".")


def markdown(rows: Iterable[Row], heading: str) -> str:
    """Return rows of names and sentences as a table of a page; Python's None is null in JSON, and empty in a column.

    >>> print(markdown([("case", "the name of the case.")], "column"))
    | column | what it says |
    |---|---|
    | `case` | the name of the case |
    """
    missing = "null" if heading == "key" else "empty"
    lines = [f"| `{name}` | {_stated(said).replace('None', missing)} |" for name, said in rows]
    return "\n".join((f"| {heading} | what it says |", "|---|---|", *lines))
