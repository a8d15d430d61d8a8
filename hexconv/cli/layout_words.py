"""Reads options of `hexconv layout` that hold several numbers: sizes, indices, views, and a tensor beside another."""

from hexconv.errors import InputError
from hexconv.layout.catalog import Beside, View
from hexconv.layout.onednn import gate_index


def sizes(option: str, words: str) -> tuple[int, ...]:
    """Read whole numbers with commas between them; brackets around them and spaces between them don't matter."""
    inside = words.strip().strip("[]()").strip()
    try:
        return tuple(int(part) for part in inside.split(",")) if inside else ()
    except ValueError:
        allowed = "whole numbers parted by commas: 2,17,4,5"
        raise InputError(f"layout: {option}", repr(words), allowed) from None


def indices(words: list[str], cell: str | None) -> list[tuple[int, ...]]:
    """Read the indices of `--at`; one option may hold several, with spaces or semicolons between them."""
    split = [word for entry in words for word in entry.replace(";", " ").split()]
    return [sizes("--at", _without_gates(word, cell) if cell else word) for word in split]


def views_of(words: list[str]) -> tuple[View, ...]:
    """Read the views of `--view`: each word that is no list of numbers starts a view."""
    views: list[View] = []
    for word in " ".join(words).split():
        if word[0].isalpha():
            views.append(View(word.replace("-", "_"), ()))
        elif views:
            views[-1] = View(views[-1].name, (*views[-1].numbers, sizes("--view", word)))
        else:
            raise InputError("layout: --view", repr(word), "a view first: reshape, permute_axes or submemory")
    return tuple(views)


def beside_of(words: list[str]) -> Beside:
    """Read the tensor of `--beside`: name and shape, then its type, start NPU and offset."""
    name, shape, *rest = [*" ".join(words).split(), "", ""][: max(2, len(" ".join(words).split()))]
    if not shape or len(rest) > 3:
        allowed = "NAME SHAPE, then DTYPE, START_NPU and OFFSET where they aren't float32, 0 and 0"
        raise InputError("layout: --beside", repr(" ".join(words)), allowed)
    dtype, start_npu, offset = (*rest, *("float32", "0", "0")[len(rest) :])
    start = sizes("--beside", f"{start_npu},{offset}")
    return Beside(name.lower(), sizes("--beside", shape), dtype, *start)


def _without_gates(word: str, cell: str) -> str:
    """Replace the name of a gate in an index by its number."""
    parts = word.split(",")
    return ",".join(str(gate_index(cell, part)) if part.isalpha() else part for part in parts)
