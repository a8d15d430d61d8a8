"""Describe values for the pages of the site: a sentence for each field, taken from the docstrings of dataclasses."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import cleandoc, getdoc
from typing import Any, get_args, get_type_hints

Row = tuple[str, str]
"""A name and its sentence."""


@dataclass(frozen=True)
class Key:
    """A key of JSON that no dataclass describes.

    Attributes:
        name: the key; `[]` behind it says that its value is a list.
        says: what its value is, in a sentence.
        inside: the keys of its value, as keys or as the dataclass that has them.
    """

    name: str
    says: str
    inside: tuple["type | Key", ...] = ()


def attributes(kind: type) -> dict[str, str]:
    """Return what the docstring of a class says of each attribute, in one line each.

    >>> from hexconv.spec import Chain
    >>> attributes(Chain)["conv"]
    'the convs in order.'
    """
    text = getdoc(kind) or ""
    section = re.split(r"\n\n\w+:\n", text.partition("Attributes:\n")[2])[0]
    entries = re.findall(r"^(\w+): (.*(?:\n +.*)*)", cleandoc(section), re.M)
    return {name: " ".join(said.split()).replace("|", "\\|") for name, said in entries}


def described(parts: Sequence["type | Key"], leaves: Sequence[type] = (), prefix: str = "") -> Iterator[Row]:
    """Yield each key with its sentence; a key inside of another one stands behind that one's name.

    Args:
        parts: keys, and dataclasses whose fields are keys.
        leaves: dataclasses whose own fields are left out.
        prefix: the name of the key around these.

    >>> from hexconv.search.planned_chains import Refused
    >>> [name for name, _ in described([Key("files[]", "the files that were written."), Refused])]
    ['files[]', 'name', 'reason']
    """
    for part in parts:
        if isinstance(part, Key):
            yield prefix + part.name, part.says
            yield from described(part.inside, leaves, f"{prefix}{part.name}.")
        else:
            yield from _fields(part, leaves, prefix)


def _fields(kind: type, leaves: Sequence[type], prefix: str) -> Iterator[Row]:
    said, hints = attributes(kind), get_type_hints(kind)
    for name in (one.name for one in fields(kind)):
        inner, is_list = _inner(hints[name])
        key = f"{prefix}{name}{'[]' * is_list}"
        yield key, said[name]
        if isinstance(inner, type) and is_dataclass(inner) and inner not in leaves:
            yield from _fields(inner, leaves, f"{key}.")


def _inner(hint: Any) -> tuple[Any, bool]:
    """Return the type of a field, or that of its elements, and whether the field is a list."""
    inside = [each for each in get_args(hint) if each not in (type(None), ...)]
    is_list = getattr(hint, "__origin__", None) is tuple
    if not is_list and len(inside) == 1:
        return _inner(inside[0])
    return (inside[0] if is_list else hint), is_list


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
