"""Marks: dataclasses of expressions that stand in TIR as a call of no function, where TVM's passes keep them right.

    @dataclass(frozen=True)                            call_extern("hexconv_at", "number", 1, "row", ho * 8,
    class At:                                                      "band.0", first, "band.1", end)
        number: int
        row: tirx.Expr
        band: tuple[tirx.Expr, tirx.Expr] | None

Each value of the call stands behind its name, so a reader never counts arguments.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from tvm import tirx
from tvm.ir import Call, StringImm

Kind = TypeVar("Kind")


def written(name: str, mark: Any) -> tirx.Stmt:
    """Write a mark as a statement; `name` tells its kind."""
    arguments = [each for path, value in _flat("", mark) for each in (StringImm(path), value)]
    return tirx.Evaluate(tirx.call_extern("int32", name, *arguments))


def read(name: str, kind: type[Kind], statement: Any) -> Kind | None:
    """Read a mark of a kind; None for any other statement."""
    if not isinstance(statement, tirx.Evaluate) or not is_named(statement.value, name):
        return None
    _name, *arguments = statement.value.args
    values = {path.value: value for path, value in zip(arguments[::2], arguments[1::2], strict=True)}
    return _built(kind, "", values)


def is_named(value: Any, name: str) -> bool:
    """Return whether a value calls a function that has some name and that no library has."""
    return isinstance(value, Call) and value.op.name == "tirx.call_extern" and value.args[0].value == name


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the expressions of a value with their names."""
    if is_dataclass(value):
        for each in fields(value):
            yield from _flat(_joined(path, each.name), getattr(value, each.name))
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            yield from _flat(_joined(path, str(place)), each)
    elif value is not None:
        yield path, value


def _built(kind: Any, path: str, values: Mapping[str, Any]) -> Any:
    """Build a value of a kind from the expressions whose names begin with a path."""
    if get_origin(kind) in (Union, UnionType):
        inner = next(each for each in get_args(kind) if each is not type(None))
        is_there = any(name == path or name.startswith(f"{path}.") for name in values)
        return _built(inner, path, values) if is_there else None
    if get_origin(kind) is tuple:
        return tuple(_built(each, _joined(path, str(place)), values) for place, each in _places(kind, path, values))
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        built = {each.name: _built(hints[each.name], _joined(path, each.name), values) for each in fields(kind)}
        return kind(**built)  # pyright: ignore[reportCallIssue]  # `kind` is a class
    return int(values[path]) if kind is int else values[path]


def _places(kind: Any, path: str, values: Mapping[str, Any]) -> Iterator[tuple[int, Any]]:
    """Yield the places of a tuple with their kinds; one of any length has as many as there are values."""
    first, *others = get_args(kind)
    if others != [Ellipsis]:
        yield from enumerate((first, *others))
        return
    depth = len(path.split(".")) if path else 0
    inside = [name.split(".")[depth] for name in values if name.startswith(f"{path}.")]
    yield from ((int(place), first) for place in dict.fromkeys(inside))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
