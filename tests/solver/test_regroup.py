"""Rows that are done are left out of the plain loop, and nothing else changes."""

import pytest
import torch

from solver import Hook, catalogue, solve_ivp

BATCH = 96
RATE = torch.ones(BATCH, dtype=torch.float64)
RATE[::4], RATE[::16] = 6.0, 30.0
Y0 = torch.stack([torch.linspace(0.5, 1.5, BATCH), torch.zeros(BATCH)], dim=1).double()


def oscillator(t, y, args):
    rate = args["rate"]
    return torch.stack((y[:, 1], -rate * rate * y[:, 0] + 0.1 * torch.sin(t)), dim=1)


class Grab(Hook):
    """Keeps every block."""

    wants_states = True

    def __init__(self):
        self.statistics = list(catalogue.statistics())
        self.blocks = []

    def on_steps(self, steps):
        kept = {"t": steps.t, "dt": steps.dt, "ratio": steps.error_ratio, "y": steps.y}
        kept |= {"accepted": steps.accepted, "running": steps.running}
        self.blocks.append(kept | {name: steps.columns[name] for name in steps.columns})

    def all(self):
        return {name: torch.cat([b[name] for b in self.blocks]) for name in self.blocks[0]}


def both(f=oscillator, y0=Y0, **kwargs):
    given = {"args": {"rate": RATE, "name": "w"}, "engine": "plain", "rtol": 1e-5, "atol": 1e-7}
    given |= {"t0": 0.0, "t1": 9.0} | kwargs
    return [solve_ivp(f, y0, regroup=regroup, **given) for regroup in (True, False)]


def assert_same(fewer, whole):
    for name in ("n_steps", "n_accepted", "n_f_evals"):
        assert torch.equal(fewer.stats[name], whole.stats[name]), name
    assert torch.equal(fewer.status, whole.status)
    assert torch.equal(fewer.component, whole.component)
    close = {"rtol": 1e-10, "atol": 1e-10, "equal_nan": True}
    torch.testing.assert_close(fewer.ys, whole.ys, **close)
    torch.testing.assert_close(fewer.t_reached, whole.t_reached, **close)
    torch.testing.assert_close(fewer.last_dt, whole.last_dt, **close)
    assert whole.stats.n_rows_evaluated == whole.stats.n_f_calls * BATCH


def assert_fewer(fewer, whole):
    assert_same(fewer, whole)
    assert fewer.stats.n_rows_evaluated < 0.6 * whole.stats.n_rows_evaluated


@pytest.mark.parametrize("method", ["tsit5", "dopri8", "bosh3", "fehlberg45", "heun_euler"])
@pytest.mark.parametrize("controller", ["pid", "h211b"])
def test_every_method_and_controller_goes_on_as_before(method, controller):
    loose = {"rtol": 1e-3, "atol": 1e-3} if method == "heun_euler" else {}
    assert_fewer(*both(method=method, controller=controller, t1=4.0, **loose))


def test_fixed_steps_of_different_lengths_go_on_as_before():
    ends = torch.where(RATE > 1, 9.0, 0.5)
    assert_fewer(*both(method="rk4", controller=None, dt0=0.005, t1=ends))


def test_outputs_of_each_row_are_where_they_belong():
    times = torch.linspace(0, 1, 23) * torch.linspace(3, 9, BATCH)[:, None]
    times[::3, 11:] = torch.nan
    assert_fewer(*both(t0=None, t1=None, t_eval=times))
    backward = times * torch.where(torch.arange(BATCH) % 2 == 0, 1.0, -1.0)[:, None]
    assert_fewer(*both(t0=None, t1=None, t_eval=backward))


def test_settings_of_each_row_stay_with_it():
    place = torch.arange(BATCH)
    settings = {
        "rtol": torch.logspace(-3, -6, BATCH)[:, None],
        "atol": torch.logspace(-6, -5, 2 * BATCH).reshape(BATCH, 2),
        "dt_max": 0.05 + 0.01 * (place % 7),
        "dt_min": 1e-6 * (1 + place % 3),
        "max_steps": torch.where(place % 32 == 0, 500, 10_000),
    }
    fewer, whole = both(**settings)
    assert_fewer(fewer, whole)
    assert fewer.status.unique().numel() == 2


def test_a_row_that_fails_late_fails_as_before():
    def field(t, y, args):
        rate = args["rate"]
        return torch.where(rate[:, None] > 20, y * y, -rate[:, None] * y)

    fewer, whole = both(field, t1=2.5)
    assert_fewer(fewer, whole)
    assert (fewer.status > 0).any()


def test_hooks_see_all_rows_in_every_attempt():
    records = []
    for regroup in (True, False):
        grab = Grab()
        sol = solve_ivp(
            oscillator, Y0, t0=0.0, t1=9.0, args={"rate": RATE}, engine="plain", hooks=[grab],
            regroup=regroup, dt_max=0.4,
        )  # fmt: skip
        records.append(grab.all())
    fewer, whole = records
    assert fewer.keys() == whole.keys()
    running = whole["running"]
    assert running.shape == (int(sol.stats.n_steps.max()), BATCH)
    assert torch.equal(running, fewer["running"])
    for name, expected in whole.items():
        assert fewer[name].dtype == expected.dtype, name
        torch.testing.assert_close(
            fewer[name][running], expected[running], rtol=1e-7, atol=1e-9, equal_nan=True
        )
    torch.testing.assert_close(fewer["y"], whole["y"], rtol=1e-10, atol=1e-10)
    assert not fewer["accepted"][~running].any()
    assert not fewer["dt"][~running].any()


def held(t, y, args):  # holds a number for each row, which fewer rows cannot use
    return torch.stack((y[:, 1], -RATE * RATE * y[:, 0]), dim=1)


def meeting(t, y, args):  # rows meet, against what is asked of a field, a little
    rate = args["rate"]
    pull = 1e-6 * y[:, 0].mean()
    return torch.stack((y[:, 1], -rate * rate * y[:, 0] + pull), dim=1)


@pytest.mark.parametrize("field", [held, meeting])
def test_a_field_that_needs_all_rows_is_given_all_rows(field):
    fewer, whole = both(field)
    assert_same(fewer, whole)
    assert fewer.stats.n_rows_evaluated >= whole.stats.n_rows_evaluated


def test_a_field_that_writes_into_one_tensor_may_go_on():
    kept = {}

    def field(t, y, args):
        out = kept.setdefault(len(y), torch.empty_like(y))
        out[:, 0] = y[:, 1]
        out[:, 1] = -(args["rate"] ** 2) * y[:, 0]
        return out

    assert_fewer(*both(field))


def test_states_of_any_structure_and_complex_ones_go_on():
    def field(t, y, args):
        return {"a": -args["rate"][:, None, None] * y["a"], "b": 1j * args["rate"] * y["b"]}

    y0 = {"a": torch.ones(BATCH, 2, 2), "b": torch.ones(BATCH, dtype=torch.complex128)}
    fewer, whole = both(field, y0)
    for name in ("a", "b"):
        torch.testing.assert_close(fewer.ys[name], whole.ys[name], rtol=1e-10, atol=1e-10)
    assert torch.equal(fewer.stats.n_steps, whole.stats.n_steps)
    assert fewer.stats.n_rows_evaluated < 0.5 * whole.stats.n_rows_evaluated


def test_gradients_events_and_dense_output_are_as_ever():
    y0 = Y0.clone().requires_grad_()
    both(y0=y0)[0].ys.sum().backward()
    assert y0.grad is not None
    assert bool(y0.grad.isfinite().all())
    fewer, whole = both(dense=True)
    at = torch.linspace(0.1, 8.9, 7)
    torch.testing.assert_close(fewer.dense(at), whole.dense(at), rtol=1e-10, atol=1e-10)
