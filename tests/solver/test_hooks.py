"""What hooks see, and that they never steer."""

import pytest
import torch

from solver import PID, Hook, Integral, catalogue, solve_ivp
from solver.errors import InvalidType, UnknownStatistic
from solver.statistics import limiter

ALL = tuple(catalogue.statistics())
TIGHT = {"rtol": 1e-6, "atol": 1e-6}


class Keep(Hook):
    """Keeps everything it is told."""

    def __init__(self, block_size=1, statistics=ALL):
        self.block_size, self.statistics = block_size, statistics
        self.infos, self.blocks, self.ends = [], [], []

    def on_solve_start(self, info):
        self.infos.append(info)

    def on_steps(self, steps):
        self.blocks.append(steps)

    def on_solve_end(self, end):
        self.ends.append(end)

    def column(self, name):
        parts = [
            getattr(block, name) if hasattr(block, name) else block.columns[name]
            for block in self.blocks
        ]
        return torch.cat(parts)


def van_der_pol(t, y):
    mu = torch.tensor([0.5, 10.0])[:, None]
    x, v = y[:, :1], y[:, 1:]
    return torch.cat([v, mu * (1 - x * x) * v - x], dim=1)


def solve(*hooks, **kwargs):
    options = {"t0": 0.0, "t1": 8.0, **TIGHT} | kwargs
    return solve_ivp(van_der_pol, torch.tensor([[2.0, 0.0], [2.0, 0.0]]), hooks=hooks, **options)


def test_counts_in_the_records_are_the_counts_of_the_solution():
    hook = Keep()
    sol = solve(hook)
    running, accepted = hook.column("running"), hook.column("accepted")
    assert torch.equal(running.sum(dim=0), sol.stats.n_steps)
    assert torch.equal(accepted.sum(dim=0), sol.stats.n_accepted)
    assert torch.equal(sol.stats.n_accepted + sol.stats.n_rejected, sol.stats.n_steps)
    assert not (accepted & ~running).any()
    assert len(hook.infos) == len(hook.ends) == 1
    assert hook.ends[0].solution is sol
    assert all(block.solve is hook.infos[0] for block in hook.blocks)


@pytest.mark.parametrize("size", [1, 3, 16, 10_000])
def test_blocks_of_any_size_hold_the_same_numbers(size):
    one, many = Keep(1), Keep(size)
    solve(one)
    solve(many)
    firsts = [block.first for block in many.blocks]
    lengths = [len(block.t) for block in many.blocks]
    assert firsts == [sum(lengths[:i]) for i in range(len(lengths))]
    assert max(lengths) <= size
    for name in ("t", "dt", "error_ratio", "accepted", "running", *ALL):
        torch.testing.assert_close(
            one.column(name), many.column(name), rtol=0, atol=0, equal_nan=True
        )


def test_a_hook_changes_nothing():
    bare, watched = solve(), solve(Keep(16), statistics=ALL)
    assert torch.equal(bare.ys, watched.ys)
    assert torch.equal(bare.stats.n_f_evals, watched.stats.n_f_evals)


def test_accepted_steps_join_up_and_refused_ones_stay():
    hook = Keep()
    sol = solve(hook, t_eval=None)
    t, dt, accepted = hook.column("t"), hook.column("dt"), hook.column("accepted")
    for row in range(2):
        steps = int(sol.stats.n_steps[row])
        for i in range(steps - 1):
            moved = t[i, row] + dt[i, row] if accepted[i, row] else t[i, row]
            assert t[i + 1, row].item() == pytest.approx(moved.item(), abs=1e-12)


def test_backward_steps_are_recorded_with_their_sign():
    hook = Keep()
    sol = solve_ivp(
        lambda t, y: -y, torch.ones(2, 1), [[0.0, 1.0], [1.0, 0.0]], hooks=[hook], **TIGHT
    )
    dt, running = hook.column("dt"), hook.column("running")
    assert (dt[running[:, 0], 0] > 0).all()
    assert (dt[running[:, 1], 1] < 0).all()
    assert sol.success.all()


def test_the_limiter_says_why_a_step_was_not_larger():
    hook = Keep()
    solve(hook, dt_max=0.05, t1=3.0)
    codes = hook.column("limiter")
    running = hook.column("running")
    assert codes[0].tolist() == [limiter.FIRST] * 2
    assert (codes == limiter.DT_MAX).sum() > 10
    for row in range(2):
        last = int(running[:, row].sum()) - 1
        assert codes[last, row] == limiter.SPAN
    dt = hook.column("dt")
    assert dt.max() <= 0.05 * (1 + 1e-9)
    assert (dt[codes == limiter.DT_MAX] - 0.05).abs().max() < 1e-12


def test_the_limiter_names_jumps_and_non_finite_trials():
    hook = Keep()
    solve_ivp(
        lambda t, y: -y.sqrt(), torch.ones(1, 1), t0=0.0, t1=1.9, dt0=1.5, hooks=[hook], **TIGHT
    )
    assert hook.column("limiter")[1].item() == limiter.NON_FINITE
    hook = Keep()
    solve_ivp(lambda t, y: -y, torch.ones(1, 1), t0=0.0, t1=5.0, jump_t=2.0, hooks=[hook], **TIGHT)
    assert (hook.column("limiter") == limiter.JUMP).sum() == 1


def test_the_limiting_component_is_the_one_with_the_error():
    def f(t, y):
        return torch.stack([0 * y[:, 0], torch.cos(20 * t), 0 * y[:, 0]], dim=1)

    hook = Keep()
    solve_ivp(f, torch.zeros(1, 3), t0=0.0, t1=2.0, hooks=[hook], **TIGHT)
    assert (hook.column("limiting_component")[2:] == 1).all()


@pytest.mark.parametrize("controller", [Integral(), PID(kp=0.3, ki=0.4, kd=0.1), "pi42"])
def test_controller_shares_explain_the_factor(controller):
    hook = Keep()
    solve(hook, controller=controller)
    factor, clamped = hook.column("factor"), hook.column("clamped")
    running = hook.column("running")
    free = running & (clamped == 0) & hook.column("accepted")
    assert free.sum() > 20
    shares = sum(hook.column(f"share_{part}") for part in "pid")
    offset = factor.log10() - shares
    spread = offset[free].max() - offset[free].min()
    assert spread < 1e-6  # what is left is the safety factor, the same in every step
    again = hook.column("dt")
    for i in range(len(again) - 1):
        both = running[i] & running[i + 1] & (hook.column("limiter")[i + 1] == limiter.ACCURACY)
        torch.testing.assert_close(again[i + 1][both], (again[i] * factor[i])[both])


def test_a_hook_that_raises_is_reported_once_and_switched_off():
    class Broken(Keep):
        def on_steps(self, steps):
            super().on_steps(steps)
            raise RuntimeError("disk on fire")

    broken, fine = Broken(), Keep()
    with pytest.warns(RuntimeWarning, match="Broken raised RuntimeError: disk on fire") as caught:
        sol = solve(broken, fine)
    assert len(caught) == 1
    assert len(broken.blocks) == 1
    assert len(fine.blocks) == int(sol.stats.n_steps.max())
    assert torch.equal(sol.ys, solve().ys)


def test_a_hook_may_stop_a_solve_with_an_interrupt():
    class Stop(Keep):
        def on_steps(self, steps):
            raise KeyboardInterrupt

    stop, other = Stop(), Keep()
    with pytest.raises(KeyboardInterrupt):
        solve(other, stop)
    assert other.ends[0].solution is None
    assert "KeyboardInterrupt" in other.ends[0].error


def test_a_broken_field_still_ends_the_record():
    def f(t, y):
        if t[0] > 0.5:
            raise ValueError("lost")
        return -y

    hook = Keep(16)
    with pytest.raises(ValueError, match="lost"):
        solve_ivp(f, torch.ones(1, 1), t0=0.0, t1=1.0, hooks=[hook], **TIGHT)
    assert hook.ends[0].error == "ValueError: lost"
    assert hook.blocks  # what was done before is handed over


def test_the_same_hook_twice_sees_everything_once():
    hook = Keep()
    sol = solve(hook, hook)
    assert len(hook.blocks) == int(sol.stats.n_steps.max())


def test_a_users_statistic_becomes_a_column():
    from solver.statistics.base import Statistic

    class Waste(Statistic):
        name, title, unit, help = "waste", "Waste", "1", "Share of refused error."

        def measure(self, attempts):
            return attempts.error_ratio.clamp(min=1) - 1

    hook = Keep(statistics=())
    solve(hook, statistics=[Waste()])
    torch.testing.assert_close(hook.column("waste"), hook.column("error_ratio").clamp(min=1) - 1)


def test_unknown_statistics_and_hooks_are_refused_by_name():
    with pytest.raises(UnknownStatistic, match="did you mean 'limiter'"):
        solve(statistics=["limitr"])
    with pytest.raises(InvalidType, match="hooks holds a str"):
        solve("inspector")


def test_states_are_handed_over_when_asked_for():
    hook = Keep()
    hook.wants_states = True
    sol = solve(hook)
    torch.testing.assert_close(hook.blocks[-1].y[-1], sol.y_reached)


def test_records_of_a_differentiated_solve_are_detached():
    hook = Keep()
    y0 = torch.tensor([[2.0, 0.0], [2.0, 0.0]], requires_grad=True)
    t1 = torch.tensor(2.0, requires_grad=True)
    sol = solve_ivp(van_der_pol, y0, t0=0.0, t1=t1, hooks=[hook], **TIGHT)
    assert sol.ys.requires_grad
    for name in ("t", "dt", "error_ratio", *ALL):
        assert not hook.column(name).requires_grad


def test_interleaved_solves_are_told_apart():
    hook = Keep()

    def outer(t, y):
        inner = solve_ivp(lambda s, z: -z, y, t0=0.0, t1=0.1, hooks=[hook])
        return -inner.ys[:, 0]

    solve_ivp(outer, torch.ones(1, 1), t0=0.0, t1=1.0, hooks=[hook], max_steps=50)
    assert len(hook.infos) == len(hook.ends) > 2
    assert {id(block.solve) for block in hook.blocks} == {id(info) for info in hook.infos}


def test_a_hook_may_change_its_block_size_during_a_solve():
    class Slower(Keep):
        def on_steps(self, steps):
            super().on_steps(steps)
            self.block_size = 1

    hook = Slower(block_size=8)
    sol = solve(hook)
    lengths = [len(block.t) for block in hook.blocks]
    assert lengths[0] == 8
    assert set(lengths[1:]) == {1}
    assert sum(lengths) == int(sol.stats.n_steps.max())
