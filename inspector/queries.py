"""What views ask of a run: rasters, quantiles, shares and differences, small enough to draw."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from inspector import arrays
from inspector.schema import MEANT_TO_END
from inspector.tables import per_instance, solve_line, status_names

if TYPE_CHECKING:
    import pandas as pd

    from inspector.run import Run

Order = Literal["index", "attempts", "finish"]
_LOG_VALUES = ("dt", "error_ratio", "factor")
_KEPT = 32  # results kept for each open run


@dataclass(frozen=True, eq=False)
class Raster:
    """One value of every attempt of every instance, as a picture.

    Args:
        values: `(r, c)` float32, NaN where nothing was running.
        instances: `(r,)` the instance of each row; the first of several where rows are pooled.
        attempt_edges: `(c + 1,)` attempts `edges[j]..edges[j+1]-1` are in column j.
        unit: of the values.
        log: whether the values ask for a logarithmic scale (they are not logarithms themselves).
        pooled: whether a cell stands for several attempts or instances, by the extreme one of them.
    """

    values: np.ndarray
    instances: np.ndarray
    attempt_edges: np.ndarray
    unit: str
    log: bool
    pooled: bool


def raster(
    run: "Run",
    solve: int = 0,
    value: str = "dt",
    rows: int = 512,
    cols: int = 1000,
    attempts: tuple[int, int] | None = None,
    order: Order = "index",
) -> Raster:
    """Return a value over instances and attempts, at most `rows` x `cols` cells.

    Cells that do not fit are pooled so that the extreme one stays visible: the smallest step size
    and the refusal, but the largest of everything else.

    Args:
        value: a column; `dt` is shown by its size, whatever its sign.
        attempts: half-open range, None for all so far.
        order: of the rows: by index, by number of attempts, or by the time of the last attempt,
            most first.

    Raises:
        KeyError: the run has no such solve.
        ValueError: it has no such column, or the order is unknown.
    """
    known = run.columns
    if value not in known:
        raise ValueError(f"value={value!r}: must be one of {', '.join(known)}")
    if order not in ("index", "attempts", "finish"):
        raise ValueError(f"order={order!r}: must be index, attempts or finish")
    key = ("raster", value, rows, cols, attempts, order)
    return _cached(run, solve, key, lambda: _raster(run, solve, value, rows, cols, attempts, order))


def _raster(
    run: "Run",
    solve: int,
    value: str,
    rows: int,
    cols: int,
    attempts: tuple[int, int] | None,
    order: Order,
) -> Raster:
    smallest = value in ("dt", "accepted")
    about = run.columns[value]
    low, high = attempts if attempts is not None else (0, arrays.attempts_stored(run, solve))
    low, high = max(low, 0), min(high, arrays.attempts_stored(run, solve))
    instances = arrays.recorded_instances(run, solve)
    count = max(high - low, 0)
    cells = np.fmin if smallest else np.fmax  # NaN only where all are
    edges = low + _edges(count, cols)
    pooled_attempts = np.full((max(len(edges) - 1, 0), len(instances)), np.nan, "f4")
    for grid in arrays.grids(run, solve, [value], (low, high)):
        if value in grid.columns:
            _pool_into(pooled_attempts, _shown(grid, value), grid.first, edges, cells)
    picture = pooled_attempts.T  # (M, c)
    ranked = _ranked(run, solve, instances, order)
    picture, instances = picture[ranked], instances[ranked]
    row_edges = _edges(len(instances), rows)
    if len(row_edges) - 1 < len(instances):
        picture = cells.reduceat(picture, row_edges[:-1], axis=0)
    return Raster(
        values=np.ascontiguousarray(picture, "f4"),
        instances=instances[row_edges[:-1]],
        attempt_edges=edges,
        unit=str(about["unit"]),
        log=value in _LOG_VALUES,
        pooled=len(edges) - 1 < count or len(row_edges) - 1 < len(ranked),
    )


def _shown(grid: arrays.Grid, value: str) -> np.ndarray:
    """Return `(n, M)` of what is drawn: sizes without their sign, NaN where nothing was running."""
    block = grid.columns[value]
    if value == "dt":
        return np.abs(block)
    if block.dtype.kind == "f":
        return block
    block = block.astype("f4")
    if grid.running is not None:
        block[~grid.running] = np.nan
    return block


def _pool_into(
    target: np.ndarray, block: np.ndarray, first: int, edges: np.ndarray, cells: np.ufunc
) -> None:
    """Pool `(n, M)` attempts from `first` on into the columns `target (c, M)` they belong to."""
    column = np.searchsorted(edges, first, "right") - 1
    last = np.searchsorted(edges, first + len(block) - 1, "right") - 1
    if last - column + 1 == len(block):
        reduced = block
    else:
        starts = np.maximum(edges[column : last + 1] - first, 0)
        reduced = cells.reduceat(block, starts, axis=0)
    cells(target[column : last + 1], reduced, out=target[column : last + 1], casting="same_kind")


def _edges(count: int, most: int) -> np.ndarray:
    """Return the edges of at most `most` bins of whole numbers `0..count-1`, all nearly as wide."""
    bins = max(min(count, most), 0)
    return np.linspace(0, count, bins + 1).round().astype("i8") if bins else np.zeros(1, "i8")


def _ranked(run: "Run", solve: int, instances: np.ndarray, order: Order) -> np.ndarray:
    """Return the positions in `instances`, in the order their rows are shown."""
    if order == "index" or not len(instances):
        return np.arange(len(instances))
    steps = (
        per_instance(run, solve)["n_steps"] if order == "attempts" else last_attempts(run, solve)
    )
    padded = np.zeros(int(instances.max()) + 1, "f8")
    padded[: len(steps)] = steps[: len(padded)]
    return np.argsort(-padded[instances], kind="stable")


def last_attempts(run: "Run", solve: int) -> np.ndarray:
    """Return the number of the last attempt of each instance, `(B,)`, -1 where it had none."""
    found = np.full(run.solve_state(solve).batch, -1, "i8")
    for part in arrays.parts(run, solve, ["attempt", "instance"]):
        instance, attempt = part.columns["instance"], part.columns["attempt"]
        if len(instance) and instance.max() < len(found):
            found[instance] = attempt  # ordered by attempt: the last one stays
    return found


def dt_quantiles(run: "Run", solve: int = 0, points: int = 400) -> "pd.DataFrame":
    """Return quantiles of the step size over the instances that were running.

    Returns:
        `attempt` (the middle of its bin), `q05 q25 q50 q75 q95` in units of time, and `active`, the
        most instances running at once in the bin.

    Raises:
        KeyError: the run has no such solve.
    """
    return _cached(run, solve, ("quantiles", points), lambda: _dt_quantiles(run, solve, points))


def _dt_quantiles(run: "Run", solve: int, points: int) -> "pd.DataFrame":
    import pandas as pd

    stored = arrays.attempts_stored(run, solve)
    edges = _edges(stored, points)
    lines: dict[str, list[float]] = {name: [] for name in ("attempt", *_QUANTILES, "active")}
    waiting: list[tuple[int, np.ndarray]] = []

    def close(upto: int) -> None:
        """Turn the bins that end at or before an attempt into lines."""
        nonlocal waiting
        while len(lines["attempt"]) + 1 < len(edges) and edges[len(lines["attempt"]) + 1] <= upto:
            low, high = edges[len(lines["attempt"])], edges[len(lines["attempt"]) + 1]
            inside = [
                b[max(low - f, 0) : high - f] for f, b in waiting if f < high and f + len(b) > low
            ]
            block = np.concatenate(inside) if inside else np.empty((0, 0))
            there = np.isfinite(block)
            values = block[there]
            cut = np.quantile(values, list(_QUANTILES.values())) if values.size else [np.nan] * 5
            lines["attempt"].append((low + high - 1) / 2)
            for name, quantile in zip(_QUANTILES, cut, strict=True):
                lines[name].append(float(quantile))
            lines["active"].append(int(there.sum(1).max(initial=0)))
            waiting = [(f, b) for f, b in waiting if f + len(b) > high]

    for grid in arrays.grids(run, solve, ["dt"]):
        close(grid.first)
        waiting.append((grid.first, np.abs(grid.columns["dt"])))
    close(stored)
    return pd.DataFrame(lines).astype({"active": "i8"})


_QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


def trace(run: "Run", solve: int, instance: int, points: int = 2000) -> "pd.DataFrame":
    """Return the steps of one instance, thinned so that every peak stays.

    Returns:
        The columns of `Run.steps` without `solve`; of every stretch the rows with the smallest and
        largest `dt` and `error_ratio` and, if there is one, a refused attempt.

    Raises:
        KeyError: the run has no such solve.
    """
    frame = run.steps(solve, instance).drop(columns=["solve"])
    if len(frame) <= points:
        return frame
    keep = thin(np.abs(frame["dt"].to_numpy()), points // 5)
    keep = np.union1d(keep, thin(frame["error_ratio"].to_numpy(), points // 5))
    refused = np.flatnonzero(frame["accepted"].to_numpy() == 0)
    if len(refused) > points // 5:
        refused = refused[np.linspace(0, len(refused) - 1, points // 5).astype("i8")]
    keep = np.union1d(keep, refused)
    return frame.iloc[keep].reset_index(drop=True)


def thin(values: np.ndarray, bins: int) -> np.ndarray:
    """Return places of at most `2 * bins + 2` values: both ends and each bin's extremes."""
    count = len(values)
    if count <= 2 * bins + 2 or bins < 1:
        return np.arange(count)
    size = -(-count // bins)
    padded = np.full(size * bins, np.nan)
    padded[:count] = values
    table = padded.reshape(bins, size)
    start = np.arange(bins) * size
    low = start + np.where(np.isnan(table), np.inf, table).argmin(1)
    high = start + np.where(np.isnan(table), -np.inf, table).argmax(1)
    keep = np.unique(np.concatenate([[0], low, high, [count - 1]]))
    return keep[keep < count]


def failed_rows(run: "Run", solve: int = 0) -> "pd.DataFrame":
    """Return the rows that did not reach their end.

    `instance, status_name, t_reached, component, n_steps, message`.
    """
    import pandas as pd

    known = per_instance(run, solve)
    at = np.flatnonzero((known["status"] > 0) & ~np.isin(known["status"], MEANT_TO_END))
    told = {name: known[name][at] for name in ("t_reached", "component", "n_steps", "message")}
    names = status_names(known["status"][at].astype("i4"))
    return pd.DataFrame({"instance": at, "status_name": names, **told})


def tiles(run: "Run", solve: int = 0) -> dict[str, Any]:
    """Return the numbers that sum a solve up.

    Returns:
        `attempts` (of the batch), `accept_share`, `active` (instances still running),
        `evals_per_second` (of rows of the vector field), `slowest` (instance with the most
        attempts, -1 if none), `refused`, `failed` and `wasted_share` (of evaluated rows that no
        running instance needed); NaN where not known.

    Raises:
        KeyError: the run has no such solve.
    """
    values = per_instance(run, solve)
    line = solve_line(run, solve)
    status, steps = values["status"].astype("i8"), values["n_steps"].astype("i8")
    total, accepted = int(steps.sum()), int(values["n_accepted"].sum())
    live = run.is_live(solve)
    evals, evaluated = float(np.nansum(values["n_f_evals"])), float(line["n_rows_evaluated"])
    seconds = float(line["seconds"])
    active = 0
    if live:
        t_end, direction = values["t1"], np.sign(values["t1"] - values["t0"])
        active = int(((t_end - values["t_reached"]) * direction > 0).sum()) if len(status) else 0
    return {
        "attempts": int(np.nan_to_num(line["n_attempts"])),
        "accept_share": accepted / total if total else float("nan"),
        "active": active,
        "evals_per_second": evaluated / seconds if seconds > 0 else float("nan"),
        "slowest": int(np.argmax(steps)) if total else -1,
        "refused": total - accepted,
        "failed": int(((status > 0) & ~np.isin(status, MEANT_TO_END)).sum()),
        "wasted_share": max(0.0, 1 - evals / evaluated) if evaluated > 0 else float("nan"),
    }


def limiter_shares(run: "Run", solve: int = 0, bins: int = 100) -> "pd.DataFrame":
    """Return what set the size of the steps, as shares of the instances running.

    Returns:
        `attempt` (the middle of its bin) and one column for each label that occurs, shares that add
        up to 1; only `attempt` when the run did not record `limiter`.

    Raises:
        KeyError: the run has no such solve.
    """
    return _cached(run, solve, ("limiter", bins), lambda: _limiter_shares(run, solve, bins))


def _limiter_shares(run: "Run", solve: int, bins: int) -> "pd.DataFrame":
    import pandas as pd

    run.solve_state(solve)
    labels: Mapping[int, str] = run.columns.get("limiter", {}).get("labels", {})
    edges = _edges(arrays.attempts_stored(run, solve), bins)
    size = max(labels, default=-1) + 1
    counts = np.zeros((len(edges) - 1, size), "i8")
    for part in arrays.parts(run, solve, ["attempt", "limiter"]) if size else ():
        code = part.columns.get("limiter")
        if code is not None:
            column = np.searchsorted(edges, part.columns["attempt"], "right") - 1
            good = (code >= 0) & (code < size) & (column >= 0) & (column < len(counts))
            flat = column[good] * size + code[good]
            counts += np.bincount(flat, minlength=counts.size).reshape(counts.shape)
    total = counts.sum(1)
    there = total > 0
    frame = pd.DataFrame({"attempt": ((edges[:-1] + edges[1:] - 1) / 2)[there]})
    for code, label in sorted(labels.items()):
        if code >= 0 and counts[:, code].any():
            frame[label] = counts[there, code] / total[there]
    return frame


def compare(run_a: "Run", run_b: "Run", solve: int = 0) -> "pd.DataFrame":
    """Return the same numbers of two runs side by side.

    Returns:
        `quantity, a, b, difference` (b - a) and `percent` (of a; NaN where a is 0 or a number is
        missing).

    Raises:
        KeyError: one of the runs has no such solve.
    """
    import pandas as pd

    sides = [_quantities(run, solve) for run in (run_a, run_b)]
    lines = []
    for name, a in sides[0].items():
        b = sides[1][name]
        percent = 100 * (b - a) / abs(a) if a else float("nan")
        lines.append((name, a, b, b - a, percent))
    return pd.DataFrame(lines, columns=["quantity", "a", "b", "difference", "percent"])


def _quantities(run: "Run", solve: int) -> dict[str, float]:
    values = per_instance(run, solve)
    line = solve_line(run, solve)
    steps = values["n_steps"].astype("f8")
    total = float(steps.sum())
    return {
        "attempts": total,
        "accepted": float(values["n_accepted"].sum()),
        "refused": float(values["n_rejected"].sum()),
        "accept share": float(values["n_accepted"].sum()) / total if total else float("nan"),
        "evaluations": float(values["n_f_evals"].sum()) if len(steps) else float("nan"),
        "evaluated rows": float(line["n_rows_evaluated"]),
        "attempts of the batch": float(line["n_attempts"]),
        "attempts of the slowest": float(steps.max(initial=0)),
        "attempts of the median": float(np.median(steps)) if len(steps) else float("nan"),
        "failed instances": float((values["status"] > 0).sum()),
        "seconds": float(line["seconds"]),
    }


def _cached(run: "Run", solve: int, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """Keep a result until rows are added to the solve."""
    stored = sum(len(batches) for _, batches in run.places(solve))
    full_key = (*key, solve, stored, run.solve_state(solve).end is not None)
    cache: OrderedDict[Any, Any] = run.cache
    if full_key in cache:
        cache.move_to_end(full_key)
        return cache[full_key]
    result = cache[full_key] = make()
    while len(cache) > _KEPT:
        cache.popitem(last=False)
    return result
