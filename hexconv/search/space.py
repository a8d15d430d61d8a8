"""The plan space of a chain as a grid of numpy axes, and the strips of columns that a bound leaves in it.

Some knobs are numbers, the splits; all others are words, listed in `WORDS`. A combination of words that `Plan` refuses
is no part of the space. The grid has three axes: words x stripes x k_split, in the order in which they are declared, so
that the plan with fewer departures from the documented schedule stands before one with more. Stripes are `h_split`
blocks of rows, then, where the kernel obeys `rows`, rows. Each kind of strips of columns has such a grid of its own, of
the words that go with it.

Of all heights with the same number of stripes the least is taken: its caches are the smallest, and stripes that are
recomputed share the fewest rows. Of two and three stripes some higher ones are taken, too: nothing is computed beside
the copies before the first stripe and behind the last one, which are short where the last stripe is. Where there are
few rows, a row is a large part of them, and all heights are taken.
`reports.plans` holds the answers against a search of all heights.

Of all widths with the same number of strips the least is taken: its strips share the fewest columns, or make the fewest
right of the image, and its caches are the smallest; and beside it the least one of whole groups of 32 columns, where
kernels may multiply pixels by lanes, and take other memory. Strips cost
traffic where two neighbours both read the columns that they share, and memory where these are kept. So a search looks
at those that may improve on plans of whole rows, the widest first, since they read the least.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, product
from math import prod
from typing import Any, get_args

import numpy as np

from hexconv.analyze.exact import Integers
from hexconv.analyze.needed import needed_work
from hexconv.analyze.plan_axes import Plans
from hexconv.errors import InputError, Unsupported
from hexconv.kernel.layouts import documented_filter
from hexconv.spec import Chain, Plan, kernel_of, nest_of, tensor_extents
from hexconv.spec.capacities import MOST_QUEUES, copy_queues
from hexconv.spec.chain import IN_BLOCKS
from hexconv.spec.extents import REMEMBERED, ROW_BLOCK
from hexconv.spec.kernels import KERNELS, Kernel
from hexconv.spec.knobs import KNOBS, SPLITS, ColumnHalo, acts
from hexconv.spec.phases import in_phases
from hexconv.spec.places import Storage
from hexconv.spec.strips import strip_count, strips_as_wide, why_no_strips

WORDS = {name: knob.searched for name, knob in KNOBS.items() if knob.searched}
"""Knobs of the search that are words, and what each may be.

Where caches lie is one more such knob; the search is given its values.
"""

FIXED = tuple(knob for knob in KNOBS if knob not in (*WORDS, *SPLITS, "rows", "w_split", "column_halo"))
"""Knobs of a plan that a search leaves as they are."""

PARTS_OF_BLOCK = (1, 2, 4)
"""The heights, in rows, of stripes that are less than a block of 8 rows high."""

LANES = 4
"""The blocks of columns in a group of 32: as many lanes as a vector of words has."""

LONG = 20
"""A nest of blocks of more convs than this is searched by splits that are powers of two, and the largest ones: nearly
each plan of it shares memory in a way of its own, and all its loops are walked for that."""

PART = 1 << 18
"""The most plans, and the most steps of their last conv, that are held in memory at a time."""


@dataclass(frozen=True)
class Strip:
    """A kind of strips: how wide they are in blocks of 8 columns, and whether shared columns are kept."""

    w_split: int
    column_halo: ColumnHalo = "recompute"

    def goes_with(self, plan: Plan) -> bool:
        """Whether a plan may have such strips: columns are kept only where each row of a strip is made once."""
        return self.column_halo == "recompute" or (plan.halo == "roll" and not plan.rolls_in_tiles)

    @property
    def knobs(self) -> dict[str, Any]:
        """The knobs that state it."""
        return {"w_split": self.w_split, "column_halo": self.column_halo}


@lru_cache(REMEMBERED)
def _words_in_strips(words: tuple[Plan, ...], strip: Strip | None) -> tuple[Plan, ...]:
    """Return those plans that may have strips, with these; every piece of a chain asks for the same ones."""
    return tuple(replace(plan, **strip.knobs) for plan in words if strip.goes_with(plan)) if strip else words


@lru_cache(1 << 14)
def _with_splits(words: Plan, h_split: int | None, rows: int | None, k_split: int) -> Plan:
    """Return a plan with some words and splits: all pieces of a chain name the same ones."""
    stripe = {"h_split": h_split} if h_split else {"rows": rows}
    return replace(words, **stripe, k_split=k_split)


@dataclass(frozen=True)
class Space:
    """Plans of one chain; a plan's number counts through strips, words, stripes and k_split, the last one fastest.

    Attributes:
        words: one plan for every combination of words, with splits of 1.
        h_splits: the values of `h_split`, [H], increasing.
        k_splits: the values of `k_split`, [K], increasing.
        rows: the heights in rows of the stripes that follow those of `h_splits`.
        strips: the kinds of strips; None stands for whole rows, and for what `words` say.
    """

    words: tuple[Plan, ...]
    h_splits: Integers
    k_splits: Integers
    rows: tuple[int, ...] = ()
    strips: tuple[Strip | None, ...] = (None,)

    @classmethod
    def of(cls, chain: Chain, plan: Plan, storages: Sequence[Storage] = ()) -> "Space":
        """Build the space of all plans of a chain; knobs that the search doesn't vary stay as in `plan`.

        Args:
            chain: the chain to plan.
            plan: the plan that the search is given.
            storages: where caches may lie; if empty, as in `plan`.

        >>> from hexconv.spec import Conv2d
        >>> conv = Conv2d(out_channels=128, kernel=(3, 3))
        >>> Space.of(Chain(input=(1, 64, 64, 128), conv=(conv, conv)), Plan()).shape
        (14, 8, 4)
        """
        outputs = tensor_extents(chain)[1:]
        blocks = sorted({height for output in outputs for height in searched_heights(output.row_blocks)})
        has_channels = acts("k_split", kernel_of(chain, plan))
        channels = max(output.channel_blocks for output in outputs) if has_channels else 1
        rows = rows_of_stripes(chain) if acts("rows", plan.kernel or "plain") else ()
        words = combinations(plan, tuple(storages))
        if not any(tensor.lead for tensor in tensor_extents(in_phases(chain, plan.kernel, "slabs"))):
            words = tuple(word for word in words if word.padding_rows == Plan.padding_rows)
        words = tuple(word for word in words if copy_queues(len(chain.conv), word) <= MOST_QUEUES) or words
        splits = list(range(1, channels + 1))
        if nest_of(chain, plan) == "blocks" and len(chain.conv) > LONG:
            blocks, splits = _doubled(blocks), _doubled(splits)
        return cls(words, np.array(blocks), np.array(splits), rows)

    def check(self, chain: Chain) -> None:
        """Refuse a space that is too large to search.

        Raises:
            Unsupported: there are more plans than a search for this kernel looks at.
        """
        most = KERNELS[kernel_of(chain, self.words[0])].most_plans
        if self.size > most:
            words, h, k = self.shape
            raise Unsupported(
                f"{self.size} plans ({words} combinations of words x {h} of stripes x {k} of k_split); a search looks "
                f"at every plan, at {most} at most; plan a chain of fewer rows or channels"
            )

    def parts(self, rows: int, mixes_heights: bool = False) -> "Iterator[Space]":
        """Split the space by kinds of stripes and ranges of `h_split`, so that each part can be held in memory.

        Args:
            rows: the rows of the output, in blocks of 8.
            mixes_heights: whether a part may have stripes of blocks of rows and stripes of some rows.
        """
        if self.rows and len(self.h_splits):
            *parts, last = replace(self, rows=()).parts(rows)
            yield from parts
            if mixes_heights:
                yield replace(last, rows=self.rows)
            else:
                yield from (last, replace(self, h_splits=self.h_splits[:0]))
            return
        if self.rows:
            yield self
            return
        held = np.cumsum(len(self.words) * len(self.k_splits) + 2 * (rows // self.h_splits + 1))
        for h_splits in np.split(self.h_splits, np.flatnonzero(np.diff(held // PART)) + 1):
            yield replace(self, h_splits=h_splits)

    @property
    def key(self) -> Hashable:
        """What tells this space from others."""
        return self.words, self.h_splits.tobytes(), self.k_splits.tobytes(), self.rows, self.strips

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of combinations of words, of stripes, and of values of k_split, for one kind of strips."""
        return len(self.words), len(self.rows) + len(self.h_splits), len(self.k_splits)

    @property
    def stripes(self) -> list[dict[str, int]]:
        """The knobs that state each height of a stripe."""
        return [*({"h_split": int(h)} for h in self.h_splits), *({"rows": rows} for rows in self.rows)]

    @property
    def size(self) -> int:
        """How many plans there are."""
        return sum(self._sizes)

    def plan(self, number: int) -> Plan:
        """Return one plan of the space."""
        strips = bisect_right(self._ends, number)
        words, (_, heights, tiles) = _words_in_strips(self.words, self.strips[strips]), self.shape
        stripes, k = divmod(int(number) - self._ends[strips] + self._sizes[strips], tiles)
        word, h = divmod(stripes, heights)
        h_split = int(self.h_splits[h]) if h < len(self.h_splits) else None
        rows = None if h_split else self.rows[h - len(self.h_splits)]
        return _with_splits(words[word], h_split, rows, int(self.k_splits[k]))

    @cached_property
    def _ends(self) -> list[int]:
        """The number of the first plan behind those with each kind of strips."""
        return list(accumulate(self._sizes))

    @cached_property
    def _sizes(self) -> list[int]:
        """How many plans there are with each kind of strips."""
        _, *others = self.shape
        return [len(_words_in_strips(self.words, strip)) * prod(others) for strip in self.strips]

    def in_strips(self, number: int) -> "Space":
        """Return the plans with one of the kinds of strips."""
        return replace(self, words=_words_in_strips(self.words, self.strips[number]), strips=(None,))

    def flags(self, knob: str, value: str) -> np.ndarray:
        """Return where a knob has a value: [words, 1, 1]."""
        return self.plans.flags(knob, value)

    @cached_property
    def plans(self) -> Plans:
        """The plans with one kind of strips as a grid: those of `words`, if there are several kinds."""
        heights = tuple(stripe.get("rows") or stripe["h_split"] * ROW_BLOCK for stripe in self.stripes)
        sample = replace(self.words[0], **{"h_split": 1, **({"rows": self.rows[0]} if self.rows else {})})
        return Plans(self.words, heights, tuple(map(int, self.k_splits)), sample)


HIGHER = {2: 4, 3: 3}
"""How many heights are searched that give so many stripes: from stripes of about equal heights to a last one of one row
or block. More stripes have a short last one anyway."""


FEW = 16
"""So many rows or blocks are searched in stripes of all heights."""


@lru_cache(REMEMBERED)
def searched_heights(size: int) -> tuple[int, ...]:
    """Return, for each number of stripes of so many rows or blocks, the least height that gives it; and higher ones.

    >>> searched_heights(28)
    (1, 2, 3, 4, 5, 6, 7, 10, 12, 13, 14, 18, 23, 27, 28)
    >>> searched_heights(7)
    (1, 2, 3, 4, 5, 6, 7)
    """
    if size <= FEW:
        return tuple(range(1, size + 1))
    least = {-(-size // stripes) for stripes in range(1, size + 1)}
    ends = ((-(-size // stripes), -(-size // (stripes - 1)) - 1, count) for stripes, count in HIGHER.items())
    higher = {round(height) for end in ends if end[0] <= end[1] for height in np.linspace(*end)}
    return tuple(sorted(least | higher))


def rows_of_stripes(chain: Chain) -> tuple[int, ...]:
    """Return the heights in rows that are searched, beside those of whole blocks.

    Where the output lies in blocks, a stripe in rows is a part of a block (`Plan.rows`).

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 7, 8, 4), output_layout="NHWC", conv=(Conv2d(out_channels=2),))
    >>> rows_of_stripes(chain), rows_of_stripes(replace(chain, output_layout="NHWC8h8w32c"))
    ((1, 2, 3, 4, 5, 6, 7), (1, 2, 4))
    """
    rows = tensor_extents(chain)[-1].rows
    parts = {height for height in PARTS_OF_BLOCK if height <= rows}
    return tuple(sorted(parts if chain.output_layout == IN_BLOCKS else {*parts, *searched_heights(rows)}))


@lru_cache(REMEMBERED)
def combinations(plan: Plan, storages: tuple[Storage, ...] = ()) -> tuple[Plan, ...]:
    """A plan with every combination of words that goes together, its splits 1; `storages` as in `Space.of`.

    Stripes that roll inside of channel tiles read the input again for each tile, and stage each tile once. Resident
    filters leave nothing to gain by that, so these are left out; and such plans come last, since with one tile they
    are those with stripes outermost.
    """
    turned = {knob: words for knob, words in WORDS.items() if acts(knob, plan.kernel or "plain")}
    words = {"storage": storages or (plan.storage,), **turned}
    first = replace(plan, k_split=1, h_split=1, rows=None, w_split=None, column_halo="recompute")
    found = []
    for values in product(*words.values()):
        try:
            found.append(replace(first, **dict(zip(words, values, strict=True))))
        except InputError:
            continue
    gaining = (plan for plan in found if not plan.rolls_in_tiles or plan.filters == "per_tile")
    return tuple(sorted(gaining, key=lambda plan: plan.rolls_in_tiles))


@dataclass(frozen=True)
class Scope:
    """The knobs that a search held fixed, and those that it turned: what it says of all plans, it says of these.

    Attributes:
        fixed: the values that are the same in all plans: `kernel`, `dtype`, layouts of arguments, and other knobs.
        turned: for each knob that was turned, its words or its numbers.
    """

    fixed: dict[str, Any]
    turned: dict[str, tuple[Any, ...]]

    @classmethod
    def of(cls, chain: Chain, space: Space) -> "Scope":
        """The scope of a space.

        >>> from hexconv.spec import Conv2d
        >>> chain = Chain(input=(1, 16, 8, 4), conv=(Conv2d(out_channels=2),))
        >>> scope = Scope.of(chain, Space.of(chain, Plan()))
        >>> scope.fixed["filters"], scope.turned["halo"], scope.turned["h_split"]
        ('OIHW8i32o4i', ('recompute', 'roll'), (1, 2))
        """
        plan = space.words[0]
        documented = (documented_filter(chain, index).name for index in range(len(chain.conv)))
        filters = ("as its tiles multiply them",) if nest_of(chain, plan) == "rows" else dict.fromkeys(documented)
        dtypes = {"dtype": chain.dtype, "filter dtype": chain.dtype_of_filters}
        fixed: dict[str, Any] = {"kernel": kernel_of(chain, plan), **dtypes, "input": chain.input_layout}
        fixed |= {"filters": " and ".join(filters), "output": chain.output_layout, "arch": plan.arch}
        fixed |= {"threads": plan.threads} if plan.threads > 1 else {}
        names = [name for name in WORDS if acts(name, plan.kernel or "plain")]
        names += ["storage"] if len({words.storage for words in space.words}) > 1 else []
        turned = {name: tuple(dict.fromkeys(getattr(words, name) for words in space.words)) for name in names}
        if len(space.strips) > 1:
            widths = ("whole rows" if strip is None else str(strip.w_split) for strip in space.strips)
            turned["w_split"] = tuple(dict.fromkeys(widths))
            turned["column_halo"] = tuple(dict.fromkeys(strip.column_halo for strip in space.strips if strip))
        elif acts("w_split", plan.kernel or "plain"):
            fixed["w_split"] = plan.w_split or "whole rows"
        splits = {"rows": space.rows, "h_split": space.h_splits, "k_split": space.k_splits}
        return cls(fixed, turned | {name: tuple(map(int, all)) for name, all in splits.items() if len(all)})


@lru_cache(REMEMBERED)
def kinds_of_strips(chain: Chain, kernel: Kernel | None) -> tuple[Strip, ...]:
    """Return the kinds of strips that a kernel may have, the widest first; none where the chain allows no strips.

    >>> from hexconv.spec import Conv2d
    >>> conv = Conv2d(out_channels=8, kernel=(1, 3))
    >>> chain = Chain(input=(1, 8, 26, 8), output_layout="NHWC", dtype="uint8", conv=(conv,))
    >>> [(strip.w_split, strip.column_halo) for strip in kinds_of_strips(chain, "hvx")]
    [(2, 'recompute'), (2, 'keep'), (1, 'recompute'), (1, 'keep')]
    """
    every, found = tensor_extents(chain)[-1].column_blocks, list[Strip]()
    if not acts("w_split", kernel or "plain") or why_no_strips(chain, 1):
        return ()
    for width in range(every, 0, -1):
        for halo in get_args(ColumnHalo):
            count = strip_count(chain, width, halo)
            is_least = width == 1 or strip_count(chain, width - 1, halo) > count
            is_of_lanes = width % LANES == 0 and (width == LANES or strip_count(chain, width - LANES, halo) > count)
            if count > 1 and (is_least or is_of_lanes) and not why_no_strips(chain, width, halo):
                found.append(Strip(width, halo))
    return tuple(found)


@lru_cache(REMEMBERED)
def least_bytes(chain: Chain, strip: Strip) -> int:
    """Return a lower bound of the bytes that strips of some kind move.

    Every strip reads its columns of each row that is needed; filters and output are as for whole rows.
    """
    needed, strips = needed_work(chain).traffic_bytes, strips_as_wide(chain, strip.w_split, strip.column_halo)
    valid = [strips.valid_columns(0, number) for number in range(strips.count)]
    all_columns, read = chain.input[2], sum(end - first for first, end in valid)
    others = sum(size for name, size in needed.items() if name != "input")
    # At most all columns are needed, so this is at most the rows that are needed, at whole width.
    rows_bytes = needed["input"] // all_columns
    return others + max(rows_bytes * read, needed["input"])


def _doubled(splits: Sequence[int]) -> list[int]:
    """Return those that are powers of two, and the last one.

    >>> _doubled([1, 2, 3, 4, 5, 7])
    [1, 2, 4, 7]
    """
    return [split for split in splits if split & (split - 1) == 0 or split == splits[-1]]
