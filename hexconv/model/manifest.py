"""`network.toml`: which chains a model has, and which convs are in none; it lies beside the case files."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import tomli_w
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hexconv.model.multipliers import ROUNDING
from hexconv.spec import Case
from hexconv.spec.case import parse_table, read_text
from hexconv.spec.fields import STRICT, first_complaint

MANIFEST = "network.toml"
CaseName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$")]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ChainEntry:
    """One chain of a model.

    Attributes:
        case: the name of its case; the case file is `CASE.toml` in the same folder, the weights are in `CASE.npz`.
        convs: the names of the model's convs in the chain, in order.
        input: the model's tensor that the chain reads.
        output: the model's tensor that the chain writes.
        ended_by: the operator that reads the output and ends the chain; `output` if the model returns the tensor,
            `branch` if more than one node reads it, `limit` if the chain has as many convs as a case may have, `cut` if
            it is a piece of a plan.
        reason: why the chain ends there, in words.
        after: the cases of the chains whose outputs reach its input, directly or through nodes that are in no chain.
    """

    case: CaseName
    convs: tuple[str, ...]
    input: str
    output: str
    ended_by: str
    reason: str
    after: tuple[CaseName, ...] = ()


@dataclass(frozen=True, kw_only=True, config=STRICT)
class NotTaken:
    """A conv that is in no chain, and why.

    Attributes:
        node: the conv's name in the model.
        op: its ONNX operator.
        reason: why no chain can have it, in words.
    """

    node: str
    op: str
    reason: str


Size = Annotated[int, Field(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OperatorEntry:
    """An operator that a call computes outside of chains (`hexconv.model.unfused`).

    Attributes:
        node: its node's name in the model.
        op: its ONNX operator.
        reads_bytes: the bytes of the tensors and constants that it reads.
        writes_bytes: the bytes of its results.
        elements: how many elements its results have.
        is_open: whether a tensor's size or dtype is unknown, so that its bytes are left out.
    """

    node: str
    op: str
    reads_bytes: Size
    writes_bytes: Size
    elements: Size
    is_open: bool = False

    @property
    def moved_bytes(self) -> int:
        """The bytes that it reads and writes."""
        return self.reads_bytes + self.writes_bytes


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Manifest:
    """The chains of a model, in the order of its graph, and what lies outside of them.

    Attributes:
        model: the name of the file that the model was read from.
        notes: what the chains do differently from the model, and by how much.
        chain: the entries of its chains.
        not_taken: its convs that are in no chain.
        operator: what a call computes outside of chains, convs that are in none included.
    """

    model: str
    notes: tuple[str, ...] = ()
    chain: tuple[ChainEntry, ...] = ()
    not_taken: tuple[NotTaken, ...] = ()
    operator: tuple[OperatorEntry, ...] = ()

    @property
    def operators_bytes(self) -> int:
        """The bytes that a call reads and writes outside of chains."""
        return sum(entry.moved_bytes for entry in self.operator)

    @property
    def differences(self) -> tuple[str, ...]:
        """The notes but for the one on how every conv rounds."""
        return tuple(note for note in self.notes if note != ROUNDING)

    @property
    def taken(self) -> int:
        """How many convs are in chains."""
        return sum(len(chain.convs) for chain in self.chain)

    def to_toml(self) -> str:
        """The text of `network.toml`."""
        return tomli_w.dumps(_plain(asdict(self)))

    @classmethod
    def load(cls, folder: Path) -> "Manifest":
        """Read the manifest of a folder.

        Raises:
            InputError: there is no manifest, or it can't be used.
        """
        path = folder / MANIFEST
        table = parse_table(read_text(path), str(path))
        try:
            return TypeAdapter(cls).validate_json(json.dumps(table, default=str))
        except ValidationError as error:
            raise first_complaint(error).within(str(path)) from None

    def cases(self, folder: Path) -> list[Case]:
        """Load the case of every chain, in order.

        Raises:
            InputError: a case file is missing or can't be used.
        """
        return [Case.load(folder / f"{chain.case}.toml") for chain in self.chain]


def _plain(value: object) -> dict[str, object]:
    """The fields of an entry for TOML: tuples become lists, empty ones are left out."""
    table = json.loads(json.dumps(value))
    return _without_empty(table)


def _without_empty(table: dict[str, object]) -> dict[str, object]:
    kept = {key: entry for key, entry in table.items() if entry != []}
    if isinstance(chains := kept.get("chain"), list):
        kept["chain"] = [{key: entry for key, entry in chain.items() if entry != []} for chain in chains]
    return kept
