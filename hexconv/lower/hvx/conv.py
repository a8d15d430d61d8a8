"""One conv of a nest of rows for the HVX kernel: its geometry, its scratch, and its steps."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import tirx

from hexconv.kernel import Forms
from hexconv.lower.conv_step import ConvStep
from hexconv.lower.hvx.collected import inner_conv
from hexconv.lower.hvx.inner import InnerConv
from hexconv.lower.hvx.laid_out import laid_out
from hexconv.lower.hvx.scratch import Scratch, scratch_of
from hexconv.lower.hvx.step import emit_step
from hexconv.spec import Chain, Plan
from hexconv.spec.vectors import Array


@dataclass(frozen=True)
class HvxConv:
    """A conv that HVX instructions compute: what is known of it before its steps, and its scratch."""

    conv: InnerConv
    scratch: Scratch

    @property
    def memory(self) -> list[tirx.Buffer]:
        """The scratch buffers that the kernel needs beside the caches of the nest."""
        return self.scratch.memory

    @property
    def constants(self) -> list[tirx.Buffer]:
        """The arguments that it has in the place of its bias, multipliers and shifts."""
        return [each.argument for each in self.scratch.constants]

    def emit(self, step: ConvStep) -> tirx.Stmt:
        """Emit the statements of one step."""
        return emit_step(self.conv, self.scratch, step)


def hvx_conv(chain: Chain, index: int, forms: Forms, plan: Plan, arguments: Mapping[str, tirx.Buffer]) -> HvxConv:
    """Prepare conv `index` (from 0) of a chain for the HVX kernel."""
    conv = inner_conv(chain, index, forms, plan)
    return HvxConv(conv, scratch_of(conv, arguments, plan))


def hvx_constants(chain: Chain, index: int, forms: Forms, plan: Plan, given: Mapping[str, Array]) -> dict[str, Array]:
    """Lay out the constants of conv `index` (from 0) of a chain, from what it is given, by argument."""
    return laid_out(inner_conv(chain, index, forms, plan), given)
