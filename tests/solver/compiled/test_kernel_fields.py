"""Which fields compile, what they see change between solves, and what is said of the others."""

import functools
import warnings

import numpy as np
import pytest
import torch

from solver import solve_ivp

Y0 = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
END = {"t0": 0.0, "t1": 1.0}
MU = torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64)


def agree(f, y0=Y0, tolerance=1e-8, **kwargs):
    """Solve by both; a fallback would be a warning, which is an error here."""
    kwargs = END | kwargs
    plain, compiled = (solve_ivp(f, y0, engine=e, **kwargs) for e in ("plain", "compiled"))
    torch.testing.assert_close(plain.ys, compiled.ys, rtol=tolerance, atol=tolerance)
    return compiled


def in_place(t, y):
    out = torch.empty_like(y)
    out[:, 0] = y[:, 1]
    out[:, 1:] = -y[:, :2]
    out[:, 2] += t.sin()
    return out


def with_products(t, y):
    matrix = torch.tensor([[0.0, 1, 0], [-1, 0, 2], [0, -2, 0]], dtype=y.dtype)
    return y @ matrix + (matrix @ y[:, :, None])[:, :, 0]


def with_reductions(t, y):
    size = y.norm(dim=1, keepdim=True) + y.abs().sum(dim=1, keepdim=True) + y.mean(-1)[:, None]
    return -y * size / (1 + y.square().amax(dim=1, keepdim=True))


def with_functions(t, y):
    a, b, c = y.unbind(1)
    return torch.stack(
        (
            torch.sigmoid(b) - torch.tanh(a) + torch.atan2(a, 2 + b.cos()),
            torch.where(a > 0, a, -b).clamp(-1, 1) + torch.exp(-(c**2)),
            torch.nn.functional.softplus(a) - c.abs().sqrt() + torch.log1p(b * b) + t.cos(),
        ),
        dim=1,
    )


def with_shapes(t, y):
    rolled = torch.roll(y, 1, dims=1) - torch.flip(y, (1,))
    table = y.reshape(-1, 3, 1).expand(-1, 3, 2).permute(0, 2, 1)
    bent = torch.cat([y[:, 1:], y[:, :1]], dim=1) * y[..., [2, 0, 1]].cos()
    return rolled - table.sum(1) - bent


@pytest.mark.parametrize(
    "f", [in_place, with_products, with_reductions, with_functions, with_shapes]
)
def test_what_fields_do_to_tensors_compiles(f):
    agree(f)


@pytest.mark.parametrize(
    "f",
    [
        lambda t, y: torch.zeros_like(y),
        lambda t, y: torch.ones(4, 3, dtype=y.dtype),
        lambda t, y: t[:, None].expand(4, 3),
        lambda t, y: MU[:, None] * y,
        lambda t, y: -MU.reshape(4, 1) * y + torch.arange(4, dtype=y.dtype)[:, None],
        lambda t, y: y * torch.tensor([1.0, -2.0, 0.5], dtype=y.dtype),
    ],
)
def test_constants_and_numbers_of_rows_compile(f):
    agree(f)


def test_a_row_knows_its_own_number_where_the_batch_is_as_wide_as_the_state():
    y0 = torch.rand(3, 3, dtype=torch.float64)
    mu, weights = torch.tensor([0.5, 1.0, 2.0]), torch.rand(3, 3, dtype=torch.float64)
    agree(lambda t, y: -mu[:, None] * y + y @ weights, y0)


def test_states_of_any_structure_compile():
    y0 = {"x": torch.rand(5, 2, 2, dtype=torch.float64), "v": torch.rand(5, dtype=torch.float64)}

    def f(t, y):
        return {"x": -y["x"] * y["v"][:, None, None], "v": y["x"].sum(dim=(1, 2))}

    plain, compiled = (solve_ivp(f, y0, engine=e, **END) for e in ("plain", "compiled"))
    for name in y0:
        torch.testing.assert_close(plain.ys[name], compiled.ys[name])


def test_per_row_arguments_are_seen_anew_in_every_solve():
    def f(t, y, rate):
        return -rate[:, None] * y

    for rate in (MU, 3 * MU):
        agree(f, args=rate)


def test_masks_of_rows_are_arguments():
    def f(t, y, chosen):
        return torch.where(chosen[:, None], -y, y.sin())

    for chosen in (MU > 5, MU > 2):
        agree(f, args=chosen)


def test_closures_numbers_and_gains_are_seen_anew():
    def make(k, shift):
        return lambda t, y: -k * y + shift

    for k, shift in ((1.0, torch.ones(3)), (2.5, torch.zeros(3)), (2.5, torch.ones(3))):
        agree(make(k, shift.double()))


def test_a_network_whose_parameters_change_needs_no_new_kernel():
    from solver.compiled import build

    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)
    ).double()

    def f(t, y):
        return net(y)

    with torch.no_grad():
        agree(f)
        before = dict(build.counts)
        for parameter in net.parameters():
            parameter.mul_(-0.5)
        agree(f)
        net[0] = torch.nn.Linear(3, 16).double()
        agree(f)
    assert build.counts == before


def test_a_network_of_float32_takes_float64_time():
    net = torch.nn.Linear(4, 3)

    def f(t, y):
        return net(torch.cat([y, t[:, None]], dim=1))

    with torch.no_grad():
        agree(f, Y0.float(), tolerance=1e-5)


def test_objects_partials_and_methods_compile():
    class Oscillator:
        """A rate."""

        def __init__(self, k):
            self.k = k

        def field(self, t, y):
            return -self.k * y

        def __call__(self, t, y):
            return self.k * torch.sin(y)

    one = Oscillator(2.0)
    agree(one)
    agree(one.field)
    one.k = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    agree(one)
    agree(functools.partial(lambda t, y, k: k * y, k=-1.5))


class Counting:
    """A field with a side effect."""

    def __init__(self):
        self.calls = 0

    def __call__(self, t, y):
        self.calls += 1
        return -y


def branches(t, y):
    return -y if y[0, 0] > 0 else y


def mixes_rows(t, y):
    return y - y.mean(dim=0, keepdim=True)


def draws(t, y):
    return -y + 0 * torch.rand_like(y)


def speaks(t, y):
    print(end="")
    return -y


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (Counting(), "writes to calls"),
        (branches, "one of the rows"),
        (mixes_rows, "rows of the batch"),
        (draws, "random"),
        (speaks, "print"),
        (lambda t, y: torch.linalg.solve(4 * torch.eye(3) + 0.1 * y[:, :, None], -y), "uses"),
        (lambda t, y: torch.from_numpy(np.sin(y.numpy())), ""),
    ],
)
def test_a_field_with_no_compiled_form_is_solved_plainly_and_says_why(f, reason):
    with pytest.warns(RuntimeWarning, match=f"compiled.*not possible.*{reason}"):
        sol = solve_ivp(f, Y0, engine="compiled", **END)
    torch.testing.assert_close(sol.ys, solve_ivp(f, Y0, engine="plain", **END).ys, equal_nan=True)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"jump_t": 0.5}, "jump_t"),
        ({"stepping": "joint"}, "joint"),
        ({"events": lambda t, y: y[:, 0] - 2}, "events"),
    ],
)
def test_options_with_no_compiled_form_say_so(options, reason):
    with pytest.warns(RuntimeWarning, match=reason):
        solve_ivp(lambda t, y: -y, Y0, engine="compiled", **END, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve_ivp(lambda t, y: -y, Y0, engine="auto", **END, **options)


def test_complex_and_differentiated_solves_say_so():
    with pytest.warns(RuntimeWarning, match="complex"):
        solve_ivp(
            lambda t, y: 1j * y, torch.ones(2, 1, dtype=torch.complex128), engine="compiled", **END
        )
    y0 = Y0.clone().requires_grad_()
    with pytest.warns(RuntimeWarning, match="gradients"):
        sol = solve_ivp(lambda t, y: -y, y0, engine="compiled", **END)
    sol.ys.sum().backward()
    assert y0.grad is not None


def test_an_error_of_the_field_is_raised_as_it_is():
    def broken(t, y):
        raise KeyError("no such thing")

    with pytest.warns(RuntimeWarning, match="KeyError"), pytest.raises(KeyError, match="no such"):
        solve_ivp(broken, Y0, engine="compiled", **END)
