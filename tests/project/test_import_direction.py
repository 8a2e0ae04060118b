"""app -> inspector -> solver, app -> sample_problems -> solver, and what the app may not load."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("solver", "inspector", "sample_problems", "app")
MAY_IMPORT = {
    "solver": {"torch", "numpy"},
    "sample_problems": {"torch", "solver"},
    "inspector": {"torch", "solver", "numpy", "pandas", "pyarrow", "duckdb"},
    "app": {"inspector", "solver", "sample_problems", "streamlit", "plotly"}
    | {"torch", "numpy", "pandas", "pyarrow", "joblib"},
}
# Processes of their own; everything else in app/ is loaded by the Streamlit server.
SOLVING_SIDE = (
    *("worker.py", "gradients.py", "trainer.py", "record_examples.py"),
    *("studied.py", "work_precision.py", "work_precision_command.py"),
    *("tuning.py", "tune_command.py", "ask_command.py", "replay.py", "replay_model.py"),
    *("cli.py", "adjoints_command.py", "train_command.py", "experiment_command.py", "describe.py"),
    *("spectrum_command.py", "own_problem.py", "reference_command.py"),
)
READING_SIDE = ("inspector/run.py", "inspector/queries.py")


def files(room: str) -> list[Path]:
    """Return the Python files of one room, tests of it excluded."""
    return sorted((ROOT / room).rglob("*.py"))


def imports(tree: ast.AST, *, running: bool = False) -> Iterator[tuple[str, int]]:
    """Yield (dotted name, line) of each import.

    Args:
        running: only those that happen while the module is imported, not later nor for types.
    """
    for node in ast.iter_child_nodes(tree):
        if running and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if running and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        yield from imports(node, running=running)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def module_file(name: str) -> Path | None:
    """Return the file of a dotted name of ours; an attribute's is that of its module."""
    parts = name.split(".")
    while parts:
        path = ROOT.joinpath(*parts)
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return candidate
        parts.pop()
    return None


# Within the solver: solve -> adjoints -> loop -> methods, controllers, statistics.
ABOVE = {
    "loop.py": ("solver.solve", "solver.adjoints"),
    "methods/*.py": ("solver.solve", "solver.adjoints", "solver.loop", "solver.controllers"),
    "controllers/*.py": ("solver.solve", "solver.adjoints", "solver.loop", "solver.methods"),
    "statistics/*.py": ("solver.solve", "solver.adjoints", "solver.loop"),
}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_it_may(room: str):
    allowed = MAY_IMPORT[room] | {room} | sys.stdlib_module_names
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files(room)
        for name, line in imports(parsed(path))
        if name.split(".")[0] not in allowed
    ]
    assert files(room), f"{room}/ has no Python file"
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("inner", ABOVE)
def test_inner_parts_of_the_solver_do_not_import_outer_ones(inner: str):
    found = sorted((ROOT / "solver").glob(inner))
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in found
        for name, line in imports(parsed(path), running=True)
        if f"{name}.".startswith(tuple(f"{outer}." for outer in ABOVE[inner]))
    ]
    assert found
    assert not wrong, "\n".join(wrong)


def test_the_streamlit_process_imports_nothing_that_solves():
    wrong = []
    for path in files("app"):
        if path.parent == ROOT / "app" and path.name in SOLVING_SIDE:
            continue
        for name, line in imports(parsed(path)):
            solving_module = name.startswith(
                tuple(f"app.{n.removesuffix('.py')}." for n in SOLVING_SIDE)
            )
            if solving_module or name.split(".")[0] in ("torch", "solver", "sample_problems"):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_figures_import_no_streamlit():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files("app/figures")
        for name, line in imports(parsed(path))
        if name.split(".")[0] == "streamlit"
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("start", READING_SIDE)
def test_reading_a_run_imports_no_torch(start: str):
    """Follow every import that runs, through our own modules."""
    waiting, seen = [ROOT / start], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name, line in imports(parsed(path), running=True):
            where = f"{path.relative_to(ROOT)}:{line} imports {name}"
            assert name.split(".")[0] not in ("torch", "solver", "sample_problems", "app"), where
            if name.split(".")[0] in ROOMS and (found := module_file(name)):
                waiting += [found, found.parent / "__init__.py"]
    assert len(seen) > 1


def test_the_reader_and_all_figures_load_without_torch():
    modules = ["inspector", *(f[: -len(".py")].replace("/", ".") for f in READING_SIDE)]
    for folder in ("app/figures", "app/controls"):
        modules += [
            ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for path in files(folder)
            if path.name != "__init__.py"
        ]
    script = (
        f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        "import inspector; inspector.open_run\n"
        "bad = {'torch', 'solver', 'sample_problems'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {sorted(bad)}' if bad else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_one_module_touches_session_state_and_the_query_string():
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} touches st.{node.attr}"
        for path in files("app")
        if path != ROOT / "app" / "session.py"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr in ("session_state", "query_params")
    ]
    assert not wrong, "\n".join(wrong)
