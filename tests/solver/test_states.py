"""States of any shape, structure and dtype."""

import math

import pytest
import torch

from solver import solve_ivp
from solver.errors import InvalidArgument, InvalidType

TIGHT = {"rtol": 1e-6, "atol": 1e-6}


def decay(t, y):
    return -y


@pytest.mark.parametrize(
    "shape", [(2,), (2, 1), (2, 3), (2, 3, 4), (2, 2, 2, 2), (2, 0), (0, 3), (0,)]
)
def test_states_of_any_shape_come_back_in_theirs(shape):
    seen = []

    def f(t, y):
        seen.append((t.shape, y.shape))
        return -y

    sol = solve_ivp(f, torch.ones(shape), [0.0, 0.4, 1.0], dense=True, **TIGHT)
    assert sol.ys.shape == (shape[0], 3, *shape[1:])
    assert sol.y_reached.shape == shape
    torch.testing.assert_close(sol.ys[:, -1], torch.full(shape, math.exp(-1)), atol=1e-5, rtol=0)
    assert all(each == ((shape[0],), shape) for each in seen)
    assert sol(0.7).shape == shape
    assert sol([0.1, 0.7]).shape == (shape[0], 2, *shape[1:])


def test_a_pytree_keeps_its_structure_and_dtypes():
    y0 = {
        "x": torch.ones(2, 3),
        "rest": [torch.zeros(2, dtype=torch.float32), torch.ones(2, 1) * 1j],
    }

    def f(t, y):
        assert y["rest"][0].dtype == torch.float32
        return {"x": -y["x"], "rest": [y["x"][:, 0], 1j * y["rest"][1]]}

    sol = solve_ivp(f, y0, [0.0, 1.0], **TIGHT)
    assert sol.ys["x"].shape == (2, 2, 3)
    assert sol.ys["x"].dtype == torch.float64
    assert sol.ys["rest"][0].dtype == torch.float32
    torch.testing.assert_close(
        sol.ys["rest"][0][:, -1].double(), torch.full((2,), 1 - math.exp(-1)), atol=1e-5, rtol=0
    )
    exact = complex(-math.sin(1), math.cos(1))
    assert abs(sol.ys["rest"][1][0, -1, 0].item() - exact) < 1e-5


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float16, 1e-3), (torch.bfloat16, 1e-2)]
)
def test_the_output_has_the_dtype_of_the_state(dtype, tolerance):
    def f(t, y):
        assert y.dtype == dtype
        assert t.dtype == torch.float64
        return -y

    y0 = torch.ones(2, 2, dtype=dtype)
    sol = solve_ivp(f, y0, t0=0.0, t1=1.0, rtol=tolerance, atol=tolerance)
    assert sol.ys.dtype == dtype
    assert sol.success.all()
    assert (sol.ys.double() - math.exp(-1)).abs().max() < max(tolerance, 1e-4)


@pytest.mark.parametrize("method", ["tsit5", "dopri8", "vern7", "bosh3", "euler"])
@pytest.mark.parametrize("controller", [None, "pid", "h211b", "i"])
def test_no_float64_is_made_where_float32_is_asked_for(method, controller):
    from torch.utils._python_dispatch import TorchDispatchMode

    class NoFloat64(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for tensor in torch.utils._pytree.tree_leaves(out):
                if isinstance(tensor, torch.Tensor):
                    assert tensor.dtype not in (torch.float64, torch.complex128), func
            return out

    torch.set_default_dtype(torch.float32)
    options = {"dt0": 0.125} if method == "euler" else {"controller": controller}
    times = torch.tensor([[0.0, 0.3, 1.0], [1.0, 0.3, 0.0]])
    y0 = torch.ones(2, 2)
    with NoFloat64():
        sol = solve_ivp(
            decay, y0, times, method=method, time_dtype=torch.float32, dense=True,
            statistics=["limiter", "limiting_component"], **options,
        )  # fmt: skip
        sol(0.5)
    assert sol.ts.dtype == torch.float32
    assert sol.success.all()


def test_whole_numbers_become_floats():
    sol = solve_ivp(decay, torch.ones(2, 1, dtype=torch.int64), torch.tensor([0, 1]), **TIGHT)
    assert sol.ys[:, -1].flatten().tolist() == pytest.approx([math.exp(-1)] * 2, abs=1e-4)


def test_a_network_in_float32_may_take_the_time_as_an_input():
    net = torch.nn.Linear(3, 2).float()

    def f(t, y):
        return net(torch.cat([y, t[:, None]], dim=1))

    sol = solve_ivp(f, torch.ones(4, 2, dtype=torch.float32), [0.0, 1.0])
    assert sol.ys.dtype == torch.float32
    assert sol.success.all()
    assert sol.ys.requires_grad


def test_complex_oscillation_keeps_its_modulus():
    y0 = torch.tensor([[1.0 + 0j], [2.0j]])
    sol = solve_ivp(lambda t, y: 1j * y, y0, [0.0, math.pi], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(sol.ys[:, -1], -y0, atol=1e-7, rtol=0)
    assert sol.ys.dtype == torch.complex128


@pytest.mark.parametrize("returns_it", [True, False])
def test_a_field_that_writes_into_its_argument_does_no_harm(returns_it):
    def f(t, y):
        y[..., 0] = 1
        y[..., 1] = 0
        return y if returns_it else y.clone()

    y0 = torch.tensor([[0.0, 1.0]])
    sol = solve_ivp(f, y0, [0.0, 1.0, 2.0])
    torch.testing.assert_close(sol.ys[0, :, 0], torch.tensor([0.0, 1.0, 2.0]))
    assert y0.tolist() == [[0.0, 1.0]]


def test_a_field_that_reuses_its_output_buffer_does_no_harm():
    buffer = torch.zeros(1, 1)

    def f(t, y):
        return torch.neg(y, out=buffer)

    sol = solve_ivp(f, torch.ones(1, 1), t0=0.0, t1=1.0, **TIGHT)
    assert sol.ys.item() == pytest.approx(math.exp(-1), abs=1e-5)


def test_a_field_that_is_zero_costs_next_to_nothing():
    def f(t, y):
        assert t.isfinite().all()
        assert y.isfinite().all()
        return 0 * y

    sol = solve_ivp(f, torch.ones(1, 1), t0=0.0, t1=1e6)
    assert sol.ys.item() == 1
    assert sol.stats.n_f_evals.item() < 100


@pytest.mark.parametrize("method", ["bosh3", "tsit5", "vern7", "dopri8"])
def test_a_purely_relative_tolerance_may_start_at_zero(method):
    sol = solve_ivp(
        lambda t, y: t[:, None] - y,
        torch.zeros(1, 1),
        t0=0.0,
        t1=1.0,
        rtol=1e-6,
        atol=0.0,
        method=method,
    )
    assert sol.ys.item() == pytest.approx(math.exp(-1), abs=1e-4)


@pytest.mark.parametrize(
    ("y0", "error", "message"),
    [
        (1.0, InvalidType, "y0 holds a float"),
        ([1.0, 2.0], InvalidType, "y0 holds a float"),
        (torch.tensor(1.0), InvalidArgument, "batch axis"),
        ({}, InvalidArgument, "no tensor"),
        ([torch.ones(2, 1), torch.ones(3, 1)], InvalidArgument, "2 and 3 rows"),
        (torch.ones(2, 1, dtype=torch.bool), InvalidType, "bool"),
        (None, InvalidType, "NoneType"),
    ],
)
def test_initial_states_that_make_no_sense_are_refused_by_name(y0, error, message):
    with pytest.raises(error, match=message):
        solve_ivp(decay, y0, [0.0, 1.0])


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda t, y: y[:, :1], InvalidArgument, r"f returned shape \(2, 1\): must be \(2, 2\)"),
        (lambda t, y: y.sum(), InvalidArgument, r"f returned shape \(\)"),
        (lambda t, y: [1.0, 2.0], InvalidType, "f returned a list"),
        (lambda t, y: None, InvalidType, "f returned a NoneType"),
        (lambda t, y: y * 1j, InvalidType, "make y0 complex"),
        (lambda t, y: y.to("meta"), InvalidArgument, "on meta"),
        ("field", InvalidType, "f is a str"),
    ],
)
def test_a_field_that_returns_nonsense_is_refused_by_name(f, error, message):
    with pytest.raises(error, match=message):
        solve_ivp(f, torch.ones(2, 2), [0.0, 1.0])


def test_an_error_inside_the_field_reaches_the_caller_as_it_is():
    def f(t, y):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        solve_ivp(f, torch.ones(1, 1), [0.0, 1.0])


@pytest.mark.parametrize("method", ["tsit5", "dopri5", "vern7", "dopri8"])
@pytest.mark.parametrize("dense", [False, True])
def test_dense_output_in_float32_is_as_good_as_float32(method, dense):
    times = torch.linspace(0, 1, 21)
    y0 = torch.ones(1, 1, dtype=torch.float32)
    sol = solve_ivp(decay, y0, times, method=method, rtol=1e-6, atol=1e-6, dense=dense)
    ys = sol(times) if dense else sol.ys
    assert ys.dtype == torch.float32
    assert (ys[0, :, 0].double() - torch.exp(-times)).abs().max() < 1e-6
