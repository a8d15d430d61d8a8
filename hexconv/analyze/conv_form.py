"""In which form each conv of a case multiplies, and how many MACs a packet that form allows at most."""

from dataclasses import dataclass

from hexconv.analyze.needed import needed_work
from hexconv.analyze.planned import Planned
from hexconv.spec import Case
from hexconv.spec.names import conv_name


@dataclass(frozen=True)
class ConvForm:
    """What the lanes of a conv's vectors are, and the bound that follows from it.

    Attributes:
        name: the conv, counted from 1.
        kernel: the kernel that serves the conv.
        form: the lanes of its vectors: `output channels` (32 of them, a scalar word has 4 bytes of a pixel), `channels
            of groups` (the same, but words are those of the planes of 32 channels that their groups meet), `pixels` (32
            of them, a scalar word has weights of one output channel) or `depthwise` (channels, a word has taps of a
            row); `scalar` has none of these.
        made_dense: whether groups are filled up with zeros, so that the conv runs as one of a single group.
        products: the vector instructions that multiply in a run; None for `scalar`.
        most_macs_per_packet: the MACs that are needed, per packet that these instructions take at least, so that no run
            of the plan has more; None if the form has no such instructions.
    """

    name: str
    kernel: str
    form: str
    made_dense: bool
    products: int | None
    most_macs_per_packet: float | None


def conv_forms(case: Case) -> tuple[ConvForm, ...]:
    """Return the forms of all convs of a case.

    >>> from hexconv.spec import Chain, Conv2d, Plan, Requantize
    >>> scale = Requantize(multiplier=1 << 30)
    >>> convs = Conv2d(out_channels=64, requantize=scale), Conv2d(out_channels=64, groups=64, requantize=scale)
    >>> chain = Chain(input=(1, 32, 32, 64), dtype="uint8", conv=convs)
    >>> case = Case("two", chain, Plan(kernel="hvx", order="h_outer"))
    >>> [(form.form, form.most_macs_per_packet) for form in conv_forms(case)]
    [('output channels', 256.0), ('depthwise', 32.0)]
    """
    needed = needed_work(case.chain).macs
    planned = Planned.of(case)
    return tuple(_form(case, index, planned, needed[conv_name(index + 1)]) for index in range(len(case.chain.conv)))


def _form(case: Case, index: int, planned: Planned, needed: int) -> ConvForm:
    name = conv_name(index + 1)
    if planned.nest != "rows":
        return ConvForm(name, case.kernels[index].used, "scalar", False, None, None)
    conv = planned.rows.convs[index]
    if conv.form.products_of_packet is None:
        return ConvForm(name, conv.kernel, conv.form.lanes, False, None, None)
    products = int(planned.axes.made(index + 1)[0].item()) * conv.form.products
    most = round(needed * conv.form.products_of_packet / products, 1) if products else None
    made_dense = conv.spec.groups != case.chain.conv[index].groups
    return ConvForm(name, conv.kernel, conv.form.lanes, made_dense, products, most)
