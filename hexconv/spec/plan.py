"""How a chain is scheduled: the knobs, with no word about what is computed."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from hexconv.spec.fields import STRICT, Size


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Plan:
    """The knobs of a schedule.

    Attributes:
        k_split: output-channel blocks (32 channels each) computed per outer step (seed document 003, "Baseline").
        h_split: block rows (8 rows each) computed per outer step.
        kernel: `"plain"`, the documented schedule; `"hvx"`, HVX kernels for integer chains (`hexconv.schedule.hvx`),
            which stage whole filters, so that `k_split` has no effect on them.
        storage: where the caches live: `"global"`, or `"vtcm"` for Hexagon's tightly coupled memory.
        arch: whose VTCM they have to fit, as TVM's target tags name it.
    """

    k_split: Size = 1
    h_split: Size = 1
    kernel: Literal["plain", "hvx"] = "plain"
    storage: Literal["global", "vtcm"] = "global"
    arch: Annotated[str, Field(pattern=r"^v\d+$")] = "v68"

    @property
    def scope(self) -> str:
        """TVM's storage scope of the caches."""
        return "global.vtcm" if self.storage == "vtcm" else "global"

    @property
    def slug(self) -> str:
        """A short name, for test ids, files and rows.

        >>> Plan(k_split=2, h_split=2).slug
        'ks2-hs2'
        """
        place = f"-vtcm-{self.arch}" if self.storage == "vtcm" else ""
        kernel = f"-{self.kernel}" if self.kernel != "plain" else ""
        return f"ks{self.k_split}-hs{self.h_split}{place}{kernel}"
