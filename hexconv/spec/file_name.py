"""Names of files that a file may name: those of its own folder."""

from typing import Annotated

from pydantic import AfterValidator

LONGEST_NAME = 200


def _checked(name: str) -> str:
    """A name without any folder in it, that every system can write and every terminal can show."""
    if not name or len(name) > LONGEST_NAME or name in (".", "..") or set("/\\:") & set(name) or not name.isprintable():
        raise ValueError(f"the name of a file in the same folder: no folders, 1 to {LONGEST_NAME} printable characters")
    return name


FileStem = Annotated[str, AfterValidator(_checked)]
"""The name of a case file beside this one, without its suffix."""
