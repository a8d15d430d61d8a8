"""A case: a chain with a plan, read from TOML, written to TOML, and held to the limits of its weights."""

import json
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, cast

import numpy as np
import tomli_w
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hexconv.errors import InputError, did_you_mean, visible
from hexconv.spec.chain import IN_BLOCKS, Chain, Conv2d, Padding
from hexconv.spec.dtypes import INTEGER_RANGE, LARGEST_INT32
from hexconv.spec.extents import ROW_BLOCK, blocks, slab_convs, tensor_extents
from hexconv.spec.fields import STRICT, first_complaint, in_one_line
from hexconv.spec.kernel_choice import KernelChoice, Target, choose_kernels, settled, unstated, weighed_choice
from hexconv.spec.names import bias_name, conv_name, filter_name
from hexconv.spec.plan import Plan
from hexconv.spec.ranges import bias_limit, saturating
from hexconv.spec.strips import why_no_strips


def to_toml(
    chain: Chain, plan: Plan | None, documented: Iterable[tuple[str, int]] = (), states_knobs: bool = True
) -> str:
    """Return the text of a case file.

    Args:
        chain: what is computed.
        plan: how it is scheduled; None where no plan is stated.
        documented: names of caches, each with its documented elements.
        states_knobs: whether the plan states knobs. If so, a plan of all defaults is written with a split, since a
            plan that is empty, or has a kernel alone, states none.

    >>> print(to_toml(Chain(input=(1, 8, 8, 4), conv=(Conv2d(out_channels=2),)), Plan(h_split=2)))
    [chain]
    input = [1, 8, 8, 4]
    [[chain.conv]]
    out_channels = 2
    [plan]
    h_split = 2
    <BLANKLINE>
    """
    lines = ["[chain]", *_lines(chain)]
    for conv in chain.conv:
        lines += ["[[chain.conv]]", *_lines(conv)]
    if plan:
        lines += ["[plan]", *_lines(plan)]
        lines += [f"k_split = {plan.k_split}"] if states_knobs and not plan.stated else []
    if figures := dict(documented):
        lines += tomli_w.dumps({"documented": figures}).splitlines()
    return "\n".join([*lines, ""])


def _lines(table: Chain | Conv2d | Plan) -> list[str]:
    """Return `key = value` for every field that is not at its default; sub-tables of a chain are written elsewhere."""
    implied = ("conv", "groups") if isinstance(table, Conv2d) and table.pool else ("conv",)
    stated = ((field, getattr(table, field.name)) for field in fields(table) if field.name not in implied)
    return [f"{field.name} = {_value(value)}" for field, value in stated if not _is_default(field, value)]


def _is_default(field: Any, value: object) -> bool:
    """Return whether a file without the field says the same."""
    default = field.default
    return default is not MISSING and getattr(default, "default", default) == value


EXACT = "exact"
"""How convs are requantised where nothing is said."""


def _value(value: object) -> str:
    """Return a value in TOML's notation."""
    if isinstance(value, Padding):
        return _value([value.top, value.left, value.bottom, value.right])
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, cast(Sequence[object], value))) + "]"
    if is_dataclass(value):
        inside = ((field.name, getattr(value, field.name)) for field in fields(value))
        stated = [f"{name.rstrip('_')} = {_value(item)}" for name, item in inside if item not in (None, EXACT)]
        return "{ " + ", ".join(stated) + " }"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
LARGEST_FILE_BYTES = 1 << 20
DEEPEST_NESTING = 16
"""The deepest nesting of tables and lists, since libraries recurse over them. No file of hexconv needs more than 5."""
MOST_SQUARED_DOTS = 1 << 22
"""The most that the squared numbers of dots of all lines come to: the time to parse a dotted key grows with them."""


def read_text(path: Path) -> str:
    """Read a file's text.

    Raises:
        InputError: the file is missing, no regular file, too large, unreadable or not UTF-8.
    """
    try:
        check_regular(path)
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise InputError(str(path), f"{path.stat().st_size} bytes", f"a case file of at most {LARGEST_FILE_BYTES}")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError.because(f"{path}: no such file", f"{_beside(path)}name a TOML file that exists") from None
    except OSError as error:
        raise InputError.because(
            f"{path}: {error.strerror or 'not readable'}", "name a TOML file that can be read"
        ) from None
    except (UnicodeDecodeError, ValueError):
        raise InputError.because(f"{path} has bytes that are not UTF-8", "save it as TOML in UTF-8") from None


def check_regular(path: Path) -> None:
    """Refuse a path that exists and is no regular file: reading a pipe or a device might never end.

    Raises:
        InputError: the path is no regular file.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in KINDS if test(mode)), "something else")
        raise InputError(str(path), kind, "a regular file")


def _beside(path: Path) -> str:
    """Name the TOML file of the same folder with the nearest name, as a question; empty where there is none."""
    beside = (str(other) for other in path.parent.glob("*.toml")) if path.parent.is_dir() else ()
    return did_you_mean(str(path), beside)


def parse_table(text: str, where: str) -> dict[str, Any]:
    """Parse TOML text to a table; `where` names its source in errors.

    Raises:
        InputError: the text is no TOML, its keys are too long or nested deeper than `DEEPEST_NESTING`, or a number is
            longer than Python writes.
    """
    if (squared := sum(line.count(".") ** 2 for line in text.splitlines())) > MOST_SQUARED_DOTS:
        what = f"lines with so many dots that their squares come to {squared}"
        raise InputError(where, what, f"at most {MOST_SQUARED_DOTS}: break long lines")
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # A number of thousands of digits raises a plain ValueError.
        raise InputError(where, f"text that is not TOML ({error})", "a TOML case file") from None
    if _is_deeper(table, DEEPEST_NESTING):
        raise InputError(where, f"tables more than {DEEPEST_NESTING} deep", "the tables of a case file")
    try:
        json.dumps(table, default=str)
    except ValueError:  # of a hexadecimal number: Python reads any, and writes none of more than 4300 digits
        raise InputError(where, "a number of thousands of digits", "the numbers of a case file") from None
    return table


def _is_deeper(table: dict[str, Any], levels: int) -> bool:
    """Whether tables and lists nest deeper; without recursion, since dotted keys nest as deep as a file is long."""
    level: list[dict[str, Any] | list[Any]] = [table]
    for _ in range(levels):
        inside = (list(table.values()) if isinstance(table, dict) else table for table in level)
        level = [value for values in inside for value in values if isinstance(value, (dict, list))]
        if not level:
            return False
    return True


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
        weighed: why a search gave the case the kernel of its plan, where it weighed several; else empty.

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
    weighed: str = ""

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
        found = choose_kernels(self.chain, self._asked, self.target)
        return tuple(weighed_choice(choice, self.weighed) for choice in found) if self.weighed else found

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
        slabs = min(slab_convs(chain)[index].rows_read(slabs), extents[index].row_blocks)
        steps += extents[index + 1].row_blocks * (blocks(slabs, plan.h_split) if index else 1)
    if steps > MOST_STEPS:
        knob, value = ("rows", plan.rows) if plan.rows else ("h_split", plan.h_split)
        allowed = f"up to {MOST_STEPS} steps; a larger {knob}, smaller kernels, or a smaller image"
        raise InputError(f"plan.{knob}", f"{value}, which makes {steps} steps over rows", allowed)


Array = NDArray[Any]
NO_VECTORS: Mapping[str, Array] = MappingProxyType({})


def largest_l1(conv: Conv2d, filter: Array) -> int:
    """Return the largest absolute sum of an output channel of an integer filter (OIHW), the zero point subtracted."""
    up, down = _ups_and_downs(conv, filter)
    return int((up - down).max(initial=0))


def _ups_and_downs(conv: Conv2d, filter: Array) -> tuple[Array, Array]:
    """Return the sums of the positive and of the negative elements of each output channel, int64 [K].

    The zero point is subtracted from the sums, so that elements stay as narrow as they are.
    """
    zero = conv.filter_zero_point
    flat: Array = np.reshape(filter, (len(filter), prod(filter.shape[1:])))
    all_zeros = flat.shape[1] * zero
    up: Array = np.sum(np.maximum(flat, zero), axis=1, dtype=np.int64) - all_zeros
    return up, np.sum(flat, axis=1, dtype=np.int64) - all_zeros - up


def largest_bias(bias: Array) -> int:
    """Return the largest absolute value of an integer bias."""
    return int(np.abs(bias.astype(np.int64)).max(initial=0))


def sums_by_channel(chain: Chain, index: int, filter: Array, bias: Array | None) -> tuple[Array, Array]:
    """Return the least and the largest sum, bias included, that each output channel of a conv can have, int64 [K].

    Each element of the image is at one end of its dtype, or at the zero point, which padding has.
    """
    low, high = (end - chain.output_zero_point(index) for end in INTEGER_RANGE[chain.dtype])
    up, down = _ups_and_downs(chain.conv[index], filter)
    added = 0 if bias is None else bias.astype(np.int64)
    return up * low + down * high + added, up * high + down * low + added


def largest_sum(chain: Chain, index: int, filter: Array, bias: Array | None) -> int:
    """Return the largest absolute value of a sum of any output channel, bias included."""
    return int(_furthest(chain, index, filter, bias).max(initial=0))


def _furthest(chain: Chain, index: int, filter: Array, bias: Array | None) -> Array:
    """Return how far from 0 a sum of each output channel can be, bias included, int64 [K]."""
    least, most = sums_by_channel(chain, index, filter, bias)
    return np.maximum(-least, most)


def beyond_int32(chain: Chain, weights: Mapping[str, Array]) -> Iterator[str]:
    """Yield a sentence on each conv whose sums leave int32 and are held in 64 bits: which channel, and by how much.

    Args:
        chain: the chain, with the limits of its weights.
        weights: `filter1`, `bias1`, ..., logical.
    """
    for index in range(len(chain.conv)):
        number = index + 1
        if chain.sum_dtype(index) != "int64" or chain.saturates(index):
            continue
        reached = _furthest(chain, index, weights[filter_name(number)], weights.get(bias_name(number)))
        channel, beyond = int(reached.argmax()), int(reached.max()) - LARGEST_INT32
        yield f"{conv_name(number)}: sums of channel {channel} reach {reached.max()}, {beyond} beyond int32"


def with_limits(
    chain: Chain,
    filters: Sequence[Array],
    biases: Sequence[Array | None],
    vectors: Mapping[str, Array] = NO_VECTORS,
) -> Chain:
    """Return an integer chain with the limits that its weights have; return a float chain as it is.

    These are `filter_l1`, `bias_limit` and `sum_limit`.

    Sums of int16 that leave int32 saturate where that changes no result (`hexconv.spec.ranges`).

    Args:
        chain: the chain.
        filters: OIHW, one per conv.
        biases: [K] or None, one per conv.
        vectors: `multiplier1`, `shift1`, ..., [K] each, where a requantisation has one value per channel.

    Raises:
        InputError: a filter, a bias or a sum of both exceeds the limit that its conv states.
    """
    if not chain.is_integer:
        return chain
    convs: list[Conv2d] = []
    reached = [_furthest(chain, index, *each) for index, each in enumerate(zip(filters, biases, strict=True))]
    for index, (conv, filter, bias) in enumerate(zip(chain.conv, filters, biases, strict=True)):
        if conv.pool:
            convs.append(conv)
            continue
        _check(chain, index, filter, bias, conv.bias_limit)
        limit = None if bias is None else largest_bias(bias)
        sums = int(reached[index].max(initial=0))
        convs.append(replace(conv, filter_l1=max(largest_l1(conv, filter), 1), bias_limit=limit, sum_limit=sums))
    return saturating(replace(chain, conv=tuple(convs)), reached, vectors)


def check_weights(chain: Chain, filters: Sequence[Array], biases: Sequence[Array | None]) -> None:
    """Refuse weights of an integer chain beyond what it states, or beyond what int32 leaves where it states nothing.

    Raises:
        InputError: a filter beyond the `filter_l1` of its conv, a bias beyond its `bias_limit`, or a sum beyond its
            `sum_limit`.
    """
    if chain.is_integer:
        for index, (filter, bias) in enumerate(zip(filters, biases, strict=True)):
            _check(chain, index, filter, bias, bias_limit(chain, index))


def _check(chain: Chain, index: int, filter: Array, bias: Array | None, limit: int | None) -> None:
    conv = chain.conv[index]
    if conv.filter_l1 is not None and (sums := largest_l1(conv, filter)) > conv.filter_l1:
        allowed = f"up to {conv.filter_l1}, the filter_l1 of chain.conv[{index}]"
        raise InputError(filter_name(index + 1), f"an output channel that sums to {sums}", allowed)
    if bias is not None and limit is not None and (value := largest_bias(bias)) > limit:
        reason = "as it states" if conv.bias_limit is not None else "which int32 leaves beside its sums"
        allowed = f"up to {limit}, the bias_limit of chain.conv[{index}], {reason}"
        raise InputError(bias_name(index + 1), f"a value of {value}, its sign dropped", allowed)
    if conv.sum_limit is not None and (sums := largest_sum(chain, index, filter, bias)) > conv.sum_limit:
        given = filter_name(index + 1) if bias is None else f"{filter_name(index + 1)} and {bias_name(index + 1)}"
        allowed = f"up to {conv.sum_limit}, the sum_limit of chain.conv[{index}]"
        raise InputError(given, f"an output channel whose sums reach {sums}, their sign dropped", allowed)
