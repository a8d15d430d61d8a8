"""How a chain is scheduled: the knobs, with no word about what is computed."""

from dataclasses import fields
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError
from hexconv.spec.fields import STRICT, Size
from hexconv.spec.knobs import Kernel, acts, why_without_effect
from hexconv.spec.wrong import in_one_line

Order = Literal["k_outer", "h_outer"]
Halo = Literal["recompute", "roll"]
Filters = Literal["per_tile", "resident"]
Buffering = Literal["single", "double"]
Simd = Literal["auto", "avx512", "avx2"]
Arch = Literal["v65", "v66", "v67", "v68", "v69", "v71", "v73", "v75", "v79", "v81"]
"""Those that the compiler knows. TVM's target tags say how much VTCM one has, but not of all of them."""
WITHOUT_TAG: tuple[Arch, ...] = ("v67", "v71", "v79", "v81")
MOST_THREADS = 256
MOST_VTCM_BYTES = 1 << 30


@in_one_line("plan")
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
        kernel: the kernel that is wished for; where it can't serve a chain, the next best takes over
            (`hexconv.spec.kernel`). `"plain"`, the documented schedule; `"hvx"`, HVX kernels for integer chains: in the
            documented schedule's loops, over rows, where a plan of uint8 or int8 has any knob above but `h_split`, else
            kernels of the whole chain (`hexconv.schedule.hvx`), which roll stripes and stage whole filters; `"host"`,
            AVX kernels for float32 chains on this machine (`hexconv.schedule.host`), likewise. Without it, the fastest
            that serves the chain where it runs and obeys all knobs that are stated.
        threads: of the host kernel: bands of the output's rows that are computed side by side, each with caches of its
            own. Rows of intermediates at the seams of bands are computed once, unless bands are too short for that.
        simd: of the host kernel: the vector registers that its tiles are made for; `"auto"`, those of this machine.
        storage: where the caches live: `"global"`, or `"vtcm"` for Hexagon's tightly coupled memory.
        arch: whose VTCM they have to fit.
        vtcm_bytes: how much VTCM there is, where it isn't what TVM's target tag of the architecture says. The tag of
            v73 says 8 MiB, and there are v73 with 4; v67, v71, v79 and v81 have no tag, and need it with
            `storage = "vtcm"`.

    Raises:
        InputError: rings for a halo, but the stripes are not outermost; a knob that has no effect on the kernel that is
            wished for; or caches in the VTCM of an architecture of which nobody says how much it has.
    """

    k_split: Size = 1
    h_split: Size = 1
    order: Order = "k_outer"
    halo: Halo = "recompute"
    filters: Filters = "per_tile"
    buffering: Buffering = "single"
    kernel: Kernel | None = None
    threads: Annotated[int, Field(ge=1, le=MOST_THREADS)] = 1
    simd: Simd = "auto"
    storage: Literal["global", "vtcm"] = "global"
    arch: Arch = "v68"
    vtcm_bytes: Annotated[int, Field(ge=1, le=MOST_VTCM_BYTES)] | None = None

    def __post_init__(self) -> None:
        """Refuse what no knob can refuse alone."""
        if self.halo == "roll" and self.order != "h_outer":
            allowed = '"recompute", or order = "h_outer" with it: else each channel tile starts all stripes anew'
            raise InputError("plan.halo", f'"roll" with order = "{self.order}"', allowed)
        self._check_effects()
        if self.storage == "vtcm" and self.vtcm_bytes is None and self.arch in WITHOUT_TAG:
            allowed = "the bytes of VTCM that there are, such as 8388608: TVM doesn't know it of this architecture"
            raise InputError("plan.vtcm_bytes", f'nothing with arch = "{self.arch}"', allowed)

    def _check_effects(self) -> None:
        """Refuse knobs that would do nothing. Without a kernel, plain is always there to obey."""
        for knob, value in self.stated.items():
            if not acts(knob, self.kernel or "plain"):
                given = f"{value!r} with " + (f'kernel = "{self.kernel}"' if self.kernel else "no kernel")
                allowed = f"nothing, or another kernel: {why_without_effect(knob, self.kernel or 'plain')}"
                raise InputError(f"plan.{knob}", given, allowed)

    @property
    def stated(self) -> dict[str, int | str]:
        """The knobs that are not at their defaults, the kernel aside. Where there are none, no plan is stated.

        >>> Plan(kernel="hvx", h_split=2, k_split=1).stated
        {'h_split': 2}
        """
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "kernel"}
        return {name: value for name, value in values.items() if value != getattr(Plan, name)}

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
        >>> Plan(kernel="hvx", h_split=2).slug
        'ks1-hs2-hvx'
        """
        splits = f"hs{self.h_split}"
        if acts("k_split", self.kernel or "plain"):
            splits = f"ks{self.k_split}-{splits}"
        stated = {self.order: "k_outer", self.halo: "recompute", self.filters: "per_tile", self.buffering: "single"}
        knobs = "".join(f"-{value}" for value, default in stated.items() if value != default)
        kernel = f"-{self.kernel}" if self.kernel else ""
        threads = f"-t{self.threads}" if self.threads > 1 else ""
        simd = f"-{self.simd}" if self.simd != "auto" else ""
        return f"{splits}{knobs}{self._place}{kernel}{threads}{simd}"

    @property
    def _place(self) -> str:
        """The part of a name that says whose VTCM holds the caches, and how much there is."""
        if self.storage != "vtcm":
            return ""
        return f"-vtcm-{self.arch}" + (f"-{self.vtcm_bytes}" if self.vtcm_bytes else "")
