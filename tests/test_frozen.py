"""Values are passed forward: a dataclass is frozen, unless its module gives one of its fields another value."""

import ast
from collections.abc import Iterator
from pathlib import Path

import hexconv

ROOT = Path(hexconv.__file__).parent


def test_a_dataclass_is_frozen_unless_its_module_changes_one_of_its_fields() -> None:
    found = [f"{path.relative_to(ROOT)}: {name}" for path in ROOT.rglob("*.py") for name in thawed(path.read_text())]
    assert found == []


def thawed(text: str) -> Iterator[str]:
    """The dataclasses that could be frozen and are not."""
    if "@dataclass" not in text:
        return
    nodes = list(ast.walk(ast.parse(text)))
    changed = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        kinds = [ast.unparse(each) for each in node.decorator_list] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.ClassDef) and any("dataclass" in kind and "frozen=True" not in kind for kind in kinds):
            names = {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
            if not names & changed:
                yield node.name
