"""Data frames of a run, each built from as few of its files as can be."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from inspector import arrays
from inspector.schema import COUNTS, STATUS_NAMES, STEP_NAMES
from inspector.store.files import number
from inspector.store.state import spread

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run

_TEXTS = ("method", "controller", "stepping", "dtype")
_SOLVE_COLUMNS = (
    *(
        "solve",
        "batch",
        "dim",
        "method",
        "controller",
        "rtol",
        "atol",
        "stepping",
        "dtype",
        "started",
    ),
    *(
        "seconds",
        "n_attempts",
        "n_f_calls",
        "n_rows_evaluated",
        "n_failed",
        "finished",
        "iteration",
    ),
    *(*COUNTS, "rows", "error"),
)


def steps_frame(
    run: "Run",
    kind: str,
    solve: int | None,
    instances: int | Iterable[int] | None,
    columns: Sequence[str] | None,
    attempts: tuple[int, int] | None,
) -> "pd.DataFrame":
    """See `Run.steps`."""
    import pandas as pd

    if solve is not None:
        run.solve_state(solve)
    numbers = range(run.n_solves) if solve is None else [solve]
    names = list(columns) if columns is not None else _stored_columns(run, numbers, kind)
    instances = instances if instances is None or isinstance(instances, int) else list(instances)
    wanted = [name for name in names if name != "solve"]
    if not wanted:
        wanted = ["attempt"]
    pieces: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    sizes: list[int] = []
    for one in numbers:
        found = arrays.read(run, one, wanted, instances, attempts, kind)
        sizes.append(len(found[wanted[0]]))
        for name, values in found.items():
            if len(values) or len(numbers) == 1:
                pieces[name].append(values)
    data = {
        name: np.concatenate(values) if values else np.empty(0) for name, values in pieces.items()
    }
    data["solve"] = np.repeat(np.asarray(numbers, "i4"), sizes)
    return pd.DataFrame({name: data[name] for name in names}, copy=False)


def states_frame(
    run: "Run", solve: int | None, instances: int | Iterable[int] | None
) -> "pd.DataFrame":
    """See `Run.states`."""
    import pandas as pd

    if solve is not None:
        run.solve_state(solve)
    instances = instances if instances is None or isinstance(instances, int) else list(instances)
    frames = []
    for one in range(run.n_solves) if solve is None else [solve]:
        found = arrays.read(run, one, ["instance", "t", "y"], instances, None, "states")
        y = found["y"]
        if y.ndim == 2:
            order = np.argsort(found["instance"], kind="stable")
            data = {"solve": np.full(len(order), one, "i4"), "instance": found["instance"][order]}
            data["t"] = found["t"][order]
            frames.append(pd.DataFrame(data | {f"y{i}": y[order, i] for i in range(y.shape[1])}))
    if not frames:
        return pd.DataFrame(
            {"solve": np.empty(0, "i4"), "instance": np.empty(0, "i4"), "t": np.empty(0)}
        )
    return pd.concat(frames, ignore_index=True)


def solves_frame(run: "Run") -> "pd.DataFrame":
    """See `Run.solves`."""
    import pandas as pd

    pieces: dict[str, list[Any]] = {name: [] for name in _instance_values(None)}
    sizes = []
    for solve in range(run.n_solves):
        values = per_instance(run, solve)
        sizes.append(len(values["status"]))
        for name, array in values.items():
            pieces[name].append(array)
    data = {name: np.concatenate(found) if found else np.empty(0) for name, found in pieces.items()}
    status = data["status"].astype("i4")
    frame = pd.DataFrame(
        {
            "solve": np.repeat(np.arange(len(sizes), dtype="i4"), sizes),
            "instance": np.concatenate(
                [np.arange(size, dtype="i4") for size in sizes] or [np.empty(0, "i4")]
            ),
            "status": status,
            "status_name": status_names(status),
        }
    )
    for name in ("n_steps", "n_accepted", "n_rejected"):
        frame[name] = data[name].astype("i8")
    frame["n_f_evals"] = _whole(data["n_f_evals"])
    for name in ("t0", "t1", "t_reached"):
        frame[name] = data[name].astype("f8")
    frame["component"] = data["component"].astype("i4")
    frame["message"] = data["message"].astype(object)
    return frame


def per_instance(run: "Run", solve: int) -> dict[str, np.ndarray]:
    """Return what is known of each instance of a solve, `(B,)`; counted if it has not ended."""
    state = run.solve_state(solve)
    rows = state.rows.load() if state.rows is not None else None
    size = state.batch
    if rows is not None and not size:  # its first line is lost
        size = max((len(value) for value in rows.values() if isinstance(value, list)), default=0)
    values = _instance_values(size)
    if rows is None or (not size and not state.start):
        counts = run.live_counts(solve)
        size = len(counts.n_steps)
        values = _instance_values(size)
        values["n_steps"], values["n_accepted"] = counts.n_steps, counts.n_accepted
        values["n_rejected"] = counts.n_steps - counts.n_accepted
        values["t_reached"] = counts.t_reached
        if not run.is_live(solve):
            values["status"][:] = 6  # its process is gone, or the solve was broken off
            values["message"][:] = str((state.end or {}).get("error") or "the recording ends here")
    else:
        for name in ("status", *COUNTS, "t_reached", "component"):
            values[name] = spread(rows.get(name), size, values[name][0] if size else 0.0)
        messages = rows.get("messages")
        for row, text in (messages if isinstance(messages, dict) else {}).items():
            if row.isdigit() and int(row) < size:
                values["message"][int(row)] = str(text)
    values["t0"], values["t1"] = (spread(state.start.get(name), size) for name in ("t0", "t1"))
    return values


def _instance_values(size: int | None) -> dict[str, np.ndarray]:
    size = size or 0
    return {
        "status": np.full(size, -1, "i8"),
        **{name: np.zeros(size, "i8") for name in ("n_steps", "n_accepted", "n_rejected")},
        **{name: np.full(size, np.nan) for name in ("n_f_evals", "t0", "t1", "t_reached")},
        "component": np.full(size, -1, "i8"),
        "message": np.full(size, "", object),
    }


def solve_table(run: "Run") -> "pd.DataFrame":
    """See `Run.solve_table`."""
    import pandas as pd

    frame = pd.DataFrame(
        [solve_line(run, solve) for solve in range(run.n_solves)], columns=_SOLVE_COLUMNS
    )
    whole = (
        "batch",
        "dim",
        "n_attempts",
        "n_f_calls",
        "n_rows_evaluated",
        "n_failed",
        "iteration",
        *COUNTS,
    )
    for name in (*whole, "rows"):
        frame[name] = _whole(frame[name].to_numpy("f8", na_value=np.nan))
    return frame


def solve_line(run: "Run", solve: int) -> dict[str, Any]:
    """Return the line of one solve in `Run.solve_table`; NaN where something is not known."""
    state = run.solve_state(solve)
    start, end = state.start, state.end or {}
    totals = end.get("totals")
    line: dict[str, Any] = {"solve": solve, "batch": state.batch, "dim": _number(start.get("dim"))}
    line |= {name: str(start.get(name, "")) for name in _TEXTS}
    line |= {name: _tolerance(start.get(name)) for name in ("rtol", "atol")}
    line |= {"started": state.started, "seconds": _number(end.get("seconds"))}
    line |= {
        name: _number(end.get(name))
        for name in ("n_attempts", "n_f_calls", "n_rows_evaluated", "n_failed")
    }
    known = totals if isinstance(totals, dict) else {}
    line |= {name: _number(known.get(name)) for name in COUNTS}
    line |= {
        "finished": bool(end) and end.get("error") is None,
        "iteration": _number(start.get("iteration")),
    }
    line |= {"rows": _number(end.get("rows_recorded")), "error": str(end.get("error") or "")}
    if "n_attempts" not in end:  # not ended, or broken off
        counts = run.live_counts(solve)
        line |= {
            "n_attempts": counts.attempts,
            "n_steps": int(counts.n_steps.sum()),
            "n_accepted": int(counts.n_accepted.sum()),
            "n_rejected": int((counts.n_steps - counts.n_accepted).sum()),
            "rows": int(counts.n_steps.sum()),
        }
    last = run.writers.get(state.writer)
    if not end and last is not None and last.heartbeat > state.started:
        line["seconds"] = last.heartbeat - state.started
    return line


def instances_frame(run: "Run", solve: int) -> "pd.DataFrame":
    """See `Run.instances`."""
    import pandas as pd

    known = per_instance(run, solve)
    recorded = arrays.recorded_instances(run, solve)
    extremes = _step_extremes(run, solve, recorded)
    there = recorded < len(known["status"])
    recorded = recorded[there]
    status = known["status"][recorded].astype("i4")
    frame = pd.DataFrame(
        {
            "instance": recorded,
            **{
                name: known[name][recorded].astype("i8")
                for name in ("n_steps", "n_accepted", "n_rejected")
            },
        }
    )
    frame["accept_share"] = frame["n_accepted"] / frame["n_steps"].where(frame["n_steps"] > 0)
    for name, values in extremes.items():
        frame[name] = values[there]
    frame["t_reached"] = known["t_reached"][recorded].astype("f8")
    frame["status_name"] = status_names(status)
    frame["component"] = known["component"][recorded].astype("i4")
    parameters = run.meta.get("parameters")
    for name, values in (parameters if isinstance(parameters, dict) else {}).items():
        if isinstance(values, list) and len(values) == len(known["status"]) and name not in frame:
            frame[name] = np.array([number(value) for value in values])[recorded]
    order = np.lexsort((frame["instance"], -frame["n_steps"]))
    return frame.iloc[order].reset_index(drop=True)


def _step_extremes(run: "Run", solve: int, recorded: np.ndarray) -> dict[str, np.ndarray]:
    """Return `dt_min, dt_median, dt_max` of accepted steps and `max_error_ratio`, `(M,)` each."""
    count, attempts = len(recorded), arrays.attempts_stored(run, solve)
    dtype = "f8" if count * attempts < 1 << 25 else "f4"  # for the memory's sake
    sizes = np.full((attempts, count), np.nan, dtype)
    ratio = np.full(count, -np.inf)
    for grid in arrays.grids(run, solve, ["dt", "error_ratio", "accepted"]):
        taken = grid.columns["accepted"] != 0
        here = slice(grid.first, grid.first + len(taken))
        np.copyto(sizes[here], np.abs(grid.columns["dt"]), where=taken, casting="same_kind")
        worst = np.nan_to_num(grid.columns["error_ratio"], nan=np.inf, posinf=np.inf)
        if grid.running is not None:
            worst[~grid.running] = -np.inf
        np.maximum(ratio, worst.max(axis=0, initial=-np.inf), out=ratio)
    ranked = np.ascontiguousarray(sizes.T)
    ranked.sort(axis=1)  # NaN goes last
    taken = np.isfinite(ranked).sum(axis=1)
    row, last = np.arange(count), np.maximum(taken - 1, 0)

    def at(place: np.ndarray) -> np.ndarray:
        return ranked[row, place].astype("f8") if attempts else np.full(count, np.nan)

    return {
        "dt_min": at(np.zeros(count, int)),
        "dt_median": (at(last // 2) + at(np.minimum((last + 1) // 2, last))) / 2,
        "dt_max": at(last),
        "max_error_ratio": np.where(np.isneginf(ratio), np.nan, ratio),
    }


def scalars_frame(run: "Run") -> "pd.DataFrame":
    """See `Run.scalars`."""
    import pandas as pd

    sessions = run.sessions()
    rows = [
        (
            number(r.get("iteration")),
            str(r.get("name")),
            number(r.get("value")),
            number(r.get("time")),
            sessions[w],
        )
        for w, r in run.raw_scalars()
    ]
    frame = pd.DataFrame(rows, columns=["iteration", "name", "value", "time", "session"])
    frame["iteration"] = frame["iteration"].where(np.isfinite(frame["iteration"].astype("f8")), -1)
    frame = frame.astype({"iteration": "i8", "value": "f8", "time": "f8", "session": "i4"})
    return frame.sort_values(["iteration", "time", "session"], kind="stable", ignore_index=True)


def events_frame(run: "Run") -> "pd.DataFrame":
    """See `Run.events`."""
    import pandas as pd

    frame = pd.DataFrame(
        [{k: v for k, v in record.items() if k != "crc"} for record in run.raw_events()]
    )
    for name in ("time", "kind", "text", "writer"):
        if name not in frame:
            frame[name] = pd.Series(dtype="f8" if name == "time" else "str")
    first = ["time", "kind", "text", "writer"]
    return frame[[*first, *(name for name in frame.columns if name not in first)]]


def summary(run: "Run") -> dict[str, Any]:
    """See `Run.summary`."""
    spec = run.spec or {}
    controller = spec.get("controller")
    first = run.settings(0) if run.n_solves else {}
    name = controller.get("name") if isinstance(controller, dict) else controller
    seconds = [
        _number((run.solve_state(solve).end or {}).get("seconds")) for solve in range(run.n_solves)
    ]
    return {
        "run": run.id,
        "status": run.status,
        "problem": str(spec.get("problem") or ""),
        "method": str(spec.get("method") or first.get("method") or ""),
        "controller": str(name or first.get("controller") or ""),
        "created": number(run.meta.get("created")),
        "seconds": float(np.nansum(seconds)) if seconds else 0.0,
        "solves": run.n_solves,
        "rows": sum(writer.count("rows") for writer in run.writers.values()),
        "bytes": _folder_bytes(run),
        "note": str(run.meta.get("note") or ""),
        "damaged": bool(run.damage),
    }


def status_names(status: np.ndarray) -> np.ndarray:
    """Return the name of each status code."""
    names = np.array([STATUS_NAMES.get(code, f"STATUS_{code}") for code in range(-1, 16)], object)
    return names[np.clip(status, -1, 14) + 1]


def _stored_columns(run: "Run", numbers: Sequence[int], kind: str) -> list[str]:
    found = dict.fromkeys(STEP_NAMES)
    for solve in numbers:
        for segment, _ in run.places(solve, kind):
            found |= dict.fromkeys(segment.columns)
    return list(found)


def _folder_bytes(run: "Run") -> int:
    total = 0
    for file in run.path.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total


def _whole(values: np.ndarray) -> Any:
    """Return whole numbers of which some may be missing."""
    import pandas as pd

    values = values.astype("f8")
    missing = ~np.isfinite(values)
    return (
        pd.array(np.where(missing, 0, values).astype("i8"), dtype="Int64")
        if not missing.any()
        else (pd.arrays.IntegerArray(np.where(missing, 0, values).astype("i8"), missing))
    )


def _number(value: Any) -> float:
    return (
        number(value) if value is not None and not isinstance(value, list | dict) else float("nan")
    )


def _tolerance(value: Any) -> float:
    """Return a tolerance as one number: the smallest where instances or components differ."""
    flat = np.array(
        [number(item) for item in np.asarray(value, object).ravel()] if value is not None else []
    )
    return float(np.nanmin(flat)) if flat.size and not np.isnan(flat).all() else float("nan")
