"""Nothing that comes from an input file is unpickled or evaluated: no code of hexconv could do it."""

import ast
from pathlib import Path

import pytest

import hexconv

ROOT = Path(hexconv.__file__).parent
NEVER_IMPORTED = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "code", "joblib", "yaml"}
NEVER_CALLED = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}


def test_no_module_evaluates_anything() -> None:
    found = {str(path.relative_to(ROOT)): list(complaints(ast.parse(path.read_text()))) for path in ROOT.rglob("*.py")}
    assert len(found) > 100
    assert {path: complaint for path, complaint in found.items() if complaint} == {}


def complaints(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"import {name.name}" for name in node.names if name.name.split(".")[0] in NEVER_IMPORTED)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in NEVER_IMPORTED:
            yield f"from {node.module} import"
        if isinstance(node, ast.Call):
            yield from called(node)


def called(call: ast.Call):
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    is_name = isinstance(call.func, ast.Name)
    if is_name and name in NEVER_CALLED:
        yield f"{name}()"
    owner = call.func.value.id if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) else ""
    if owner in ("np", "numpy") and name in ("load", "save", "savez", "savez_compressed"):
        allowed = keywords.get("allow_pickle")
        if not (isinstance(allowed, ast.Constant) and allowed.value is False):
            yield f"np.{name} without allow_pickle=False"
    shell = keywords.get("shell")
    if shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False):
        yield "a shell"
    if (owner == "os" and name in ("system", "popen")) or name in ("read_pickle", "to_pickle"):
        yield f"{name}()"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "import pickle",
            "from pickle import loads",
            "eval('1')",
            "exec(text)",
            "__import__(name)",
            "os.system(text)",
        ),
        *("np.load(path)", "np.load(path, allow_pickle=True)", "run(text, shell=True)", "pd.read_pickle(p)"),
    ],
)
def test_the_test_sees_what_it_looks_for(text: str) -> None:
    assert list(complaints(ast.parse(text)))
