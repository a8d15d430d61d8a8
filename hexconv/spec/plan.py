"""How a chain is scheduled: the knobs, with no word about what is computed."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError
from hexconv.spec.fields import STRICT, Size

Order = Literal["k_outer", "h_outer"]
Halo = Literal["recompute", "roll"]
Filters = Literal["per_tile", "resident"]
Buffering = Literal["single", "double"]
Kernel = Literal["plain", "hvx", "host"]
Simd = Literal["auto", "avx512", "avx2"]
MOST_THREADS = 256


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Plan:
    """The knobs of a schedule.

    Attributes:
        k_split: output-channel blocks (32 channels each) computed per outer step (seed document 003, "Baseline").
        h_split: block rows (8 rows each) computed per outer step.
        order: which of a conv's two outer loops stands outside. `"k_outer"`, the channel tiles (the documents' order):
            what a conv reads is made again for each of its channel tiles. `"h_outer"`, the stripes: once per stripe.
            A conv with one row step has one stripe: what it reads is made once in either order.
        halo: what happens to slabs that two stripes share. `"recompute"`: each stripe loads and computes its own.
            `"roll"`, with the stripes outermost: they stay in ring buffers, and no slab is loaded or computed twice.
        filters: `"per_tile"`, staged again for every step of their conv; `"resident"`, once for the whole run.
        buffering: `"single"`, what a step needs is copied in, computed on and copied out, one after the other;
            `"double"`, the next stripe of the input and the next filter tile are copied in, and the last output tile is
            copied out, while a step computes.
        kernel: `"plain"`, the documented schedule; `"hvx"`, HVX kernels for integer chains (`hexconv.schedule.hvx`),
            which roll stripes and stage whole filters: of the knobs above only `h_split` has an effect on them;
            `"host"`, AVX kernels for float32 chains on this machine (`hexconv.schedule.host`), likewise.
        threads: of the host kernel: bands of the output's rows that are computed side by side, each with caches of its
            own. Rows of intermediates at the seams of bands are computed once, unless bands are too short for that.
        simd: of the host kernel: the vector registers that its tiles are made for; `"auto"`, those of this machine.
        storage: where the caches live: `"global"`, or `"vtcm"` for Hexagon's tightly coupled memory.
        arch: whose VTCM they have to fit, as TVM's target tags name it.

    Raises:
        InputError: rings for a halo, but the stripes are not outermost; or the host kernel, but caches in VTCM.
    """

    k_split: Size = 1
    h_split: Size = 1
    order: Order = "k_outer"
    halo: Halo = "recompute"
    filters: Filters = "per_tile"
    buffering: Buffering = "single"
    kernel: Kernel = "plain"
    threads: Annotated[int, Field(ge=1, le=MOST_THREADS)] = 1
    simd: Simd = "auto"
    storage: Literal["global", "vtcm"] = "global"
    arch: Annotated[str, Field(pattern=r"^v\d+$")] = "v68"

    def __post_init__(self) -> None:
        """Refuse what no knob can refuse alone."""
        if self.halo == "roll" and self.order != "h_outer":
            allowed = '"recompute", or order = "h_outer" with it: else each channel tile starts all stripes anew'
            raise InputError("plan.halo", f'"roll" with order = "{self.order}"', allowed)
        if self.kernel == "host" and self.storage == "vtcm":
            raise InputError("plan.storage", '"vtcm" with kernel = "host"', '"global": VTCM is Hexagon\'s')

    @property
    def scope(self) -> str:
        """TVM's storage scope of the caches."""
        return "global.vtcm" if self.storage == "vtcm" else "global"

    @property
    def slug(self) -> str:
        """A short name, for test ids, files and rows.

        >>> Plan(k_split=2, h_split=2).slug
        'ks2-hs2'
        >>> Plan(order="h_outer", filters="resident").slug
        'ks1-hs1-h_outer-resident'
        """
        stated = {self.order: "k_outer", self.halo: "recompute", self.filters: "per_tile", self.buffering: "single"}
        knobs = "".join(f"-{value}" for value, default in stated.items() if value != default)
        place = f"-vtcm-{self.arch}" if self.storage == "vtcm" else ""
        kernel = f"-{self.kernel}" if self.kernel != "plain" else ""
        threads = f"-t{self.threads}" if self.threads > 1 else ""
        simd = f"-{self.simd}" if self.simd != "auto" else ""
        return f"ks{self.k_split}-hs{self.h_split}{knobs}{place}{kernel}{threads}{simd}"
