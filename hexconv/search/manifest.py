"""What a folder of chains says of the network that they come from: `network.toml`, written by the import of a model."""

from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hexconv.spec.document import parse_table, read_text
from hexconv.spec.file_name import FileStem
from hexconv.spec.wrong import first_complaint

MANIFEST = "network.toml"
LENIENT = ConfigDict(extra="ignore")
"""Keys that planning has no use for are left unread."""


@dataclass(frozen=True, kw_only=True, config=LENIENT)
class ChainEnd:
    """One chain: its case, and what ended it."""

    case: FileStem
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
    table = parse_table(read_text(path), str(path))
    try:
        return TypeAdapter(Manifest).validate_python(table)
    except ValidationError as error:
        raise first_complaint(error).within(str(path)) from None
