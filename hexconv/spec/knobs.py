"""The table of knobs: a row for every field of `Plan`, with all that the rest of the program has to know of it.

A knob's type, default and meaning are its field and its entry in `Plan`; the kernels that obey it name it
(`hexconv.spec.kernels`). Names of plans, searches, random plans and the page of knobs read this table.

A knob that doesn't act on a kernel is refused where that kernel is asked for (`Plan`), keeps a kernel from being chosen
where none is asked for (`hexconv.spec.kernel_choice`), and is dropped where another kernel takes over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from pydantic import Field

from hexconv.spec.choices import PaddingRows
from hexconv.spec.kernels import KERNELS, Kernel

Order = Literal["k_outer", "h_outer"]
Halo = Literal["recompute", "roll"]
ColumnHalo = Literal["recompute", "keep"]
Filters = Literal["per_tile", "resident"]
Buffering = Literal["single", "double"]
MOST_THREADS = 256
Threads = Annotated[int, Field(ge=1, le=MOST_THREADS)]
Activations = Literal["words", "splats"]
Arch = Literal["v65", "v66", "v67", "v68", "v69", "v71", "v73", "v75", "v79", "v81"]
"""The architectures that the compiler knows. TVM's target tags say how much VTCM some of them have, not all."""
MOST_VTCM_BYTES = 1 << 30
VtcmBytes = Annotated[int, Field(ge=1, le=MOST_VTCM_BYTES)]

Value = int | str


@dataclass(frozen=True)
class Knob:
    """What the program knows of a knob beside its field in `Plan`.

    Attributes:
        turned: values other than the default, as examples: the page of knobs shows what they do.
        beside: the other knobs of these examples, so that the knob acts, and acts alike on every machine.
        has_loops: whether the page shows what the knob does to a nest.
        searched: the values among which a search looks for the best; empty where a search holds the knob.
        drawn: the values that random plans draw, all equally often, the simplest first; empty where the choice
            depends on the chain or on other knobs (`hexconv.sweep.random_case`).
        named: how a plan's name writes a value.
        smallest: the value with the smallest caches, to take where a plan doesn't fit; None where no word has them.
        elsewhere: why it does nothing on kernels that don't obey it; those that know better say it themselves.
    """

    turned: tuple[Value, ...]
    beside: Mapping[str, Value] = field(default_factory=dict[str, Value])
    has_loops: bool = True
    searched: tuple[str, ...] = ()
    drawn: tuple[Value, ...] = ()
    named: str = "{}"
    smallest: Value | None = None
    elsewhere: str = ""


KNOBS: Mapping[str, Knob] = {
    "k_split": Knob(turned=(2,), named="ks{}"),
    "h_split": Knob(turned=(2,), named="hs{}"),
    "rows": Knob(
        turned=(2,),
        beside={"kernel": "hvx"},
        named="r{}",
        elsewhere="the cache of its output lies in blocks of 8 rows, so a stripe is some whole blocks (h_split)",
    ),
    "w_split": Knob(turned=(2,), beside={"kernel": "hvx"}, named="ws{}"),
    "column_halo": Knob(
        turned=("keep",),
        beside={"kernel": "hvx", "w_split": 1, "order": "h_outer", "halo": "roll", "filters": "resident"},
        smallest="recompute",
        elsewhere="its stripes have whole rows, so no columns are shared",
    ),
    "order": Knob(turned=("h_outer",), searched=get_args(Order)),
    "halo": Knob(turned=("roll",), beside={"order": "h_outer"}, searched=get_args(Halo)),
    "filters": Knob(turned=("resident",), searched=get_args(Filters), drawn=get_args(Filters), smallest="per_tile"),
    "buffering": Knob(turned=("double",), searched=get_args(Buffering), drawn=get_args(Buffering), smallest="single"),
    "padding_rows": Knob(
        turned=("slabs",),
        beside={"kernel": "hmx", "order": "h_outer", "halo": "roll"},
        searched=get_args(PaddingRows),
        drawn=get_args(PaddingRows),
        smallest="read",
        elsewhere="of a block of 8 rows it computes those alone that are read",
    ),
    "storage": Knob(turned=("vtcm", "filters+output")),  # two of the sixteen ways to place caches
    "arch": Knob(turned=("v69",), has_loops=False),
    "vtcm_bytes": Knob(turned=(1 << 20,), has_loops=False),
    "kernel": Knob(turned=("hvx",)),
    "threads": Knob(turned=(2,), beside={"kernel": "hvx"}, drawn=(1, 2, 3, 4), named="t{}"),
    "activations": Knob(turned=("splats",), beside={"kernel": "hvx"}, drawn=get_args(Activations)),
}
"""The knobs by name, in the order in which a plan's name has them."""

SPLITS = ("k_split", "h_split")
"""The knobs that a plan's name has even at their defaults."""

WHOSE_VTCM = ("arch", "vtcm_bytes")
"""The knobs that have no effect where no cache lies in VTCM."""


def acts(knob: str, kernel: Kernel) -> bool:
    """Return whether a knob of a plan has an effect on a kernel.

    >>> acts("h_split", "plain"), acts("k_split", "hvx"), acts("rows", "plain"), acts("threads", "plain")
    (True, True, False, False)
    """
    return knob in KERNELS[kernel].knobs


def why_without_effect(knob: str, kernel: Kernel) -> str:
    """Say why a knob does nothing on a kernel, and which kernels obey it.

    >>> why_without_effect("threads", "plain")
    "plain does not obey threads: it is the documents' loop nest, which runs in one thread; hvx and hmx obey it"
    """
    others = [other for other in KERNELS if acts(knob, other)]
    why = KERNELS[kernel].unobeyed.get(knob) or KNOBS[knob].elsewhere
    obey = f"{' and '.join(others)} {'obey' if len(others) > 1 else 'obeys'} it"
    return f"{kernel} does not obey {knob}: {why}; {obey}"
