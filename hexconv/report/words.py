"""Chains, plans, verdicts and numbers in the words and units that people read."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from hexconv.analyze.fit import NO_LEVER, vtcm_fit
from hexconv.errors import InputError
from hexconv.spec import Case, Chain, Plan, tensor_extents
from hexconv.spec.capacities import capacity_of
from hexconv.spec.extents import CHANNEL_BLOCK, COLUMN_BLOCK
from hexconv.spec.places import MIXED


@dataclass(frozen=True)
class Unit:
    """A unit of bytes: its name and how many bytes it is."""

    name: str
    bytes: int

    def of(self, size_bytes: float) -> str:
        """Return a size in this unit, three digits where it has them.

        >>> Unit("KiB", 1024).of(540672), Unit("MiB", 1 << 20).of(1867776)
        ('528', '1.78')
        """
        value = size_bytes / self.bytes
        return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


UNITS = (Unit("GiB", 1 << 30), Unit("MiB", 1 << 20), Unit("KiB", 1 << 10), Unit("bytes", 1))


def unit_for(size_bytes: float) -> Unit:
    """Return the largest unit of which a size is at least one.

    >>> unit_for(81920).name, unit_for(12).name, unit_for(0).name
    ('KiB', 'bytes', 'bytes')
    """
    return next((unit for unit in UNITS if size_bytes >= unit.bytes), UNITS[-1])


def in_bytes(size_bytes: float) -> str:
    """Return a size with its unit.

    >>> in_bytes(540672), in_bytes(1867776), in_bytes(512)
    ('528 KiB', '1.78 MiB', '512 bytes')
    """
    unit = unit_for(size_bytes)
    return f"{unit.of(size_bytes)} {unit.name}"


def counted(count: int, what: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "case"), counted(1200, "case")
    ('1 case', '1,200 cases')
    """
    return f"{count:,} {noun(count, what)}"


def noun(count: int, what: str) -> str:
    """Return a noun as a count of it reads: `plan` of 1, `plans` of others."""
    return f"{what}{'s' * (count != 1)}"


def times(value: float, other: float) -> str:
    """Return how many times another number a number is; two that differ are never told as equal.

    >>> times(268448, 87152), times(330880, 330592), times(2, 2)
    ('3.08', '1.001', '1.00')
    """
    if value == other:
        return "1.00"
    told = (f"{value / other:.{digits}f}" for digits in range(2, 16))
    return next((text for text in told if float(text) != 1), "1.00")


def share(part: float, whole: float) -> str:
    """Return a part in percent; what is less than all is never told as all, nor any part as none.

    >>> share(1, 3), share(5, 1000), share(9999, 10000), share(0, 3), share(2, 2)
    ('33%', '0.5%', '99.99%', '0%', '100%')
    """
    told = [f"{part / whole:.{digits}%}" for digits in range(12)]
    rounded_away = {"0%", "100%"} if 0 < part != whole else set()
    return next((text for text in told if f"{float(text[:-1]):g}%" not in rounded_away), told[-1])


def chain_words(chain: Chain) -> str:
    """Write a chain in a line.

    >>> from hexconv.spec import Conv2d
    >>> chain_words(Chain(input=(1, 64, 64, 128), conv=(Conv2d(out_channels=32, kernel=(3, 3), stride=(2, 2)),)))
    '1×64×64×128 float32 → 3×3 conv, 32 channels, stride 2×2 → 1×31×31×32'
    """
    steps = []
    for conv in chain.conv:
        (rows, columns), stride, dilation = conv.kernel, conv.stride, conv.dilation
        extra = f", stride {stride[0]}×{stride[1]}" if stride != (1, 1) else ""
        extra += f", dilation {dilation[0]}×{dilation[1]}" if dilation != (1, 1) else ""
        extra += f", {conv.groups} groups" if conv.groups > 1 else ""
        extra += ", padded" if conv.padding != type(conv.padding)() else ""
        steps.append(f"{rows}×{columns} conv, {counted(conv.out_channels, 'channel')}{extra}")
    ends = ["×".join(map(str, chain.shapes[at])) for at in (0, -1)]
    filters = f", {chain.filter_dtype} filters" if chain.dtype_of_filters != chain.dtype else ""
    return " → ".join((f"{ends[0]} {chain.dtype}{filters}", *steps, ends[1]))


def plan_words(plan: Plan) -> str:
    """Write a plan in a line: the splits, and every other knob that is not at its default.

    >>> plan_words(Plan(h_split=2, buffering="double"))
    'k_split = 1, h_split = 2, buffering = double'
    """
    always = ("k_split", "h_split")
    stated = {knob: value for knob, value in asdict(plan).items() if knob in always or value != getattr(Plan, knob)}
    return ", ".join(f"{knob} = {value}" for knob, value in stated.items())


def plan_name(plan: Plan) -> str:
    """Return a plan's short name, for tables of plans that differ in everything but their memory.

    >>> plan_name(Plan(k_split=2, storage="vtcm"))
    'ks2-hs1'
    """
    return plan.slug if plan.storage in MIXED else replace(plan, storage="global").slug


def plan_effects(chain: Chain, plan: Plan) -> str:
    """Say what a plan does, as its effects: stripes, strips, tiles of channels, filters, copies, threads.

    >>> from hexconv.spec import Conv2d
    >>> chain = Chain(input=(1, 30, 30, 4), output_layout="NHWC", dtype="uint8", conv=(Conv2d(out_channels=96),))
    >>> plan_effects(chain, Plan(kernel="hvx", rows=7, order="h_outer", halo="roll", buffering="double", threads=2))
    '5 rolling stripes of 7 rows, tiles of 32 channels, filters by tile, copies overlap, 2 threads'
    >>> plan_effects(chain, Plan(kernel="hvx", h_split=4, k_split=3, filters="resident"))
    'whole height, filters resident'
    >>> plan_effects(chain, Plan(kernel="hvx", rows=5, halo="roll"))
    '6 rolling stripes of 5 rows in each tile of 32 channels, filters by tile'
    """
    output = tensor_extents(chain)[-1]
    stripes, tiles = -(-output.rows // plan.stripe_rows), -(-output.channel_blocks // plan.k_split)
    rolls = "rolling " if plan.halo == "roll" else ""
    channels, in_tiles = plan.k_split * CHANNEL_BLOCK, plan.order == "k_outer" and stripes > 1 < tiles
    where = f" in each tile of {channels} channels" if in_tiles else ""
    stripe = f"{rolls}stripes of {counted(plan.stripe_rows, 'row')}{where}"
    parts = [f"{stripes} {stripe}" if stripes > 1 else "whole height"]
    if plan.w_split and plan.w_split < output.column_blocks:
        kept = ", their halo kept" if plan.column_halo == "keep" else ""
        parts.append(f"strips of {plan.w_split * COLUMN_BLOCK} columns{kept}")
    parts += [f"tiles of {channels} channels"] if tiles > 1 and not in_tiles else []
    parts.append(f"filters {'resident' if plan.filters == 'resident' else 'by tile'}")
    parts += ["copies overlap"] if plan.buffering == "double" else []
    parts += ["padding in whole slabs"] if plan.padding_rows == "slabs" else []
    parts += [f"{plan.threads} threads"] if plan.threads > 1 else []
    parts += [f"in VTCM {plan.storage}"] if plan.storage in MIXED else []
    return ", ".join(parts)


def changed_knobs(case: Case, plan: Plan) -> dict[str, int | str | None]:
    """Return every knob to change in a case's plan for the case to get another plan; None is a knob to leave out.

    >>> from hexconv.spec import Conv2d
    >>> case = Case("one", Chain(input=(1, 16, 16, 4), conv=(Conv2d(out_channels=2),)), Plan(buffering="double"))
    >>> changed_knobs(case, Plan(kernel="plain", h_split=2))
    {'h_split': 2, 'buffering': 'single'}
    """
    wanted, stated = asdict(plan), asdict(case.plan)
    changed = {knob: value for knob, value in wanted.items() if knob != "kernel" and value != stated[knob]}
    try:
        if replace(case, plan=replace(case.plan, **changed)).settled == plan:
            return changed
    except InputError:  # some knobs are for a kernel that the plan asks for by name
        pass
    return {**changed, "kernel": wanted["kernel"]}


def knob_words(knobs: Mapping[str, int | str | None]) -> str:
    """Write changes of knobs as a case file states them.

    >>> knob_words({"h_split": 2, "buffering": "single", "rows": None})
    'h_split = 2, buffering = "single", no rows'
    """
    return ", ".join(
        f"no {knob}" if value is None else f"{knob} = {json.dumps(value)}" for knob, value in knobs.items()
    )


def vtcm_words(plan: Plan) -> str:
    """Name the VTCM that a plan may fill: what it states, else that of its architecture.

    >>> vtcm_words(Plan()), vtcm_words(Plan(vtcm_bytes=1 << 20))
    ('the 4 MiB of v68', 'the 1 MiB that it may take')
    """
    return f"the {in_bytes(capacity_of(plan))} {'that it may take' if plan.vtcm_bytes else f'of {plan.arch}'}"


def fit_words(case: Case) -> str:
    """Say whether a case fits VTCM; where it doesn't, say how much is missing and what would fit."""
    fit, room = vtcm_fit(case.chain, case.settled), vtcm_words(case.settled)
    if fit.fits:
        return f"{in_bytes(-fit.gap_bytes)} to spare of {room}"
    levers = " or ".join(map(str, fit.levers)) or NO_LEVER
    return f"{in_bytes(fit.gap_bytes)} more than {room}; {levers} fits"
