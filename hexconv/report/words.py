"""Put chains, plans and verdicts into one line of words each."""

from dataclasses import asdict, replace

from hexconv.analyze.fit import NO_LEVER, vtcm_fit
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


def setup_words(packets: int) -> str:
    """Say what laying out weights takes on a device.

    >>> setup_words(0)
    'weights are laid out before the first call, by 0 packets of the device'
    """
    return f"weights are laid out before the first call, by {packets} packets of the device"


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


def fit_words(case: Case) -> str:
    """Say whether a case fits VTCM; where it doesn't, say how much is missing and what would fit."""
    fit = vtcm_fit(case.chain, case.settled)
    if fit.fits:
        return f"{in_bytes(-fit.gap_bytes)} of the {in_bytes(fit.capacity_bytes)} of {fit.arch} to spare"
    levers = " or ".join(map(str, fit.levers)) or NO_LEVER
    return f"{in_bytes(fit.gap_bytes)} more than the {in_bytes(fit.capacity_bytes)} of {fit.arch}; {levers} fits"
