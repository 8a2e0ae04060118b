"""Every file that defines a method is found, and says all that a screen needs to know of it."""

import ast
from pathlib import Path

import pytest

import solver.methods
from solver.catalogue import method_by_name, methods
from solver.errors import UnknownMethod

FOLDER = Path(solver.methods.__file__).parent
NOT_METHODS = {"__init__", "base", "explicit_rk", "tableau"}
each_method = pytest.mark.parametrize("cls", methods().values(), ids=methods().keys())


def test_every_file_is_a_method_named_after_it():
    files = {path.stem for path in FOLDER.glob("*.py")} - NOT_METHODS
    assert {cls.__module__.rpartition(".")[2] for cls in methods().values()} == files
    assert {name for name, cls in methods().items() if cls.__module__.endswith(f".{name}")} == files


def test_the_methods_promised_are_there():
    fixed = {"euler", "midpoint", "heun", "ralston", "rk4"}
    adaptive = {"heun_euler", "bosh3", "fehlberg45", "tsit5", "dopri5", "vern7", "dopri8"}
    assert fixed | adaptive <= methods().keys()
    assert all(methods()[name]().error_order is None for name in fixed)
    assert all(methods()[name]().error_order for name in adaptive)


@each_method
def test_a_method_describes_itself(cls):
    method = cls()
    assert cls.__final__
    assert method.title
    assert cls.__doc__
    assert method.order >= 1
    assert 1 <= method.dense_order <= method.order
    assert method == cls()
    assert hash(method) == hash(cls())
    assert type(method_by_name(cls.name.upper())) is cls


@each_method
def test_a_method_names_its_source_with_a_year(cls):
    tableau = getattr(cls(), "tableau", None)
    if tableau is not None:
        assert any(part.strip("(),;.").isdigit() for part in tableau.source.split())


@each_method
def test_numbers_of_a_tableau_are_written_exactly(cls):
    """A float literal would be rounded before the tableau sees it."""
    tree = ast.parse((FOLDER / f"{cls.__module__.rpartition('.')[2]}.py").read_text())
    floats = [
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is float
    ]
    assert floats == []


def test_an_unknown_method_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownMethod, match="did you mean 'dopri5'"):
        method_by_name("dorpi5")
