"""The keys of JSON: the types that each command prints with `--json`; pydantic's schema of them is the page of keys."""

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import get_original_bases

from hexconv.analyze.layout_bytes import LayoutUsage
from hexconv.analyze.usage import WorkUsage
from hexconv.build.built_chain import Built
from hexconv.model.manifest import Manifest
from hexconv.network.texts import BuiltNetwork
from hexconv.report.described import attributes, markdown
from hexconv.report.rows import (
    CacheRow,
    FiguresRow,
    FileRow,
    GridRow,
    ImportRow,
    LayoutRow,
    NetworkRow,
    Reordered,
    RunRow,
    TirRow,
)
from hexconv.run.check import Check
from hexconv.run.machine_parts import Part
from hexconv.search.calibration import Fit
from hexconv.search.grid import Figures
from hexconv.spec import Plan
from hexconv.sweep.judging import Sweep
from hexconv.verify import NetworkVerdict

COMMANDS: dict[str, tuple[type, ...]] = {
    "best": (NetworkRow,),
    "build CASE": (Built,),
    "build MODEL": (BuiltNetwork,),
    "cache": (CacheRow, WorkUsage),
    "calibrate": (Fit, FileRow),
    "doctor": (Part,),
    "example": (FileRow,),
    "import": (Manifest, ImportRow),
    "layout": (LayoutRow,),
    "layout compare": (LayoutUsage,),
    "layout reorder": (Reordered,),
    "report": (FileRow,),
    "run": (RunRow, Check),
    "sweep GRID": (GridRow,),
    "sweep --random": (Sweep,),
    "tir": (TirRow,),
    "verify": (NetworkVerdict,),
}
"""The types whose keys each command prints; commands that take several cases print a list of such rows."""

Schema = dict[str, Any]


class Documented(GenerateJsonSchema):
    """A JSON schema in which each key has the sentence that the docstring of its class says of the attribute."""

    def dataclass_schema(self, schema: Any) -> Schema:
        """Return the schema of a dataclass."""
        return _documented(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: Any) -> Schema:
        """Return the schema of a typed dictionary."""
        return _documented(super().typed_dict_schema(schema), schema["cls"])


def _documented(schema: Schema, kind: type) -> Schema:
    kinds = (Figures if each is FiguresRow else each for each in (*get_original_bases(kind), *reversed(kind.__mro__)))
    said = {name: words for each in kinds for name, words in attributes(each).items()}
    for name, of in schema["properties"].items():
        words = (said.get(name) or of["description"]).removesuffix(".")
        of["description"] = words[0].lower() + words[1:]
    return schema


def schema_of(kind: type) -> Schema:
    """Return the JSON schema of a row."""
    return TypeAdapter(kind).json_schema(mode="serialization", schema_generator=Documented)


def keys_of(command: str) -> dict[str, str]:
    """Return each key of a command's JSON with its sentence; `[]` marks a list, and `*` any name.

    >>> list(keys_of("sweep --random"))
    ['version', 'checked', 'refused', 'disagree', 'failures[]']
    """
    found = {"version": "the version of these keys: it rises when one goes, or changes what it says"}
    for kind in COMMANDS[command]:
        schema = schema_of(kind)
        found |= _keys(schema, "", schema.get("$defs", {}), {Plan.__name__: ""})
    return found


def _keys(schema: Schema, prefix: str, known: dict[str, Schema], told: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the keys inside of a value.

    Args:
        schema: the value's schema.
        prefix: the key of the value, with a dot.
        known: the schemas of classes, by name.
        told: the key under which the keys of a class were told; those of a plan are the knobs, on a page of their own.
    """
    for name, inner in schema.get("properties", {}).items():
        key, kinds = f"{prefix}{name}{'[]' * _is_list(inner)}", list(_classes(inner))
        same = next((told[kind] for kind, _ in kinds if told.get(kind)), "")
        yield key, inner["description"] + (f"; with the keys of `{same}`" if same else "")
        for kind, dots in kinds:
            if kind not in told:
                told[kind] = key
                yield from _keys(known[kind], f"{key}.{dots}", known, told)


def _classes(schema: Schema, dots: str = "") -> Iterator[tuple[str, str]]:
    """Yield the classes that a value may be of, or that its elements are of; `*.` stands for the names of those."""
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2], dots
    for way in schema.get("anyOf", ()):
        yield from _classes(way, dots)
    if "items" in schema:
        yield from _classes(schema["items"], dots)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _classes(schema["additionalProperties"], f"{dots}*.")


def _is_list(schema: Schema) -> bool:
    return any(way.get("type") == "array" for way in (schema, *schema.get("anyOf", ())))


def keys_page() -> str:
    """Return the part of the page of columns that is about JSON."""
    parts = [
        "## JSON",
        "With `--json` a command prints these keys, and nothing else on standard output. A key behind a dot is a key "
        "of the value before the dot; `[]` marks a list, and `*` stands for any name. A command that takes several "
        "cases prints a list of such objects. `plan` holds the [knobs](knobs.md) of a plan.",
    ]
    for command in COMMANDS:
        parts += [f"### hexconv {command} --json", markdown(keys_of(command).items(), "key")]
    return "\n\n".join(parts)
