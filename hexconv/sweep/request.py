"""A request for one row of a sweep: a case, what to do with it, and a key of all that its answer depends on."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from hexconv.errors import InputError
from hexconv.run.simulator.cache import content_key
from hexconv.spec import Case, Chain, Conv2d, Plan
from hexconv.sweep.axes import Table
from hexconv.sweep.columns import plan_columns
from hexconv.sweep.grid import Grid
from hexconv.sweep.provenance import provenance

Row = dict[str, Any]
Part = TypeVar("Part")

PLAN_DEFAULTS = plan_columns(Plan())


@dataclass(frozen=True)
class Request:
    """A request for one row.

    Attributes:
        key: a digest of the tables, the target, the seed and the code that answers: equal keys mean equal rows.
        case: a name, the slug of chain and plan; where two cases of a grid share it, with a digest behind.
        digest: the digest of the case alone.
        target: `cache`, `llvm` or `hexagon`.
        seed: the seed of the random tensors.
        known: columns that stand before anything is done: what the case is.
        toml: the case; empty where there is none.
        refusal: why there is none: the combination makes no case.
    """

    key: str
    case: str
    digest: str
    target: str
    seed: int
    known: Row
    toml: str = ""
    refusal: str = ""


def requests(grid: Grid, seed: int) -> list[Request]:
    """Return the requests for the rows of a grid, in its order, none twice."""
    found = {request.key: request for table in grid.tables() for request in _requests(table, grid.targets, seed)}
    digests = {request.digest: request.case for request in found.values()}
    named = Counter(digests.values())
    return [_distinct(request, named[request.case] > 1) for request in found.values()]


def _distinct(request: Request, is_shared: bool) -> Request:
    return replace(request, case=f"{request.case}-{request.digest[:8]}") if is_shared else request


def _requests(table: Table, targets: tuple[str, ...], seed: int) -> Iterator[Request]:
    """One case under every target."""
    try:
        case = Case.of(table, "case")
        toml, refusal = case.to_toml(), ""
    except InputError as error:
        toml, refusal = "", str(error).removeprefix("case: ")
    chain, plan = _valid(Chain, table["chain"]), _valid(Plan, table["plan"])
    digest = content_key(toml or json.dumps(table, default=str, sort_keys=True))
    slugs = [part.slug if part else f"invalid-{digest[:8]}" for part in (chain, plan)]
    known = {**_of_chain(chain, table["chain"]), **PLAN_DEFAULTS, **plan_columns(plan or table["plan"])}
    for target in targets:
        key = content_key(digest, target, str(seed), provenance())
        yield Request(key, "-".join(dict.fromkeys(slugs)), digest, target, seed, known, toml, refusal)


def _valid(kind: type[Part], table: Table) -> Part | None:
    """Return one part of a case, checked by itself; None where it is not valid."""
    try:
        return TypeAdapter(kind).validate_json(json.dumps(table, default=str))
    except (ValidationError, InputError):
        return None


def _of_chain(chain: Chain | None, table: Table) -> Row:
    """Return the columns that state the chain; `convs` is JSON, the fields of each conv as a case file has them."""
    if chain is None:
        convs = json.dumps(table["conv"], default=str)
        return {**_shape(table.get("input")), "dtype": table.get("dtype", "float32"), "convs": convs}
    convs = json.dumps([_conv(conv) for conv in chain.conv])
    dtypes = {"dtype": chain.dtype, "filter_dtype": chain.dtype_of_filters}
    ends = {name: getattr(chain, name) for name in ("zero_point", "input_layout", "output_layout")}
    return {"chain": chain.slug, **_shape(chain.input), **dtypes, **ends, "convs": convs}


def _shape(sizes: Any) -> Row:
    return {"input": "x".join(map(str, sizes)) if isinstance(sizes, (list, tuple)) else str(sizes)}


def _conv(conv: Conv2d) -> Table:
    """Return the fields of a conv that are not at their defaults."""
    stated = {f.name: value for f in fields(conv) if (value := getattr(conv, f.name)) != getattr(_PLAIN, f.name)}
    if "padding" in stated:
        stated["padding"] = list(asdict(conv.padding).values())
    if conv.requantize:
        stated["requantize"] = asdict(conv.requantize)
    return {"out_channels": conv.out_channels, **stated}


_PLAIN = Conv2d(out_channels=1)
