"""Problems with a loss: their data, their networks, and that they learn."""

from typing import Any

import pytest
import torch

from sample_problems._energy import EnergyNetwork, EnergyProblem
from sample_problems._flow import FlowField
from sample_problems.base import LossProblem
from sample_problems.cahn_hilliard_hnn import CahnHilliardEnergy
from sample_problems.catalogue import problem_by_name, problems
from sample_problems.digits_classifier import digits
from sample_problems.kdv_hnn import KdVEnergy

NAMES = [name for name, cls in problems().items() if issubclass(cls, LossProblem)]
ENERGY = [name for name in NAMES if issubclass(problems()[name], EnergyProblem)]


def loss_problem(name, **parameters) -> LossProblem:
    problem = problem_by_name(name, parameters)
    assert isinstance(problem, LossProblem)
    return problem


def energy_problem(name, **parameters) -> EnergyProblem:
    problem = loss_problem(name, **parameters)
    assert isinstance(problem, EnergyProblem)
    return problem


def energy_of(problem):
    assert isinstance(problem, CahnHilliardEnergy | KdVEnergy)
    return problem.energy


def cells(model):
    assert isinstance(model, EnergyNetwork)
    return model.cells


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def gradient(problem, model, batch, mode):
    loss = problem.loss(problem.solve(model, batch, adjoint=mode)[-1].ys, batch)
    return torch.autograd.grad(loss, list(model.parameters()))


def test_all_that_learn_are_found():
    wanted = {"neural_spiral", "flow_two_moons", "flow_gaussians", "kdv_hnn", "cahn_hilliard_hnn"}
    wanted |= {"digits_classifier", "latent_ode", "robertson_rates"}
    assert set(NAMES) >= wanted


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_fixes_data_and_network_in_every_dtype_and_leaves_others_alone(name):
    problem = loss_problem(name)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    wide, again = problem.draw(6, generator(1)), problem.draw(6, generator(1))
    narrow, other = problem.draw(6, generator(1), torch.float32), problem.draw(6, generator(2))
    assert torch.equal(wide.y0, again.y0)
    assert torch.equal(narrow.y0, wide.y0.float())
    assert not torch.equal(wide.y0, other.y0)
    assert wide.y0.shape == (6, problem.dim)
    assert problem.test_batch().y0.dtype == torch.float64
    models = problem.model(3), problem.model(3), problem.model(4)
    first, same, different = ([*model.parameters()] for model in models)
    assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(first, different, strict=True))
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_learns_and_exact_modes_agree(name):
    problem = loss_problem(name)
    model, batch = problem.model(), problem.draw(4, generator())
    wanted = gradient(problem, model, batch, "backprop")
    assert any(g.abs().max() > 0 for g in wanted)
    for got, want in zip(gradient(problem, model, batch, "symplectic"), wanted, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-11 * want.abs().max().item())


@pytest.mark.parametrize(("name", "iterations"), [("neural_spiral", 30), ("cahn_hilliard_hnn", 40)])
def test_training_makes_the_test_measure_smaller(name, iterations):
    problem = loss_problem(name)
    model, numbers = problem.model(), generator()
    before = problem.evaluate(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=problem.learning_rate)
    for _ in range(iterations):
        batch = problem.draw(16, numbers)
        optimizer.zero_grad()
        problem.loss(problem.solve(model, batch, adjoint="symplectic")[-1].ys, batch).backward()
        optimizer.step()
    assert problem.evaluate(model) < 0.7 * before


def test_a_factor_on_the_field_is_a_factor_on_time():
    problem = loss_problem("neural_spiral")
    model, batch = problem.model(), problem.draw(3, generator())
    options: Any = {"rtol": 1e-9, "atol": 1e-9}
    speed = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    (fast,) = problem.solve(model, batch, speed=speed, **options)
    assert batch.t_eval.shape == (3, 8)
    batch = type(batch)(batch.y0, batch.t_eval * speed[:, None], batch.target)
    (plain,) = problem.solve(model, batch, **options)
    torch.testing.assert_close(fast.ys, plain.ys, rtol=1e-6, atol=1e-7)
    (whole,) = loss_problem("neural_spiral", speed=2.0).solve(model, batch, **options)
    assert not torch.allclose(whole.ys, plain.ys)


class TestFlows:
    """Continuous normalizing flows."""

    def field(self):
        torch.manual_seed(0)
        return FlowField(8, 2).double()

    def state(self):
        return torch.randn(5, 3, dtype=torch.float64), torch.rand(5, dtype=torch.float64)

    def test_the_rate_of_the_density_is_the_trace_of_the_jacobian(self):
        field, (y, t) = self.field(), self.state()
        jacobian = torch.func.vmap(
            torch.func.jacrev(lambda y, t: field(t[None], y[None])[0, :2]), randomness="error"
        )(y, t)
        trace = jacobian[:, 0, 0] + jacobian[:, 1, 1]
        torch.testing.assert_close(field(t, y)[:, 2], trace)

    def test_estimates_of_the_trace_are_right_on_average_over_all_signs(self):
        field, (y, t) = self.field(), self.state()
        signs = [torch.tensor([[a, b]]).expand(5, 2) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
        estimates = torch.stack([field(t, y, noise)[:, 2] for noise in signs])
        torch.testing.assert_close(estimates.mean(0), field(t, y)[:, 2])
        assert estimates.std(0).min() > 0

    def test_the_density_learnt_integrates_to_one(self):
        problem = loss_problem("flow_two_moons", hidden=8, layers=1, flows=2)
        grid = torch.linspace(-9, 9, 61, dtype=torch.float64)
        points = torch.cartesian_prod(grid, grid)
        batch = problem.draw(1, generator())
        y0 = torch.nn.functional.pad(points, (0, 1))
        batch = type(batch)(y0, batch.t_eval)
        with torch.no_grad():
            solutions = problem.solve(problem.model(), batch)
        assert len(solutions) == 2
        density = [
            -problem.loss(ys[None], batch).item() for ys in solutions[-1].ys
        ]  # each point's own loss
        total = torch.tensor(density, dtype=torch.float64).exp().sum() * (grid[1] - grid[0]) ** 2
        assert total.item() == pytest.approx(1.0, abs=1e-3)

    def test_noise_is_drawn_only_where_the_trace_is_estimated(self):
        assert loss_problem("flow_gaussians").draw(4, generator()).args is None
        estimated = loss_problem("flow_gaussians", trace="hutchinson")
        noise = estimated.draw(4, generator()).args
        assert noise.shape == (4, 2)
        assert set(noise.flatten().tolist()) <= {-1.0, 1.0}
        assert estimated.test_batch().args is None


class TestEnergy:
    """Fields learnt through their energy."""

    @pytest.mark.parametrize("name", ENERGY)
    def test_data_keep_mass_and_the_energy_as_they_should(self, name):
        problem = energy_problem(name)
        data = problem.trajectories()
        assert data.shape == (16, 61, 50)
        mass = data.sum(-1)
        assert (mass - mass[:, :1]).abs().max() < 1e-11
        change = energy_of(problem)(data).diff(dim=1)
        if name == "kdv_hnn":
            assert change.abs().max() < 1e-11
        else:
            assert (change < 0).all()

    @pytest.mark.parametrize("name", ENERGY)
    def test_the_field_follows_the_energy_as_the_operator_says(self, name):
        problem = energy_problem(name)
        model = problem.model()
        u = problem.draw(3, generator()).y0
        with torch.no_grad():
            slope = model(torch.zeros(3), u)
        rolled = u.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(cells(model)(rolled).sum(), rolled)
        torch.testing.assert_close(slope, problem.operator(gradient))
        assert not slope.requires_grad
        assert slope.sum(-1).abs().max() < 1e-10 * slope.abs().max() * 50
        if name == "kdv_hnn":  # the energy learnt is conserved
            assert ((slope * gradient).sum(-1).abs() < 1e-10 * slope.abs().max()).all()
        else:
            assert ((slope * gradient).sum(-1) < 0).all()

    def test_the_field_looks_the_same_from_every_cell(self):
        problem = energy_problem("kdv_hnn")
        model, u = problem.model(), problem.draw(2, generator()).y0
        with torch.no_grad():
            turned = model(torch.zeros(2), u.roll(7, -1))
            torch.testing.assert_close(turned, model(torch.zeros(2), u).roll(7, -1))

    def test_tests_are_of_other_trajectories(self):
        problem = energy_problem("cahn_hilliard_hnn")
        trained = problem.draw(2000, generator()).y0
        tested = problem.test_batch().y0
        apart = (tested[:, None] - trained[None]).abs().amax(-1).min()
        assert apart > 0

    def test_the_published_size(self):
        problem = energy_problem("kdv_hnn", size="paper")
        shapes = [tuple(p.shape) for p in problem.model().parameters()]
        assert shapes == [(200, 3), (200,), (200, 200), (200,), (1, 200)]

    def test_the_field_itself_instead_of_an_energy(self):
        problem = energy_problem("kdv_hnn", model_of="field")
        model, u = problem.model(), problem.draw(2, generator()).y0
        assert torch.equal(model(torch.zeros(2), u), cells(model)(u))


class TestDigits:
    """Handwritten digits."""

    def test_images_are_all_there_and_tests_are_of_others(self):
        images, labels = digits()
        assert images.shape == (1797, 64)
        assert (images.min(), images.max()) == (0, 1)
        assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
        problem = loss_problem("digits_classifier")
        trained = problem.draw(problem.pool, generator()).y0
        assert len(trained.unique(dim=0)) == problem.pool  # each once
        apart = torch.cdist(problem.test_batch().y0[:, :64], trained[:, :64]).min()
        assert apart > 0

    def test_what_is_measured_is_the_share_of_wrong_answers(self):
        problem = loss_problem("digits_classifier")
        batch = problem.test_batch()
        assert batch.target is not None
        ys = torch.zeros(len(batch.y0), 2, 74, dtype=torch.float64)
        ys[torch.arange(len(ys)), 1, 64 + batch.target.long()] = 1
        assert problem.test_measure(ys, batch) == 0
        ys[:90, 1, 64:] = ys[:90, 1, 64:].roll(1, -1)
        assert problem.test_measure(ys, batch) == 0.25


class TestLatentOde:
    """Irregular series told by the start of a hidden state."""

    def test_the_encoder_sees_the_first_part_only(self):
        problem = loss_problem("latent_ode")
        model, batch = problem.model(), problem.draw(5, generator())
        assert batch.target is not None
        assert (batch.t_eval[:, 0] == 0).all()
        assert len(batch.t_eval.unique(dim=0)) == 5
        late = type(batch)(batch.y0, batch.t_eval, batch.target + 7, batch.args)
        assert torch.equal(problem.begin(model, late), problem.begin(model, batch))
        assert batch.args.shape == (5, 16, 2)
        torch.testing.assert_close(batch.args[..., 0].cumsum(1), batch.t_eval[:, :16])
        assert torch.equal(batch.args[..., 1], batch.target[:, :16])

    def test_states_are_decoded_before_they_are_compared(self):
        problem = loss_problem("latent_ode")
        model, batch = problem.model(), problem.draw(5, generator())
        (sol,) = problem.solve(model, batch)
        assert sol.ys.shape == (5, 24, 1)


class TestRobertsonRates:
    """Rates of stiff reactions."""

    def test_true_rates_explain_the_data_and_are_no_error(self):
        problem = loss_problem("robertson_rates", guess=1)
        model, batch = problem.model(), problem.draw(4, generator())
        with torch.no_grad():
            assert problem.loss(problem.solve(model, batch)[-1].ys, batch) < 1e-6
        assert problem.evaluate(model) < 1e-12
        wrong = loss_problem("robertson_rates", guess=2)
        assert 0.1 < wrong.evaluate(wrong.model()) <= 1
