"""The bytes of every cache of every plan of a space at once (`hexconv.analyze.footprint`, on vectors)."""

from dataclasses import dataclass
from math import prod

import numpy as np

from hexconv.analyze.footprint import BLOCK, DTYPE_BYTES, cache_footprints, packed_filter
from hexconv.search.exact import Integers
from hexconv.search.space import Space
from hexconv.search.stripes import Stripes
from hexconv.spec import Chain


@dataclass(frozen=True)
class CacheGrid:
    """One cache.

    Attributes:
        name: as in the closed form.
        dtype: of an element.
        bytes: of every plan; an array that broadcasts to [words, H, K].
    """

    name: str
    dtype: str
    bytes: Integers


def cache_grids(chain: Chain, space: Space, stripes: Stripes) -> tuple[CacheGrid, ...]:
    """Every cache of a chain, in the order in which they are first written."""
    # Which caches there are, and of what, is the same for all plans.
    known = cache_footprints(chain, space.words[0])
    return tuple(
        CacheGrid(cache.name, cache.dtype, _elements(chain, space, stripes, cache.role, cache.name) * size)
        for cache in known
        for size in (DTYPE_BYTES[cache.dtype],)
    )


def _elements(chain: Chain, space: Space, stripes: Stripes, role: str, name: str) -> Integers:
    """Elements of one cache."""
    if role == "filter":
        return _filter(chain, space, stripes, _number(name) - 1)
    if role == "accumulator":
        return np.full((1, 1, 1), prod(BLOCK))
    tensor = {"input": 0, "output": len(chain.conv)}.get(role) if role != "intermediate" else _number(name)
    assert tensor is not None, f"a cache that is no {role}"
    extents, rows = stripes.extents[tensor], stripes.slabs[tensor][None, :, None]
    if role == "output":
        return rows * stripes.staged_blocks[-1] * (extents.column_blocks * prod(BLOCK))
    return rows * (extents.column_blocks * extents.channel_blocks * prod(BLOCK))


def _filter(chain: Chain, space: Space, stripes: Stripes, index: int) -> Integers:
    """The blocks of one tile, or of all where the filters are resident."""
    out_blocks, *block = packed_filter(chain, index)
    staged = np.where(space.flags("filters", "resident"), out_blocks, stripes.staged_blocks[index])
    return staged * prod(block)


def _number(name: str) -> int:
    """The number in `filter12_cache` or `intermediate3`."""
    return int("".join(character for character in name if character.isdigit()))
