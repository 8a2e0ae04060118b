"""What views ask for, against the plain way to compute it."""

import numpy as np
import pytest
import torch

from inspector import Inspector, open_run, queries
from inspector.queries import thin
from inspector.synthetic import write_synthetic_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    return open_run(write_synthetic_run(path, batch=12, solves=2, failed=(3,), attempts=700))


def plain_grid(run, solve, column):
    """Return a column as `(B, attempts)`, NaN where nothing was running."""
    steps = run.steps(solve)
    grid = np.full((run.solve_state(solve).batch, steps["attempt"].max() + 1), np.nan)
    grid[steps["instance"].to_numpy(), steps["attempt"].to_numpy()] = steps[column]
    return np.abs(grid) if column == "dt" else grid


@pytest.mark.parametrize("value", ["dt", "error_ratio", "accepted", "limiter", "share_i"])
def test_a_raster_that_fits_is_the_values_themselves(run, value):
    found = queries.raster(run, 1, value)
    assert np.array_equal(found.values, plain_grid(run, 1, value).astype("f4"), equal_nan=True)
    assert found.values.dtype == np.float32
    assert found.instances.tolist() == list(range(12))
    assert found.attempt_edges.tolist() == list(range(found.values.shape[1] + 1))
    assert not found.pooled
    assert found.log == (value in ("dt", "error_ratio"))


@pytest.mark.parametrize("value", ["dt", "error_ratio", "accepted"])
@pytest.mark.parametrize(("rows", "cols"), [(5, 60), (12, 7), (1, 1), (4, 10_000)])
def test_a_pooled_raster_keeps_the_extreme_cell(run, value, rows, cols):
    found = queries.raster(run, 0, value, rows=rows, cols=cols)
    grid = plain_grid(run, 0, value)
    assert found.values.shape == (min(rows, 12), min(cols, grid.shape[1]))
    edges = found.attempt_edges
    assert (edges[0], edges[-1]) == (0, grid.shape[1])
    starts = [*found.instances, 12]
    pool = np.fmin if value in ("dt", "accepted") else np.fmax
    for i in range(len(starts) - 1):
        for j in range(len(edges) - 1):
            cell = grid[starts[i] : starts[i + 1], edges[j] : edges[j + 1]]
            expected = pool.reduce(cell, axis=None)
            assert np.array_equal(found.values[i, j], np.float32(expected), equal_nan=True)
    extreme = np.nanmin if value in ("dt", "accepted") else np.nanmax
    assert extreme(found.values) == np.float32(extreme(grid))


def test_a_part_of_the_attempts_can_be_asked_for(run):
    found = queries.raster(run, 0, "dt", attempts=(21, 105), cols=1000)
    assert np.array_equal(
        found.values, plain_grid(run, 0, "dt")[:, 21:105].astype("f4"), equal_nan=True
    )
    assert found.attempt_edges[[0, -1]].tolist() == [21, 105]
    assert queries.raster(run, 0, "dt", attempts=(5000, 6000)).values.shape == (12, 0)


def test_rows_can_be_ordered(run):
    counts = run.solves().query("solve == 0")["n_steps"].to_numpy()
    by_attempts = queries.raster(run, 0, order="attempts")
    assert (np.diff(counts[by_attempts.instances]) <= 0).all()
    last = run.steps(0).groupby("instance")["attempt"].max().to_numpy()
    by_finish = queries.raster(run, 0, order="finish")
    assert (np.diff(last[by_finish.instances]) <= 0).all()
    grid = plain_grid(run, 0, "dt").astype("f4")
    assert np.array_equal(by_attempts.values, grid[by_attempts.instances], equal_nan=True)


def test_a_subset_of_instances_has_rows_of_its_own(tmp_path, feed):
    one = feed(batch=9, attempts=40)
    with Inspector(tmp_path / "run", instances=[7, 2, 4], statistics=()) as inspector:
        one.into(inspector)
    found = queries.raster(open_run(tmp_path / "run"), 0, "error_ratio")
    assert found.instances.tolist() == [2, 4, 7]
    ratio = torch.cat([block.error_ratio for block in one.blocks])
    running = torch.cat([block.running for block in one.blocks])
    expected = torch.where(running, ratio, torch.nan)[:, [2, 4, 7]].T.float().numpy()
    assert np.array_equal(found.values, expected[:, : found.values.shape[1]], equal_nan=True)


def test_dropped_blocks_leave_a_gap(tmp_path, feed):
    one = feed(batch=4, attempts=64, block=8)
    with Inspector(tmp_path / "run", statistics=()) as inspector:
        inspector.on_solve_start(one.info)
        for block in one.blocks[:2] + one.blocks[3:]:
            inspector.on_steps(block)
    found = queries.raster(open_run(tmp_path / "run"), 0, "dt")
    assert np.isnan(found.values[:, 16:24]).all()
    assert np.isfinite(found.values[:, 24]).all()


@pytest.mark.parametrize("points", [1, 7, 50, 10_000])
def test_quantiles_are_those_of_the_running_instances(run, points):
    found = queries.dt_quantiles(run, 0, points)
    grid = plain_grid(run, 0, "dt")
    edges = np.linspace(0, grid.shape[1], min(points, grid.shape[1]) + 1).round().astype(int)
    assert len(found) == len(edges) - 1
    for line, low, high in zip(found.to_dict("records"), edges[:-1], edges[1:], strict=True):
        cell = grid[:, low:high]
        expected = np.nanquantile(cell, [0.05, 0.25, 0.5, 0.75, 0.95])
        assert [line[name] for name in ("q05", "q25", "q50", "q75", "q95")] == pytest.approx(
            expected
        )
        assert line["active"] == np.isfinite(cell).sum(0).max()
        assert line["attempt"] == (low + high - 1) / 2


def test_shares_of_limits_add_up(run):
    found = queries.limiter_shares(run, 0, bins=40)
    labels = [name for name in found.columns if name != "attempt"]
    assert {"accuracy", "first step"} <= set(labels)
    assert found[labels].sum(axis=1).to_numpy() == pytest.approx(1.0)
    steps = run.steps(0)
    edges = np.linspace(0, steps["attempt"].max() + 1, 41).round().astype(int)
    mine = steps[steps["attempt"] < edges[1]]
    assert found["first step"][0] == pytest.approx((mine["limiter"] == 7).mean())


def test_shares_of_limits_are_empty_without_the_statistic(tmp_path):
    path = write_synthetic_run(tmp_path / "run", batch=2, attempts=20, statistics=False)
    assert queries.limiter_shares(open_run(path)).columns.tolist() == ["attempt"]


def test_a_trace_keeps_every_peak(run):
    full = run.steps(0, 11).drop(columns="solve")
    assert queries.trace(run, 0, 11, points=10_000).equals(full)
    found = queries.trace(run, 0, 11, points=100)
    assert len(found) < 120 < len(full)
    for column in ("dt", "error_ratio"):
        assert (found[column].min(), found[column].max()) == (
            full[column].min(),
            full[column].max(),
        )
    assert found["attempt"].is_monotonic_increasing
    assert found["attempt"].iloc[[0, -1]].tolist() == full["attempt"].iloc[[0, -1]].tolist()


def test_thinning_keeps_ends_and_extremes():
    values = np.sin(np.linspace(0, 9, 1001)) + np.where(np.arange(1001) == 437, 5.0, 0.0)
    values[600:640] = np.nan
    keep = thin(values, 20)
    assert len(keep) <= 42
    assert {0, 437, 1000, int(np.nanargmin(values))} <= set(keep.tolist())
    assert thin(values[:5], 20).tolist() == [0, 1, 2, 3, 4]


def test_tiles_sum_a_solve_up(run):
    found = queries.tiles(run, 0)
    solves = run.solves().query("solve == 0")
    assert found["attempts"] == solves["n_steps"].max()
    assert found["accept_share"] == pytest.approx(
        solves["n_accepted"].sum() / solves["n_steps"].sum()
    )
    assert found["refused"] == solves["n_rejected"].sum()
    assert found["failed"] == 1
    assert found["active"] == 0
    assert found["slowest"] == int(solves["n_steps"].to_numpy().argmax())
    evaluated = int(run.solve_table()["n_rows_evaluated"][0])
    assert found["wasted_share"] == pytest.approx(1 - solves["n_f_evals"].sum() / evaluated)


def test_tiles_of_a_live_solve_count_who_is_left(tmp_path):
    seen = []

    def look(writer):
        writer.flush()
        seen.append(queries.tiles(open_run(writer.path), 0))

    write_synthetic_run(tmp_path / "run", batch=8, on_block=look)
    active = [one["active"] for one in seen]
    assert active[0] == 8
    assert active == sorted(active, reverse=True)
    assert active[-1] <= 1
    assert np.isnan(seen[0]["wasted_share"])


def test_two_runs_are_compared_in_numbers(tmp_path, run):
    other = open_run(write_synthetic_run(tmp_path / "b", batch=12, attempts=300))
    found = queries.compare(run, other).set_index("quantity")
    a, b = (one.solves().query("solve == 0")["n_steps"].sum() for one in (run, other))
    line = found.loc["attempts"]
    assert line.tolist() == [a, b, b - a, pytest.approx(100 * (b - a) / a)]
    assert found.loc["failed instances", ["a", "b"]].tolist() == [1, 0]
    assert np.isnan(
        queries.compare(other, other).set_index("quantity").loc["failed instances", "percent"]
    )


def test_a_result_is_kept_until_the_solve_grows(tmp_path, feed):
    one = feed(attempts=64)
    with Inspector(tmp_path / "run") as inspector:
        one.into(inspector, upto=2, end=False)
        inspector.flush()
        run = open_run(tmp_path / "run")
        first = queries.raster(run, 0)
        assert queries.raster(run, 0) is first
        inspector.on_steps(one.blocks[2])
        inspector.flush()
        run.refresh()
        assert queries.raster(run, 0).values.shape[1] > first.values.shape[1]


def test_wrong_questions_are_named(run):
    with pytest.raises(ValueError, match=r"value='size': must be one of .*dt"):
        queries.raster(run, 0, "size")
    with pytest.raises(ValueError, match="order='random'"):
        queries.raster(run, 0, order="random")
    for ask in (queries.raster, queries.dt_quantiles, queries.tiles, queries.limiter_shares):
        with pytest.raises(KeyError, match="solve=9"):
            ask(run, 9)


def test_instances_are_ranked_by_attempts(run):
    found = run.instances(0)
    assert (np.diff(found["n_steps"]) <= 0).all()
    steps = run.steps(0)
    taken = steps[steps["accepted"] == 1].groupby("instance")["dt"]
    indexed = found.set_index("instance").sort_index()
    for name, expected in (
        ("dt_min", taken.min()),
        ("dt_median", taken.median()),
        ("dt_max", taken.max()),
    ):
        assert indexed[name].to_numpy() == pytest.approx(expected.to_numpy())
    assert indexed["max_error_ratio"].to_numpy() == pytest.approx(
        steps.groupby("instance")["error_ratio"].max().to_numpy()
    )
    assert indexed["mu"].to_numpy() == pytest.approx(np.geomspace(0.5, 50, 12))
    assert indexed["status_name"].tolist().count("NON_FINITE") == 1


def test_an_error_ratio_that_is_not_finite_is_the_largest(tmp_path, feed):
    one = feed(batch=2, attempts=20)
    one.blocks[0].error_ratio[3] = torch.tensor([torch.nan, torch.inf])
    with Inspector(tmp_path / "run") as inspector:
        one.into(inspector)
    run = open_run(tmp_path / "run")
    assert np.isinf(run.instances(0)["max_error_ratio"]).all()
    assert np.isnan(run.steps(0, 0, attempts=(3, 4))["error_ratio"]).all()
