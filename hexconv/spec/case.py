"""A case: a chain with a plan, read from and written to TOML."""

import json
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError, visible
from hexconv.spec.chain import Chain
from hexconv.spec.document import parse_table, read_text
from hexconv.spec.edges import IN_BLOCKS
from hexconv.spec.extents import ROW_BLOCK, blocks, slabs_read, tensor_extents
from hexconv.spec.fields import STRICT
from hexconv.spec.kernel import KernelChoice, Target, choose_kernels, settled, unstated
from hexconv.spec.plan import Plan
from hexconv.spec.strips import why_no_strips
from hexconv.spec.toml import to_toml
from hexconv.spec.wrong import first_complaint, in_one_line

MOST_STEPS = 2**19
"""The most steps over rows that a case may have: about those of a million rows, of which three meet a slab."""

MOST_ELEMENTS = 2**40
Elements = Annotated[int, Field(ge=1, le=MOST_ELEMENTS)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CaseFile:
    """The tables of a case file. Where the plan is missing or empty, hexconv chooses everything."""

    chain: Chain
    plan: Plan = Plan()
    documented: dict[str, Elements] = Field(default_factory=dict)


@in_one_line("case")
@dataclass(frozen=True, config=STRICT)
class Case:
    """A chain with a plan, under the name of its file.

    Attributes:
        name: the name of the case; what can't be printed in it is escaped.
        chain: what is computed.
        plan: how, as far as it is stated.
        states_plan: whether any knob is. A plan in a case file that is empty, or has a kernel alone, states none; one
            of all defaults does.
        documented: names of caches, each with the elements that a document gives for the allocation that holds it.
        target: where the case is to run, as in `choose_kernels`.

    Raises:
        InputError: a split larger than the number of blocks that any conv of the chain has, or more steps than can be
            looked at one by one.
    """

    name: str
    chain: Chain
    plan: Plan = Plan()
    documented: tuple[tuple[str, int], ...] = ()
    target: Target | None = None
    states_plan: bool = True

    def __post_init__(self) -> None:
        """Refuse splits larger than any conv of the chain has blocks, and cases of too many steps."""
        object.__setattr__(self, "name", visible(self.name))
        if self.plan.stated:
            object.__setattr__(self, "states_plan", True)
        outputs = tensor_extents(self.chain)[1:]
        most_k = max(output.channel_blocks for output in outputs)
        most_h = max(output.row_blocks for output in outputs)
        if self.plan.k_split > most_k:
            raise InputError(
                "plan.k_split", str(self.plan.k_split), f"1 to {most_k}, the blocks of 32 channels of a conv"
            )
        if self.plan.h_split > most_h:
            raise InputError("plan.h_split", str(self.plan.h_split), f"1 to {most_h}, the blocks of 8 rows of a conv")
        _check_rows(self.chain, self.plan)
        _check_strips(self.chain, self.plan)
        _check_steps(self.chain, self.plan)

    @cached_property
    def kernels(self) -> tuple[KernelChoice, ...]:
        """The choice of a kernel for every conv: the one asked for, the one used, and why."""
        return choose_kernels(self.chain, self._asked, self.target)

    @cached_property
    def settled(self) -> Plan:
        """The plan that is lowered and run: it names the kernel that is used, and has the knobs that act on it."""
        found = settled(self.chain, self._asked, self.target)
        return found if self.states_plan or found.kernel != "hvx" else unstated(self.chain, "hvx")

    @property
    def _asked(self) -> Plan | None:
        """The plan if it states any knob or a kernel; else None."""
        return self.plan if self.states_plan or self.plan.kernel else None

    @classmethod
    def load(cls, path: Path | str, target: Target | None = None) -> "Case":
        """Read one case file.

        Args:
            path: the case file.
            target: where the case is to run; without one, a plan that names no kernel gets the choice for hexagon.

        Raises:
            InputError: the file is missing, is not TOML, or a field can't be used; the text has the field's path.
        """
        path = Path(path)
        return cls.parse(read_text(path), path.stem, str(path), target)

    @classmethod
    def parse(cls, text: str, name: str, where: str = "case", target: Target | None = None) -> "Case":
        """Read a case from TOML text; `where` names its source in errors, the rest is as in `load`."""
        return cls.of(parse_table(text, where), name, where, target)

    @classmethod
    def of(cls, table: dict[str, Any], name: str, where: str = "case", target: Target | None = None) -> "Case":
        """Read a case from a TOML table; the rest is as in `parse`."""
        try:
            file = TypeAdapter(CaseFile).validate_json(json.dumps(table, default=str))
            documented = tuple(file.documented.items())
            return cls(name, file.chain, file.plan, documented, target, _states_knobs(table))
        except ValidationError as error:
            raise first_complaint(error).within(where) from None
        except InputError as error:
            raise error.within(where) from None

    def to_toml(self) -> str:
        """The case as TOML text that `parse` reads back."""
        return to_toml(self.chain, self._asked, self.documented, self.states_plan)


def _states_knobs(table: dict[str, Any]) -> bool:
    """Whether a case file states any knob but the kernel."""
    return bool(table.get("plan", {}).keys() - {"kernel"})


def _check_rows(chain: Chain, plan: Plan) -> None:
    """A stripe has some rows of the output, or of each of its blocks of 8, or some of these."""
    if plan.rows is None:
        return
    most = tensor_extents(chain)[-1].rows
    if plan.rows > most:
        raise InputError("plan.rows", str(plan.rows), f"1 to {most}, the rows of the output")
    if chain.output_layout == IN_BLOCKS and plan.rows % ROW_BLOCK and ROW_BLOCK % plan.rows:
        given = f"{plan.rows} of an output in {IN_BLOCKS}"
        raise InputError("plan.rows", given, f'1, 2, 4 or whole blocks of {ROW_BLOCK}, or output_layout = "NHWC"')


def _check_strips(chain: Chain, plan: Plan) -> None:
    """A strip is some blocks of the output's columns, of a chain that can be computed in strips."""
    if plan.w_split and (why_not := why_no_strips(chain, plan.w_split)):
        raise InputError.because(f"plan.w_split: {plan.w_split}, but {why_not}", "leave it out")
    if plan.w_split and (why_not := why_no_strips(chain, plan.w_split, plan.column_halo)):
        raise InputError.because(f'plan.column_halo: "{plan.column_halo}", but {why_not}', "leave it out")


def _check_steps(chain: Chain, plan: Plan) -> None:
    """Every closed form walks over the steps of every conv, and over those that make the stripe that each one reads.

    The first conv's stripe is read in one step, however many slabs a stride makes of it.
    """
    extents, steps = tensor_extents(chain), 0
    if plan.rows:
        steps = blocks(extents[-1].rows, plan.rows) * len(chain.conv)
    slabs = min(plan.h_split, extents[-1].row_blocks)
    for index in reversed(range(0 if plan.rows else len(chain.conv))):
        slabs = min(slabs_read(chain.conv[index], slabs), extents[index].row_blocks)
        steps += extents[index + 1].row_blocks * (blocks(slabs, plan.h_split) if index else 1)
    if steps > MOST_STEPS:
        knob, value = ("rows", plan.rows) if plan.rows else ("h_split", plan.h_split)
        allowed = f"up to {MOST_STEPS} steps; a larger {knob}, smaller kernels, or a smaller image"
        raise InputError(f"plan.{knob}", f"{value}, which makes {steps} steps over rows", allowed)
