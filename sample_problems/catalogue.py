"""Sample problems by name, and a user's own from a file."""

import importlib.util
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sample_problems.base import SampleProblem
from solver.catalogue import members
from solver.errors import InvalidArgument, UnknownName


class UnknownProblem(UnknownName):
    """No sample problem of that name."""

    kind = "problem"


def problems() -> dict[str, type[SampleProblem]]:
    """Return every sample problem's class by name."""
    return dict(members("sample_problems", SampleProblem))


def problem_by_name(name: str, parameters: Mapping[str, Any] | None = None) -> SampleProblem:
    """Return the problem of that name, or of `path/to/file.py:ClassName`.

    Args:
        name: what to look up.
        parameters: values that differ from the defaults.

    Raises:
        UnknownProblem: there is none; the message has the nearest name.
        InvalidArgument: a parameter is outside its bounds, or there is no such parameter.
    """
    known = problems()
    cls = load(name) if ".py:" in name else known.get(name.lower())
    if cls is None:
        raise UnknownProblem.among(name, known)
    given = dict(parameters or {})
    allowed = [setting["name"] for setting in cls.describe()["parameters"]]
    for parameter in given:
        if parameter not in allowed:
            raise InvalidArgument(
                f"{cls.name} has no parameter {parameter!r}: it has {', '.join(allowed) or 'none'}"
            )
    return cls(**given)


def load(where: str) -> type[SampleProblem]:
    """Return a problem class from a file of one's own.

    Args:
        where: `path/to/file.py:ClassName`; the class name may be left out if there is one class.

    Raises:
        InvalidArgument: there is no such file or class, or the class is no complete problem.
    """
    path_text, _, wanted = where.rpartition(":") if ".py:" in where else (where, "", "")
    path = Path(path_text).expanduser().resolve()
    if not path.is_file():
        raise InvalidArgument(f"problem {where!r}: there is no file {path}")
    module_name = f"_own_problem_{path.stem}"
    found_spec = importlib.util.spec_from_file_location(module_name, path)
    if found_spec is None or found_spec.loader is None:
        raise InvalidArgument(f"problem {where!r}: {path} is no Python file")
    module = importlib.util.module_from_spec(found_spec)
    sys.modules[module_name] = module  # dataclasses look their module up
    found_spec.loader.exec_module(module)
    classes = {
        name: cls
        for name, cls in vars(module).items()
        if inspect.isclass(cls)
        and issubclass(cls, SampleProblem)
        and cls.__module__ == module_name
        and not inspect.isabstract(cls)
    }
    if wanted and wanted not in classes:
        raise InvalidArgument(
            f"problem {where!r}: {path.name} has no complete SampleProblem {wanted!r}, "
            f"it has {', '.join(classes) or 'none'}"
        )
    if not wanted and len(classes) != 1:
        raise InvalidArgument(
            f"problem {where!r}: name one of its classes as in {path.name}:MyProblem, "
            f"it has {', '.join(classes) or 'none'}"
        )
    cls = classes[wanted or next(iter(classes))]
    for needed in ("name", "title", "question", "latex", "source", "components", "t1", "spread"):
        if not hasattr(cls, needed):
            raise InvalidArgument(f"problem {where!r}: class attribute {needed!r} is missing")
    return cls
