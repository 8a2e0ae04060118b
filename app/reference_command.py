"""`stepscope reference`: everything there is to call and to choose, from the docstrings."""

import argparse
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

HELP = "print a reference of functions, classes, settings and commands as Markdown"
SECTIONS = ("solver", "inspector", "families", "commands")


def add(commands: Any) -> None:
    """Add the command to the parser's."""
    command = commands.add_parser("reference", help=HELP)
    command.add_argument(
        "name", nargs="?", help="only what has this name, such as solve_ivp or PID"
    )
    command.add_argument("--out", type=Path, help="file to write to; printed if left out")
    command.set_defaults(do=run)


def run(arguments: argparse.Namespace) -> int:
    """Print or write the reference.

    Raises:
        ValueError: there is nothing of that name.
    """
    entries = list(everything())
    if arguments.name:
        wanted = arguments.name.lower()
        entries = [entry for entry in entries if wanted in (n.lower() for n in entry[1])]
        if not entries:
            raise ValueError(f"name {arguments.name!r}: there is nothing of that name")
    text = written(entries)
    if arguments.out is None:
        sys.stdout.write(text)
        return 0
    arguments.out.write_text(text, "utf-8")
    print(f"{arguments.out}: {len(entries)} entries")
    return 0


Entry = tuple[str, tuple[str, ...], str]
"""Heading of the part it belongs to, the names it is found by, and its text."""


def written(entries: Iterable[Entry]) -> str:
    """Return entries as one document, with a heading for each part."""
    parts, last = ["# Reference"], ""
    for heading, _, text in entries:
        if heading != last:
            parts.append(f"## {heading}")
            last = heading
        parts.append(text)
    return "\n\n".join(parts) + "\n"


def everything() -> Iterator[Entry]:
    """Yield every entry: what packages export, members of the families, commands."""
    import inspector
    import solver
    import solver.optim
    from inspector import diagnosis, queries
    from solver.compat import torchdiffeq

    shown: set[Any] = set()
    for heading, package in (
        ("solver", solver), ("solver.optim", solver.optim), ("inspector", inspector),
        ("inspector.diagnosis", diagnosis),
    ):  # fmt: skip
        for name in sorted(package.__all__, key=str.lower):
            if not inspect.ismodule(getattr(package, name)):
                shown.add(getattr(package, name))
                yield heading, (name,), thing(name, getattr(package, name))
    yield from functions("inspector.queries", queries)
    yield from functions("solver.compat.torchdiffeq", torchdiffeq)
    yield from families(shown)
    yield from commands()


def functions(heading: str, module: Any) -> Iterator[Entry]:
    """Yield the public functions of a module."""
    for name, value in vars(module).items():
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        if own and not name.startswith("_"):
            yield heading, (name,), thing(name, value)


def families(shown: set[Any]) -> Iterator[Entry]:
    """Yield the members of the families, those that were shown already without their text."""
    from inspector.diagnosis import rules
    from sample_problems.catalogue import problems
    from solver import catalogue

    for heading, members in (
        ("Methods", catalogue.methods()), ("Controllers", catalogue.controllers()),
        ("Gradient modes", catalogue.adjoints()), ("Statistics", catalogue.statistics()),
        ("Sample problems", problems()),
    ):  # fmt: skip
        for name, cls in members.items():
            yield heading, (name, cls.__name__), member(name, cls, cls in shown)
    for name, rule in rules().items():
        lines = [f"### {name}", rule.title + ".", *docstring(rule.look)]
        if rule.columns:
            lines.append(f"Needs the statistics {', '.join(rule.columns)}.")
        yield "Rules of the diagnosis", (name,), "\n\n".join(lines)


def member(name: str, cls: Any, known: bool) -> str:
    """Return the text of a member of a family."""
    lines = [f"### {name}", f"{getattr(cls, 'title', '')}, class `{cls.__name__}`."]
    lines += [cls.help] if isinstance(getattr(cls, "help", None), str) else []
    lines += [] if known else docstring(cls)
    tableau = getattr(cls, "tableau", None)
    source = getattr(cls, "source", None) or getattr(tableau, "source", None)
    lines += [f"Source: {source}."] if isinstance(source, str) else []
    table = settings_table(cls)
    return "\n\n".join([*lines, table] if table else lines)


def settings_table(cls: Any) -> str:
    """Return the settings of a class with their bounds as a table; empty if it has none."""
    import dataclasses

    from solver.bounds import describe_settings

    if not dataclasses.is_dataclass(cls):
        return ""
    rows = [
        f"| `{s['name']}` | {s['default']} | {allowed(s)} | {s['help']} |"
        for s in describe_settings(cls)  # pyright: ignore[reportArgumentType]
    ]
    head = ["| setting | default | allowed | |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows]) if rows else ""


def allowed(setting: Mapping[str, Any]) -> str:
    """Return which values a setting takes."""
    if setting["choices"]:
        return ", ".join(map(str, setting["choices"]))
    if setting["low"] is None:
        return str(setting["type"])
    return f"{setting['low']:g} to {setting['high']:g}"


def thing(name: str, value: Any) -> str:
    """Return the text of a function or class: its call, its docstring, its public methods."""
    lines = [f"### {name}"]
    call = signature(name, value)
    lines += [f"```text\n{call}\n```"] if call else []
    lines += docstring(value)
    if inspect.isclass(value):
        for method, function in vars(value).items():
            public = inspect.isfunction(function) and not method.startswith("_")
            if public and docstring(function):
                text = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
                lines.append(f"* `{signature(method, function)}`: {text}")
    return "\n\n".join(lines)


def signature(name: str, value: Any) -> str:
    """Return how something is called, without annotations; empty where that is not known."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    kept = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    plain = found.replace(
        parameters=[p for p in kept if p.name not in ("self", "cls")],
        return_annotation=inspect.Signature.empty,
    )
    return f"{name}{plain}"


def docstring(value: Any) -> list[str]:
    """Return the docstring of something itself, as Markdown; empty if it has none."""
    text = inspect.cleandoc(value.__doc__ or "") if isinstance(value.__doc__, str) else ""
    if not text or text.startswith(f"{getattr(value, '__name__', '')}("):  # made by a dataclass
        return []
    parts = []
    for block in text.split("\n\n"):
        head, _, rest = block.partition("\n")
        if head in ("Args:", "Returns:", "Raises:", "Yields:", "Attributes:"):
            block = f"{head}\n```text\n{inspect.cleandoc(rest)}\n```" if rest else head
        parts.append(block)
    return parts


def commands() -> Iterator[Entry]:
    """Yield every command with its options."""
    from app.cli import parser

    for action in parser()._actions:  # argparse tells its commands nowhere else
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            for name, command in sorted(action.choices.items()):
                lines = [f"### stepscope {name}", f"```text\n{command.format_help().strip()}\n```"]
                yield "Commands", (name,), "\n\n".join(lines)
