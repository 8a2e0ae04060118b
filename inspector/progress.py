"""A training as tables: one line an iteration, one line a rank, built from the small files."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from inspector.schema import QUANTILES
from inspector.store.files import number
from inspector.store.state import SolveState, rank_of

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run

_SPREAD = ("min", "q05", "q25", "median", "q75", "q95", "max")
assert len(_SPREAD) == len(QUANTILES)
FIRST_COLUMNS = ("iteration", "session", "rank", "current", "time", "solve", "solves", "rows")
_BYTES = ("checkpoint_bytes", "graph_bytes", "gradient_bytes", "allocated_bytes")

Line = dict[str, Any]
Logged = tuple[list[int], list[int]]  # solves begun before, ascending; iteration they belong to
NONE: Logged = ([], [])
NOWHERE = -(1 << 62)


def iterations_frame(run: "Run") -> "pd.DataFrame":
    """See `Run.iterations`."""
    import pandas as pd

    sessions = run.sessions()
    found: dict[str, dict[int, Line]] = {token: {} for token in sessions}
    told: dict[str, Logged] = {}
    for token, record in run.raw_iterations():
        at, solves = record.get("iteration"), record.get("solves")
        if isinstance(solves, list) and len(solves) == 2 and isinstance(at, int):
            ends, iterations = told.setdefault(token, ([], []))
            if int(number(solves[0]) or 0) > (ends[-1] if ends else 0):
                ends.append(int(solves[0]))  # what began between iterations belongs to none
                iterations.append(NOWHERE)
            ends.append(int(number(solves[1]) or 0))
            iterations.append(at)
        values = record.get("values")
        if isinstance(at, int) and isinstance(values, dict):
            line = found[token].setdefault(at, {})
            line["time"] = number(record.get("time"))
            line.update((name, number(value)) for name, value in values.items())
    own = {*FIRST_COLUMNS, "adjoint", "non_finite"}
    logged: dict[str, Logged] = {}
    for token, record in run.raw_scalars():
        at = record.get("iteration")
        if not isinstance(at, int):
            continue
        line = found[token].setdefault(at, {})
        line.setdefault("time", number(record.get("time")))
        name, value = str(record.get("name")), number(record.get("value"))
        line[f"{name} (logged)" if name in own else name] = value
        if not isfinite(value):
            line["non_finite"] = line.get("non_finite", 0) + 1
        solves, iterations = logged.setdefault(token, ([], []))
        solves.append(int(number(record.get("solve")) or 0))
        iterations.append(at)
    for token, lines in run.lines.items():
        # who says where iterations begin and end does so for all solves
        places = told[token] if token in told else logged.get(token, NONE)
        _add_solves(run, token, lines.solves, found[token], places)
    rows = [
        {"iteration": at, "session": sessions[token], "rank": rank_of(token)} | line
        for token, lines in found.items()
        for at, line in lines.items()
    ]
    frame = pd.DataFrame(rows)
    for name in (*FIRST_COLUMNS, "loss"):
        if name not in frame:
            frame[name] = pd.Series(np.nan, index=frame.index, dtype="f8")
    if "adjoint" in frame:
        frame["adjoint"] = frame["adjoint"].fillna("")
    frame = frame.astype(dict.fromkeys(("iteration", "session", "rank"), "i8"))
    frame["current"] = _is_current(frame)
    first = [name for name in (*FIRST_COLUMNS, "loss") if name in frame]
    frame = frame[[*first, *(name for name in frame.columns if name not in first)]]
    return frame.sort_values(["iteration", "session", "rank"], kind="stable", ignore_index=True)


def _is_current(frame: "pd.DataFrame") -> np.ndarray:
    """Whether no later session has taken the iteration over, `(n,)`.

    A session that resumes at some iteration replaces all that earlier ones did from there on, also
    what it did not come to itself.
    """
    current = np.ones(len(frame), bool)
    iteration = frame["iteration"].to_numpy()
    session, rank = frame["session"].to_numpy(), frame["rank"].to_numpy()
    for one in np.unique(rank):
        mine = rank == one
        for later in np.unique(session[mine])[1:]:
            begins = iteration[mine & (session == later)].min()
            current[mine & (session < later) & (iteration >= begins)] = False
    return current


def _add_solves(
    run: "Run",
    token: str,
    solves: Mapping[int, SolveState],
    lines: dict[int, Line],
    logged: Logged,
) -> None:
    """Add what the solves of a writer took to the lines of their iterations."""
    for local, state in solves.items():
        if not state.start:
            continue
        at = iteration_of(state, solves, logged)
        if at is None:
            continue
        line = lines.setdefault(at, {})
        forward = state.start.get("backward_of") is None
        kind = "forward" if forward else "backward"
        if forward:
            line.setdefault("solve", run.number_of(token, local))
            line["solves"] = line.get("solves", 0) + 1
            line["rows"] = line.get("rows", 0) + state.batch
            line["adjoint"] = str(state.start.get("adjoint", ""))
        line.setdefault("time", state.started)
        _add_counts(line, kind, state.end or {})
        for each in state.backward:
            _add_backward(line, each)


def iteration_of(
    state: SolveState,
    solves: Mapping[int, SolveState],
    logged: Logged = NONE,
) -> int | None:
    """Return the iteration a solve belongs to: that of its forward solve, or the next one logged.

    Args:
        logged: solves begun before each number logged, or before the end of each iteration.
    """
    forward = state.start.get("backward_of")
    if isinstance(forward, int) and forward in solves:
        state = solves[forward]
    at = state.start.get("iteration")
    if isinstance(at, int):
        return at
    place = bisect_right(logged[0], state.local)
    found = logged[1][place] if place < len(logged[1]) else NOWHERE
    return None if found == NOWHERE else found


def _add_counts(line: Line, kind: str, end: Mapping[str, Any]) -> None:
    """Add what the last line of a solve tells.

    Spreads of several solves are added, as if a row that is slow in one were slow in all of them.
    """
    totals = end.get("totals")
    if not isinstance(totals, dict):
        return
    _sum(line, f"{kind}_nfe", totals.get("n_f_evals"))
    _sum(line, f"{kind}_steps", totals.get("n_steps"))
    _sum(line, f"{kind}_refused", totals.get("n_rejected"))
    _sum(line, f"{kind}_failed", end.get("n_failed"))
    _sum(line, f"{kind}_calls", end.get("n_f_calls"))
    _sum(line, f"{kind}_solve_seconds", end.get("seconds"))
    quantiles = end.get("quantiles")
    for name, counted in (("steps", "n_steps"), ("nfe", "n_f_evals")):
        spread = quantiles.get(counted) if isinstance(quantiles, dict) else None
        if not isinstance(spread, list) or len(spread) != len(_SPREAD):
            continue
        for word, value in zip(_SPREAD, spread, strict=True):
            _sum(line, f"{kind}_{name}_{word}", value)
    line["memory_bytes"] = max(line.get("memory_bytes", 0.0), number(end.get("memory_bytes")))


def _add_backward(line: Line, record: Mapping[str, Any]) -> None:
    """Add what a backward pass told."""
    _sum(line, "backward_pass_seconds", record.get("seconds"))
    _sum(line, "backward_pass_calls", record.get("n_f_calls"))
    _sum(line, "vjps", record.get("n_vjps"))
    for name in _BYTES:
        value = record.get(name)
        if value is not None:
            line[name] = max(line.get(name, 0.0), number(value))


def _sum(line: Line, name: str, value: Any) -> None:
    found = value if type(value) is int else number(value)
    if found == found:
        line[name] = line[name] + found if name in line else float(found)


def ranks_frame(run: "Run") -> "pd.DataFrame":
    """See `Run.ranks`."""
    import pandas as pd

    table = run.iterations()
    sessions = run.sessions()
    behind: dict[str, list[float]] = {}
    if "forward_seconds" in table and table["rank"].nunique() == 1:
        median = float(table["forward_seconds"].median())
        behind[str(table["rank"].iloc[0])] = [median, float("nan")]
    elif "forward_seconds" in table:
        wide = table.pivot_table(
            index=["session", "iteration"], columns="rank", values="forward_seconds"
        )
        whole = wide.dropna()
        slowest = whole.idxmax(axis=1)
        for rank in whole.columns:
            share = float((slowest == rank).mean()) if len(whole) else float("nan")
            median = float(whole[rank].median()) if len(whole) else float("nan")
            behind[str(rank)] = [median, share if len(whole.columns) > 1 else float("nan")]
    lines = []
    for token, session in sorted(sessions.items(), key=lambda item: (item[1], rank_of(item[0]))):
        writer, rank = run.writers.get(token), rank_of(token)
        mine = table[(table["session"] == session) & (table["rank"] == rank)]
        median, share = behind.get(str(rank), [float("nan")] * 2)
        record = {} if writer is None else writer.record
        lines.append(
            {
                "rank": rank,
                "session": session,
                "writer": token,
                "host": str(record.get("host", "")).partition(" ")[0],
                "status": "interrupted" if writer is None else writer.status,
                "started": number(record.get("started")),
                "last_sign": float("nan") if writer is None else writer.last_sign,
                "world_size": int(number(record.get("world_size", 1)) or 1),
                "iterations": len(mine),
                "first_iteration": mine["iteration"].min() if len(mine) else -1,
                "last_iteration": mine["iteration"].max() if len(mine) else -1,
                "forward_seconds": median,
                "slowest_share": share,
            }
        )
    columns = [
        *("rank", "session", "writer", "host", "status", "started", "last_sign", "world_size"),
        *("iterations", "first_iteration", "last_iteration", "forward_seconds", "slowest_share"),
    ]
    return pd.DataFrame(lines, columns=columns)


def seen_samples(run: "Run", known: int = 0) -> Iterator[tuple[int, int, list[Any], Any]]:
    """Yield `(solve, iteration, ids, rows line)` of forward solves whose samples are known.

    Args:
        known: solves before this one are left out.
    """
    for solve in range(known, run.n_solves):
        state = run.solve_state(solve)
        if state.samples is None or state.rows is None or "backward_of" in state.start:
            continue
        told, rows = state.samples.load(), state.rows.load()
        if told is None or rows is None or not isinstance(told.get("ids"), list):
            continue
        at = state.start.get("iteration")
        yield solve, at if isinstance(at, int) else -1, told["ids"], rows
