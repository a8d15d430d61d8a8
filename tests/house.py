"""Count the house: modules, lines of code, who imports whom, which file names stand twice (`python -m tests.house`)."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("hexconv", "reports")


def modules(*places: str) -> dict[str, Path]:
    """Return all Python modules below these folders, by their dotted names."""
    found = {}
    for path in sorted(each for place in places for each in (ROOT / place).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def packaged() -> dict[str, Path]:
    """Return the modules of the package; those that make pages of the site are left out of the wheel."""
    return {name: path for name, path in modules("hexconv").items() if not name.startswith("hexconv.docs.")}


def code_lines(path: Path) -> int:
    """Count lines that are no docstring, no comment and not blank."""
    text = path.read_text()
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and ast.get_docstring(node):
                docs |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        number not in docs and bool(line.strip()) and not line.lstrip().startswith("#") for number, line in lines
    )


def users(known: dict[str, Path]) -> dict[str, set[str]]:
    """Return who imports each module, anywhere in its text."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text())):
            for target in _imported(node, known):
                if target != name:
                    found[target].add(name)
    return found


def _imported(node: ast.AST, known: dict[str, Path]) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names if each.name in known]
    if isinstance(node, ast.ImportFrom) and node.module in known:
        inner = [f"{node.module}.{each.name}" for each in node.names]
        return [each if each in known else node.module for each in inner]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [name for each in node.names if (name := f"{node.module}.{each.name}") in known]
    return []


def names_used_twice(known: dict[str, Path]) -> dict[str, list[str]]:
    """Return the file names that several folders have, `__init__` and `__main__` aside."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, path in known.items():
        if path.stem not in ("__init__", "__main__"):
            names[path.stem].append(name)
    return {stem: found for stem, found in names.items() if len(found) > 1}


def with_one_user(known: dict[str, Path]) -> list[str]:
    """Return the modules that exactly one other imports."""
    return sorted(name for name, found in users(known).items() if len(found) == 1)


def asking_for_forms(known: dict[str, Path]) -> dict[str, list[str]]:
    """Return who takes anything out of a form's file, but for other forms and the code that is emitted for forms.

    What a form is, only it knows; others ask `RowConv.form`. A form's file defines a class that ends with `Form`.
    """
    bases, files = {"Form", "VectorForm"}, set[str]()
    for name, path in known.items():
        classes = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))
        if any(isinstance(base, ast.Name) and base.id in bases for each in classes for base in each.bases):
            files.add(name)
    files -= {"hexconv.kernel.form"}
    beside = ("hexconv.lower.hvx.", "hexconv.lower.scalar_")
    askers: dict[str, list[str]] = defaultdict(list)
    importing = users(known)
    for form in sorted(files):
        for user in sorted(importing[form] - files):
            if not user.startswith(beside):
                askers[user].append(form)
    return askers


def main() -> None:
    """Print the counts."""
    package, every = packaged(), modules(*PLACES)
    lines = {name: code_lines(path) for name, path in every.items()}
    print(f"modules of hexconv/              {len(package)}")
    print(f"lines of code of hexconv/        {sum(lines[name] for name in package)}")
    print(f"lines of code with reports/      {sum(lines.values())}")
    print(f"modules that one other imports   {len(with_one_user(package))}")
    print(f"file names used twice            {len(names_used_twice(every))}")
    print(f"modules that look into forms     {len(asking_for_forms(package))}")
    rooms = Counter(name.split(".")[1] for name in package if "." in name)
    for room, count in sorted(rooms.items()):
        inside = sum(lines[name] for name in package if name.split(".")[1:2] == [room])
        print(f"    {room:<12} {count:>4} modules {inside:>6} lines")


if __name__ == "__main__":
    main()
