"""Documentation and code agree: signatures, arguments, exceptions, names that the documents use."""

import ast
import builtins
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("solver", "inspector", "sample_problems", "app")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
EVERY_SOURCE = pytest.mark.parametrize(
    "path", SOURCES, ids=lambda path: str(path.relative_to(ROOT))
)
OUR_ERRORS = {  # exceptions that pass through modules which do not name them otherwise
    name
    for path in SOURCES
    for name in re.findall(
        r"^class (\w+)\((?:\w*Error|\w*Exception)\)", path.read_text("utf-8"), re.M
    )
}
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns|Yields|Source):\s*$")


def section(docstring: str, name: str) -> list[str]:
    """Return what stands before the colon of each entry of one section of a docstring."""
    entries, inside, indent = [], False, None
    for line in docstring.splitlines():
        if match := SECTION.match(line.strip()):
            inside, indent = match[1] == name, None
        elif inside and line.strip():
            depth = len(line) - len(line.lstrip())
            indent = depth if indent is None else indent
            if depth < indent:
                inside = False
            elif depth == indent and ":" in line:
                entries.append(line.strip().partition(":")[0])
    return entries


def documented_names(docstring: str) -> set[str]:
    """Return the names that an `Args:` section explains."""
    names = (n for entry in section(docstring, "Args") for n in entry.split(","))
    return {name.strip().strip("`*").split(" ")[0].split("(")[0] for name in names} - {""}


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str]:
    """Return what a function, or the constructor or fields of a class, can be given."""
    if isinstance(node, ast.ClassDef):
        fields = {
            item.target.id
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
        made = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        return fields | (parameters(made[0]) if made else set())
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg for arg in every if arg is not None}


def documented_objects(path: Path):
    """Yield every function and class of a file with its docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node, ast.get_docstring(node) or ""


@EVERY_SOURCE
def test_docstrings_explain_only_arguments_that_exist(path: Path):
    for node, docstring in documented_objects(path):
        unknown = documented_names(docstring) - parameters(node)
        bases = isinstance(node, ast.ClassDef) and node.bases
        assert not unknown or bases, f"{path.name}:{node.lineno} {node.name} explains {unknown}"


@EVERY_SOURCE
def test_docstrings_name_only_exceptions_that_exist(path: Path):
    from solver import errors

    for node, docstring in documented_objects(path):
        for entry in section(docstring, "Raises"):
            for name in entry.replace("`", "").replace(" or ", ",").split(","):
                first, _, _ = name.strip().partition(".")
                found = getattr(errors, first, None) or getattr(builtins, first, None)
                local = re.search(rf"\b(class {first}\b|import .*\b{first}\b)", path.read_text())
                assert found or local or first in OUR_ERRORS, (
                    f"{path.name}:{node.lineno} {node.name} raises {name}?"
                )


@EVERY_SOURCE
def test_nothing_is_left_unfinished(path: Path):
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b", text)


def test_architecture_shows_the_true_signature_of_solve_ivp():
    from solver import solve_ivp

    match = re.search(r"sol = solve_ivp\((.*?)\)\n```", ARCHITECTURE, re.DOTALL)
    assert match is not None
    shown = ast.parse(f"def call(f, y0, t_eval=None, *, {match[1].partition('*,')[2]}): ...").body[
        0
    ]
    assert isinstance(shown, ast.FunctionDef)
    real = inspect.signature(solve_ivp).parameters
    names = [arg.arg for arg in (*shown.args.args, *shown.args.kwonlyargs)]
    assert names == list(real)
    for arg, default in zip(shown.args.kwonlyargs, shown.args.kw_defaults, strict=True):
        assert default is not None
        assert real[arg.arg].default == ast.literal_eval(default), arg.arg


def test_architecture_names_only_files_and_folders_that_exist():
    tree = ARCHITECTURE.partition("## 1. The house")[2].partition("```")[2].partition("```")[0]
    room = ""
    for line in tree.splitlines():
        indent = len(line) - len(line.lstrip())
        if line.strip() and not indent:
            room = line.split("/")[0]
        names = re.findall(r"\b[a-z_]+(?:\.py|/)(?=[\s,.;|]|$)", line)
        for name in names:
            places = [ROOT / room / name, *(ROOT / room).glob(f"*/{name}"), ROOT / name]
            assert any(place.exists() for place in places), f"{room}: {name}"


def test_architecture_lists_the_status_codes_there_are():
    from solver import Status

    listed = dict(re.findall(r"\b([A-Z][A-Z_]+) (\d)\b", ARCHITECTURE.partition("**Status**")[2]))
    assert {name: int(code) for name, code in listed.items()} == {s.name: s.value for s in Status}


def test_architecture_lists_the_statistics_there_are():
    from solver import catalogue

    text = ARCHITECTURE.partition("**Statistic**")[2].partition("**Status**")[0]
    for name in catalogue.statistics():
        assert f"{name}" in text


def test_the_public_entrances_explain_every_argument():
    from inspector import Inspector
    from solver import solve_ivp

    for entrance in (solve_ivp, Inspector):
        docstring = inspect.getdoc(entrance) or ""
        missing = set(inspect.signature(entrance).parameters) - documented_names(docstring)
        assert not missing, f"{entrance.__name__} does not explain {missing}"
