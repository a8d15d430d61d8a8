"""Put chains, plans and verdicts into one line of words each."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace

from hexconv.analyze.fit import NO_LEVER, vtcm_fit
from hexconv.errors import InputError
from hexconv.lower.vtcm import capacity_of
from hexconv.report.units import in_bytes
from hexconv.spec import Case, Chain, Plan
from hexconv.spec.places import MIXED


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
        steps.append(f"{rows}×{columns} conv, {conv.out_channels} channels{extra}")
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
