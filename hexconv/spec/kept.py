"""Strips that keep the columns which the next strip reads too: each column of an intermediate is made once.

Strips go from right to left. A strip makes the same number of columns of a tensor as every other one, n = the columns
of the output in a strip times the strides in between, and finds right of them those that the strip before it has left:

    stored:  [ n columns that the strip makes | k columns that the strip to the right has made ]      k = reach - stride

So a conv reads its source from the first stored column on, wherever its strip stands, and its nest is that of a chain
whose intermediates have k columns of padding on the right (`KeptChain`). A row that has been made takes its last k
columns from a cache of its own and then leaves its first k there, in the same place. That cache has all rows: strips
come one after the other, and each makes the rows from top to bottom.

Every strip begins at a whole number of strips from the left edge of the output. The right edge of the output lies where
the first strip ends, or left of that: what the convs read beyond it has to be made by the first strip, too.
"""

from dataclasses import fields, replace
from functools import lru_cache

from pydantic.dataclasses import dataclass

from hexconv.hashed import hashed_once
from hexconv.spec.chain import Chain
from hexconv.spec.conv import Conv2d
from hexconv.spec.extents import REMEMBERED, blocks
from hexconv.spec.fields import STRICT


@hashed_once
@dataclass(frozen=True, kw_only=True, config=STRICT)
class KeptChain(Chain):
    """A batch of strips that keep columns: what its convs pad on the right is what an earlier strip has left."""

    @classmethod
    def of(cls, chain: Chain) -> "KeptChain":
        """Return the same chain, its padding on the right being kept columns."""
        return cls(**{field.name: getattr(chain, field.name) for field in fields(chain)})

    @property
    def keeps_columns(self) -> bool:
        """True."""
        return True


@lru_cache(REMEMBERED)
def padded(conv: Conv2d, left: int, right: int) -> Conv2d:
    """Return a conv with other padding of columns."""
    return replace(conv, padding=replace(conv.padding, left=left, right=right))


def kept_strips(chain: Chain, width: int) -> int:
    """Return how many strips of `width` columns of the output make all columns that a chain needs.

    >>> from hexconv.spec.conv import Conv2d
    >>> conv = Conv2d(out_channels=8, kernel=(3, 3))
    >>> [kept_strips(Chain(input=(1, 12, 20, 4), conv=(conv,) * convs), 8) for convs in (1, 2, 4)]
    [3, 3, 3]
    """
    convs = range(len(chain.conv))
    return 1 + max([0, blocks(chain.shapes[-1][2] - width, width), *(_more(chain, width, index) for index in convs)])


def _more(chain: Chain, width: int, tensor: int) -> int:
    """Return how many strips come after the first one so that this makes the last column that a tensor needs."""
    end, left, stride = chain.shapes[-1][2], 0, 1
    for index in reversed(range(tensor, len(chain.conv))):
        conv = chain.conv[index]
        end = min((end - 1) * conv.stride[1] - conv.padding.left + conv.reach[1], chain.shapes[index][2])
        left, stride = left * conv.stride[1] + conv.padding.left, stride * conv.stride[1]
    return blocks(end + left - width * stride, width * stride)
