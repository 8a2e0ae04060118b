"""A system of equations as a Python file that runs on its own and prints what comes out.

Everything in the file is written from trees and checked numbers; comments of the text are copied as
comments, without characters that could end a line.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from app.equations.about import describe_system
from app.equations.system import Parameter, System
from app.equations.tree import Apply, Expression, Name, Number, names_in

OR, AND, NOT, COMPARED, SUM, PRODUCT, SIGN, POWER, ATOM = range(9)
TIGHT = {"or": OR, "and": AND, "<": COMPARED, "<=": COMPARED, ">": COMPARED, ">=": COMPARED}
TIGHT |= {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}
TENSORS_ONLY = {"where": "where", "min": "minimum", "max": "maximum", "atan2": "atan2"}
TRUTHS = {"or": "|", "and": "&"}
OURS = ("torch", "math", "Status", "solve_ivp", "f", "start", "time", "state", "args")
"""Names the file uses itself."""


def export(system: System, spec: Mapping[str, Any]) -> str:
    """Return the file.

    Args:
        system: what is solved.
        spec: how: rows, method, controller, tolerances, as a run's spec has them.
    """
    told = describe_system(system)
    own = Written(system)
    method, controller = spec.get("method") or told["method"], spec.get("controller")
    t1 = float(told["t1"] if spec.get("t1") is None else spec["t1"])
    lines = [
        "# coding: utf-8",  # said first, so that no comment below can say otherwise
        "# Written by Stepscope; runs with `python FILE.py`. The equations as they were typed:",
        *(f"#     {plain(line)}".rstrip() for line in system.text.splitlines() if line.strip()),
        "import math",
        "",
        "import torch",
        "",
        "from solver import Status, solve_ivp",
    ]
    named = controller_call(controller)
    lines += ["from solver.catalogue import controller_by_name"] if named else []
    lines += ["", "", *own.field(), "", "", *own.start(), "", ""]
    lines += values(system, spec, told)
    lines += [
        f"times = torch.linspace({system.t0!r}, {t1!r}, {int(spec.get('n_eval') or 200)}, "
        "dtype=torch.float64)",
        "solution = solve_ivp(",
        "    f,",
        "    start(args),",
        "    times,",
        "    args=args,",
        f"    method={quoted(method)},",
    ]
    lines += [f"    controller={named},"] if named else []
    for name in ("rtol", "atol", "dt0", "dt_min", "dt_max"):
        value = spec.get(name, told.get(name))
        lines += [f"    {name}={float(value)!r},"] if value is not None else []
    lines += [f"    max_steps={int(spec['max_steps'])},"] if spec.get("max_steps") else []
    lines += ['    stepping="joint",'] if spec.get("stepping") == "joint" else []
    lines += [")", "for row in range(len(solution.ys)):"]
    lines += [
        "    values = {name: round(float(value[row]), 6) for name, value in args.items()}",
        '    print(f"row {row}, {values}: {int(solution.stats.n_steps[row])} attempts, "',
        '          f"{Status(int(solution.status[row])).name}, "',
        '          f"ends at {solution.y_reached[row].tolist()}")',
        "solution.raise_if_failed()",
    ]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return what can stand in a comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def quoted(text: Any) -> str:
    """Return a text as Python reads it."""
    return json.dumps(str(text))


def controller_call(controller: Any) -> str:
    """Return the call that makes a controller; empty for the solver's own."""
    if isinstance(controller, str):
        return quoted(controller)
    if not isinstance(controller, Mapping):
        return ""
    settings = {str(k): v for k, v in controller.items() if k != "name"}
    given = ", ".join(f"{quoted(key)}: {setting!r}" for key, setting in settings.items())
    return f"controller_by_name({quoted(controller['name'])}, {{{given}}})"


def values(system: System, spec: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    """Return the lines that give every parameter its value in each row."""
    spread = spec.get("spread", told["spread"])
    batch = int(spec.get("batch") or told["batch"])
    given = dict(spec.get("parameters") or {})
    lines = [f"rows = {batch}", "args = {"]
    lines += [
        f'    "{parameter.name}": {value(parameter, given, spread, batch)},'
        for parameter in system.parameters
    ]
    lines += ["}"]
    if spec.get("dtype") == "float32":
        lines += ["args = {name: value.float() for name, value in args.items()}"]
    return lines


def value(
    parameter: Parameter, given: Mapping[str, Any], spread: Mapping[str, Any] | None, batch: int
) -> str:
    """Return the expression of a parameter's value in each row."""
    double = "dtype=torch.float64"
    if not spread or spread["parameter"] != parameter.name:
        return (
            f"torch.full((rows,), {float(given.get(parameter.name, parameter.value))!r}, {double})"
        )
    low, high = float(spread["low"]), float(spread["high"])
    log = spread.get("scale") == "log"
    if batch == 1:
        middle = math.sqrt(low * high) if log else (low + high) / 2
        return f"torch.full((rows,), {middle!r}, {double})"
    if log:
        return f"torch.linspace(math.log({low!r}), math.log({high!r}), rows, {double}).exp()"
    return f"torch.linspace({low!r}, {high!r}, rows, {double})"


class Written:
    """The functions of a system in Python, with names that hide none of the file's own."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.like = ""

    def name(self, name: str) -> str:
        """Return a name, with `_` behind it if the file uses it itself."""
        if name == "t":
            return "time"
        return f"{name}_" if name in OURS else name

    def field(self) -> list[str]:
        """Return the function of the slopes."""
        system = self.system
        states = [self.name(state) for state in system.states]
        self.like = states[0]
        lines = [
            "def f(time, state, args):",
            '    """Return the slopes, (B, D)."""',
            f"    {', '.join(states)}{',' if len(states) == 1 else ''} = state.unbind(-1)",
        ]
        trees = [*system.slopes, *(tree for _, tree in system.definitions)]
        used = {name.name for tree in trees for name in names_in(tree)}
        lines += self.arguments(used)
        lines += ["    time = time.to(state.dtype)"] if "t" in used else []
        lines += [f"    {self.name(n)} = {self.whole(tree)}" for n, tree in system.definitions]
        lines += ["    return torch.stack(", "        ["]
        lines += [f"            {self.whole(tree)}," for tree in system.slopes]
        return [*lines, "        ],", "        dim=-1,", "    )"]

    def start(self) -> list[str]:
        """Return the function of the starts."""
        system = self.system
        used = {name.name for tree in system.starts for name in names_in(tree)}
        first = next((p.name for p in system.parameters), "")
        self.like = f'args["{first}"]'
        lines = ["def start(args):", '    """Return where each row starts, (B, D)."""']
        lines += self.arguments(used)
        lines += ["    return torch.stack(", "        ["]
        lines += [f"            {self.whole(tree)}," for tree in system.starts]
        return [*lines, "        ],", "        dim=-1,", "    )"]

    def arguments(self, used: set[str]) -> list[str]:
        """Return the lines that take parameters out of `args`."""
        names = [p.name for p in self.system.parameters if p.name in used]
        return [f'    {self.name(name)} = args["{name}"]' for name in names]

    def whole(self, tree: Expression) -> str:
        """Return an expression that is a tensor also where it is a constant."""
        text = self.expression(tree)[0]
        constant = not names_in(tree)
        return f"torch.full_like({self.like}, {text})" if constant else text

    def inside(self, tree: Expression, least: int) -> str:
        """Return an expression, in brackets if it holds together less than that."""
        text, tight = self.expression(tree)
        return text if tight >= least else f"({text})"

    def expression(self, tree: Expression) -> tuple[str, int]:
        """Return an expression and how tightly it holds together."""
        if isinstance(tree, Number):
            if tree.word:
                return f"math.{tree.word}", ATOM
            whole = tree.value.is_integer() and abs(tree.value) < 1e15
            return (str(int(tree.value)) if whole else repr(tree.value)), ATOM
        if isinstance(tree, Name):
            return self.name(tree.name), ATOM
        return self.operation(tree)

    def operation(self, tree: Apply) -> tuple[str, int]:
        """Return an operation."""
        name, parts = tree.operation, tree.parts
        if tree.value is not None and name not in ("+", "-", "*", "/", "neg"):
            return repr(tree.value), ATOM if tree.value >= 0 else SIGN
        if name in TRUTHS:
            left, right = (self.expression(part)[0] for part in parts)
            return f"({left}) {TRUTHS[name]} ({right})", OR
        if name == "not":
            return f"~({self.expression(parts[0])[0]})", SIGN
        if name == "neg":
            return f"-{self.inside(parts[0], SIGN)}", SIGN
        if name == "**":
            return f"{self.inside(parts[0], ATOM)}**{self.inside(parts[1], SIGN)}", POWER
        if name in TIGHT:
            tight = TIGHT[name]
            left, right = self.inside(parts[0], tight), self.inside(parts[1], tight + 1)
            return f"{left} {name} {right}", tight
        if name in TENSORS_ONLY:
            return self.of_tensors(name, parts), ATOM
        return f"torch.{name}({self.expression(parts[0])[0]})", ATOM

    def of_tensors(self, name: str, parts: tuple[Expression, ...]) -> str:
        """Return a call that takes tensors alone; `min` and `max` of several two by two."""
        texts = [self.whole(part) for part in parts]
        if name == "where" and not names_in(parts[0]):
            texts[0] = f"torch.full_like({self.like}, {self.expression(parts[0])[0]}).bool()"
        call = f"torch.{TENSORS_ONLY[name]}"
        if name in ("min", "max"):
            text = texts[0]
            for other in texts[1:]:
                text = f"{call}({text}, {other})"
            return text
        return f"{call}({', '.join(texts)})"
