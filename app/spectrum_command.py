"""`stepscope spectrum`: the exact eigenvalues of the Jacobian along a recorded row."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_MOMENTS = 200


def add(
    commands: Any,
    runs_argument: Callable[[argparse.ArgumentParser], None],
    find: Callable[[Path, str], Path],
) -> None:
    """Add the command.

    Args:
        commands: of the parser.
        runs_argument: adds `--runs`.
        find: returns the folder of a run given by id or path.
    """
    command = commands.add_parser(
        "spectrum", help="exact eigenvalues of the Jacobian along a recorded row"
    )
    command.add_argument("run", help="id of a run, or path of its folder")
    command.add_argument("--solve", type=int, default=0)
    command.add_argument("--row", type=int, default=0, help="instance whose states were recorded")
    command.add_argument("--moments", type=int, default=20, help="evenly spread over its steps")
    command.add_argument("--json", action="store_true", help="one JSON array")
    runs_argument(command)
    command.set_defaults(do=lambda arguments: show(arguments, find))


def show(arguments: argparse.Namespace, find: Callable[[Path, str], Path]) -> int:
    """Print the eigenvalues, a line for each, with the step size there."""
    path = find(arguments.runs, arguments.run)
    found = exact(path, arguments.solve, arguments.row, arguments.moments)
    if arguments.json:
        print(json.dumps(found))
        return 0
    print("         t          h    Re lambda    Im lambda   |h lambda|")
    for one in found:
        size = one["h"] * (one["re"] ** 2 + one["im"] ** 2) ** 0.5
        print(f"{one['t']:10.5g} {one['h']:10.3g} {one['re']:12.5g} {one['im']:12.5g} {size:12.4g}")
    return 0


def exact(path: Path, solve: int, row: int, moments: int) -> list[dict[str, float]]:
    """Return `t, h, re, im` of each eigenvalue at some states of a row.

    Raises:
        ValueError: the run says no problem, or kept no states of this row.
    """
    import numpy as np
    import torch

    from app.own_problem import problem_by_name
    from inspector import open_run
    from solver.spectrum import spectrum

    if not 1 <= moments <= MOST_MOMENTS:
        raise ValueError(f"--moments {moments}: must be 1 to {MOST_MOMENTS}")
    run = open_run(path)
    spec = run.spec
    if not spec or "problem" not in spec:
        raise ValueError(f"run {run.id}: does not say which problem it solved")
    states, steps = run.states(solve, row), run.steps(solve, row)
    if states.empty:
        raise ValueError(f"--row {row}: no states of this row were recorded")
    columns = [name for name in states.columns if name[:1] == "y" and name[1:].isdigit()]
    taken = steps[steps["accepted"] != 0]
    times = states["t"].to_numpy("f8")
    at = np.searchsorted(taken["t"].to_numpy("f8"), times - 1e-12 * np.abs(times))
    inside = at < len(taken)  # the last state has no step that begins there
    place = np.flatnonzero(inside)
    place = place[np.unique(np.linspace(0, len(place) - 1, moments).round().astype(int))]
    problem = problem_by_name(spec["problem"], spec.get("parameters"))
    built = problem.build(
        batch=spec.get("batch"), seed=int(spec.get("seed") or 0),
        spread=spec.get("spread", "default"), dtype=torch.float64,
    )  # fmt: skip
    args = {name: value[row].expand(len(place)) for name, value in built.args.items()}
    y = torch.tensor(states[columns].to_numpy("f8")[place])
    found = spectrum(built.f, torch.tensor(times[place]), y, args)
    h = np.abs(taken["dt"].to_numpy("f8"))[at[place]]
    return [
        {"t": float(t), "h": float(size), "re": float(value.real), "im": float(value.imag)}
        for t, size, values in zip(times[place], h, found.tolist(), strict=True)
        for value in values
    ]
