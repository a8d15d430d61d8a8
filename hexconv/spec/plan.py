"""A plan: the knobs that say how a chain is scheduled. What is computed is the chain's matter."""

from dataclasses import fields

from pydantic.dataclasses import dataclass

from hexconv.errors import InputError
from hexconv.hashed import hashed_once
from hexconv.spec.choices import PaddingRows
from hexconv.spec.extents import ROW_BLOCK
from hexconv.spec.fields import STRICT, Size, in_one_line
from hexconv.spec.kernels import KERNELS, Kernel, most_threads, why_fewer_threads
from hexconv.spec.knobs import (
    KNOBS,
    SPLITS,
    WHOSE_VTCM,
    Activations,
    Arch,
    Buffering,
    ColumnHalo,
    Filters,
    Halo,
    Order,
    Threads,
    VtcmBytes,
    acts,
    why_without_effect,
)
from hexconv.spec.places import MIXED, Role, Storage, roles_in_vtcm

WITHOUT_ENGINE: tuple[Arch, ...] = ("v65", "v66", "v67")
"""The architectures without a matrix engine."""
WITHOUT_TAG: tuple[Arch, ...] = ("v67", "v71", "v79", "v81")


@in_one_line("plan")
@hashed_once
@dataclass(frozen=True, kw_only=True, config=STRICT)
class Plan:
    """The knobs of a schedule.

    Attributes:
        k_split: blocks of 32 output channels computed per outer step.
        h_split: blocks of 8 rows computed per outer step.
        rows: rows computed per outer step, instead of `h_split`: 1, 2 or 4, or any number where the chain's output lies
            row by row (`Chain.output_layout`). The hvx kernel alone obeys it; rings then hold just the rows that are
            read.
        w_split: blocks of 8 columns of the output in a strip, over all rows; if left out, rows are whole. Strips follow
            each other (`hexconv.spec.strips`). The hvx kernel alone obeys it.
        column_halo: the halo of strips, columns that two strips read. `"recompute"`: each strip loads and computes its
            own. `"keep"`, with rolling stripes outermost: a cache over all rows keeps the columns of the input and of
            every intermediate that the next strip reads, and no column is loaded or computed twice. Strips go from
            right to left (`hexconv.spec.strips`). All are equally wide, so the first one also makes columns right of
            the image: narrow strips waste the least.
        order: the outermost of a conv's two outer loops. `"k_outer"`, the channel tiles (the documents' order): a
            conv's input is made again for each of its channel tiles. `"h_outer"`, the stripes: once per stripe. A conv
            with one row step has one stripe, and its input is made once in either order.
        halo: the halo of stripes, slabs that two stripes read. `"recompute"`: each stripe loads and computes its own.
            `"roll"`: ring buffers keep them, and no slab is loaded or computed twice. With the channel tiles outermost,
            stripes roll anew in each tile of the last conv that takes several steps: its input is made once per tile,
            and each tile of its filter is staged once for all stripes, in the chain's last conv also for all strips and
            images. Earlier convs run once per stripe, in all of their tiles.
        filters: how often filters are staged. `"per_tile"`: for every step of their conv, or once per tile where
            stripes roll inside of it. `"resident"`: once per run.
        buffering: whether copies overlap compute. `"single"`: a step copies in, computes and copies out, one after the
            other. `"double"`: while a step computes, the next stripe of the input and the next filter tile are copied
            in, and the last output tile is copied out.
        padding_rows: the rows of padding above an intermediate. `"read"`: as many as convs read, so that its own rows
            may begin inside of a block of 8, and 64 of them take 9 blocks. `"slabs"`: more where its own rows take a
            block less then. Its reader takes two packets for one where its taps lie in two blocks, and caches hold a
            block of rows more. The hmx kernel alone obeys it.
        kernel: the kernel that the convs should get. A conv that it can't serve gets the next best
            (`hexconv.spec.kernel_choice`); beside convs of hvx that is scalar code in the same nest. `"plain"` is the
            documented schedule. `"hvx"` has HVX kernels for integer chains, in the documented schedule's loops, over
            rows. `"hmx"` computes whole chains of uint8 or int8 by packets of Hexagon's matrix engine, in the
            documented schedule; a model performs them, and nothing of it ran on hardware. If this is left out, a conv
            gets the fastest kernel that serves it on the target and obeys all knobs that are stated; that is never hmx.
        threads: at most as many as `arch` has HVX contexts. With the hvx kernel, bands of the output's rows are
            computed side by side, each with caches of its own; rows of intermediates at the seam of two bands are
            computed by both. With the hmx kernel, threads share the tiles of each step, and the rows that HVX copies,
            in the same caches: one at a time issues to the engine, a row of tiles long, and each has sums of such a
            row.
        storage: where the caches live. `"global"` is memory, `"vtcm"` is Hexagon's tightly coupled memory. Names of
            roles, such as `"filters+output"`, put these caches into VTCM and the others into memory; the roles are
            `input`, `intermediates`, `filters` and `output`, in this order. What a kernel reads and writes in caches
            outside of VTCM counts as traffic. The caches of the hmx kernel all live in VTCM.
        activations: how HVX kernels multiply activations. `"words"`: they read a word of 4 channels at a time, by a
            scalar load. `"splats"`: they load vectors and spread each word over all lanes of another vector, so that no
            scalar load reads a cache; this is meant for caches in VTCM, where scalar loads are slow. A product of two
            vectors issues twice a packet from v69 on. Convs whose source has rows that are no whole vectors keep words.
        arch: the architecture whose VTCM the caches have to fit.
        vtcm_bytes: how much VTCM there is, where it isn't what TVM's target tag of the architecture says. The tag of
            v73 says 8 MiB, and there are v73 with 4; v67, v71, v79 and v81 have no tag, and need it with
            caches in VTCM.

    Raises:
        InputError: both `h_split` and `rows`; kept columns of strips where there are none, or where they would be
            replaced before they are read; a knob that has no effect on the kernel that is asked for; more threads than
            HVX contexts; or caches in the VTCM of an architecture whose VTCM is not known.
    """

    k_split: Size = 1
    h_split: Size = 1
    rows: Size | None = None
    w_split: Size | None = None
    column_halo: ColumnHalo = "recompute"
    order: Order = "k_outer"
    halo: Halo = "recompute"
    filters: Filters = "per_tile"
    buffering: Buffering = "single"
    padding_rows: PaddingRows = "read"
    kernel: Kernel | None = None
    threads: Threads = 1
    storage: Storage = "global"
    activations: Activations = "words"
    arch: Arch = "v68"
    vtcm_bytes: VtcmBytes | None = None

    def __post_init__(self) -> None:
        """Refuse knobs that are valid alone but do not go together."""
        if self.rows and self.h_split > 1:
            what = f"plan.rows: {self.rows} beside h_split = {self.h_split}; both say how high a stripe is"
            raise InputError.because(what, "leave one of them out")
        self._check_columns()
        self._check_effects()
        self._check_threads()
        if self.kernel == "hmx" and self.storage in MIXED:
            allowed = '"vtcm": the matrix engine reads and writes no other memory'
            raise InputError("plan.storage", f'"{self.storage}" with kernel = "hmx"', allowed)
        if self.kernel == "hmx" and self.arch in WITHOUT_ENGINE:
            allowed = '"v68" or later: no architecture before it has a matrix engine'
            raise InputError("plan.arch", f'"{self.arch}" with kernel = "hmx"', allowed)
        if self.uses_vtcm and self.vtcm_bytes is None and self.arch in WITHOUT_TAG:
            what = f'plan.vtcm_bytes is missing: TVM does not know the VTCM of arch = "{self.arch}"'
            raise InputError.because(what, "give the bytes, such as 8388608")

    def _check_columns(self) -> None:
        """Refuse to keep columns where there are no strips, or where rows of a strip are made again."""
        if self.column_halo == "recompute":
            return
        if self.w_split is None:
            what = 'plan.column_halo: "keep" without w_split; whole rows share no columns'
            raise InputError.because(what, "leave it out, or state w_split")
        if self.halo != "roll":
            allowed = '"roll": a row that is made again would find that its own strip has replaced what was kept'
            raise InputError("plan.halo", f'"{self.halo}" with column_halo = "keep"', allowed)
        if self.rolls_in_tiles:
            allowed = '"h_outer": the next channel tile makes rows again, and would find what its strip has replaced'
            raise InputError("plan.order", f'"{self.order}" with column_halo = "keep"', allowed)

    def _check_effects(self) -> None:
        """Refuse knobs that would do nothing on the wished kernel. Without a kernel, any conv may get plain."""
        given = f'kernel = "{self.kernel}" would' if self.kernel else "no kernel might"
        for knob, value in self.stated.items():
            if not acts(knob, self.kernel or "plain"):
                why = why_without_effect(knob, self.kernel or "plain")
                what = f"plan.{knob}: {value!r} with {given} do nothing: {why}"
                kernels = " or ".join(f'"{kernel}"' for kernel in KERNELS if acts(knob, kernel))
                raise InputError.because(what, f"leave it out, or take kernel = {kernels}")

    def _check_threads(self) -> None:
        """Refuse more threads than the architecture has HVX contexts."""
        if self.kernel and self.threads > (most := most_threads(self.arch)):
            what = f'plan.threads: {self.threads} with arch = "{self.arch}"; {why_fewer_threads(self.arch)}'
            raise InputError.because(what, f"take {most} at most, or another arch")

    @property
    def stated(self) -> dict[str, int | str]:
        """The knobs that are not at their defaults, without the kernel. If this is empty, no plan is stated.

        >>> Plan(kernel="hvx", h_split=2, k_split=1).stated
        {'h_split': 2}
        """
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "kernel"}
        return {name: value for name, value in values.items() if value != getattr(Plan, name)}

    @property
    def stripe_rows(self) -> int:
        """Rows of the output in a stripe, where it has as many.

        >>> Plan(h_split=2).stripe_rows, Plan(kernel="hvx", rows=2).stripe_rows
        (16, 2)
        """
        return self.rows or self.h_split * ROW_BLOCK

    @property
    def rolls_in_tiles(self) -> bool:
        """Whether stripes roll anew inside of each channel tile, whose filter is staged once for all of them."""
        return self.halo == "roll" and self.order == "k_outer"

    @property
    def uses_vtcm(self) -> bool:
        """Whether any cache lies in VTCM."""
        return self.storage != "global" or self.kernel == "hmx"

    def is_in_vtcm(self, role: Role) -> bool:
        """Whether the caches of a role lie in VTCM."""
        return self.kernel == "hmx" or role in roles_in_vtcm(self.storage)

    def scope(self, role: Role) -> str:
        """TVM's storage scope of the caches of a role.

        >>> [Plan(storage="filters+output").scope(role) for role in ("input", "filters")]
        ['global', 'global.vtcm']
        """
        return "global.vtcm" if self.is_in_vtcm(role) else "global"

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
        told = (knob for knob in KNOBS if self._tells(knob))
        return "-".join(KNOBS[knob].named.format(getattr(self, knob)) for knob in told)

    def _tells(self, knob: str) -> bool:
        """Whether the name tells a knob's value."""
        if knob == "h_split" and self.rows:
            return False
        if knob in SPLITS:
            return acts(knob, self.kernel or "plain")
        if knob in WHOSE_VTCM:
            return self.uses_vtcm and getattr(self, knob) is not None
        return getattr(self, knob) != getattr(Plan, knob)
