"""What TVM's instruments see of the pass pipeline."""

import tvm
from tvm.ir.instrument import pass_instrument

from hexconv.lower import lower_case
from hexconv.spec import Case, Chain, Conv2d, Plan


@pass_instrument
class Names:
    """The names of all passes that ran."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def run_before_pass(self, _module: tvm.IRModule, info: tvm.ir.transform.PassInfo) -> None:
        self.seen.append(info.name)


def test_every_pass_has_a_name() -> None:
    conv = Conv2d(out_channels=40, kernel=(3, 3))
    names = Names()
    with tvm.transform.PassContext(instruments=[names]):
        lower_case(Case("named", Chain(input=(1, 12, 12, 4), conv=(conv, conv)), Plan(kernel="plain")))
    own = {name for name in names.seen if name.startswith("hexconv.")}
    assert len(own) >= 6
    assert not [name for name in names.seen if "<" in name]
