"""What a folder of chains says of the network that they come from: `network.toml`, written by the import of a model."""

import sys
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError
from hexconv.spec.wrong import first_complaint

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MANIFEST = "network.toml"
LENIENT = ConfigDict(extra="ignore")
"""Keys that planning has no use for are left unread."""


@dataclass(frozen=True, kw_only=True, config=LENIENT)
class ChainEnd:
    """One chain: its case, and what ended it."""

    case: str
    ended_by: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, config=LENIENT)
class NotTaken:
    """A conv that is in no chain, and why."""

    node: str
    op: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True, config=LENIENT)
class Manifest:
    """The chains of a network in their order, and the convs that are in none."""

    model: str = ""
    chain: tuple[ChainEnd, ...] = ()
    not_taken: tuple[NotTaken, ...] = ()


def manifest(folder: Path) -> Manifest:
    """The manifest of a folder; an empty one where there is none.

    Raises:
        InputError: it can't be used.
    """
    path = folder / MANIFEST
    if not path.exists():
        return Manifest()
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return TypeAdapter(Manifest).validate_python(table)
    except ValidationError as error:
        raise first_complaint(error, str(path)) from None
    except OSError as error:
        raise InputError(str(path), error.strerror or "an unreadable file", "a readable manifest") from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            str(path), f"text that is no manifest ({error})", "what an import wrote, or no such file"
        ) from None
