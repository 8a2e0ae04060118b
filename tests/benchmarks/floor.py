"""How much of a solve is the solver: a solve beside the same number of bare field evaluations.

    python tests/benchmarks/floor.py

The floor calls the vector field as often as the solve did, on the same shapes, and nothing else. No
eager solver can be faster; ratio - 1 is what stepping, error control and bookkeeping cost. A
compiled solve evaluates the field in its own code and may be faster than the floor.
"""

import argparse
import statistics

from common import CLOCKS, describe_machine, interleave, median_ratio, print_table  # isort: skip

import torch
from torch import Tensor

from solver import solve_ivp


class VanDerPol(torch.nn.Module):
    """A cheap field: nothing but elementwise operations on `(B, 2)`."""

    t1, dim = 10.0, 2

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.mu = torch.linspace(0.5, 5.0, batch)

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        """`(B,), (B, 2) -> (B, 2)`."""
        x, v = y.unbind(-1)
        return torch.stack((v, self.mu * (1 - x * x) * v - x), dim=-1)


class Network(torch.nn.Module):
    """A small neural ODE: 64 -> 64 -> 64 with tanh, `(B, 64)`."""

    t1, dim = 5.0, 64

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64)
        )

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        """`(B,), (B, 64) -> (B, 64)`."""
        return self.layers(y) - 0.1 * y


def measure(
    kind: type[VanDerPol | Network], batch: int, rounds: int, clock: str, engine: str
) -> list[str]:
    """Return one line of the table."""
    torch.manual_seed(0)
    field = kind(batch)
    y0 = torch.randn(batch, field.dim)

    def solve(engine: str = engine) -> int:
        with torch.no_grad():
            sol = solve_ivp(
                field, y0, t0=0.0, t1=field.t1, rtol=1e-5, atol=1e-5, engine=engine,
                time_dtype=y0.dtype,
            )  # fmt: skip
        return sol.stats.n_f_calls

    calls, t = solve("plain"), torch.zeros(batch)

    def floor() -> None:
        with torch.no_grad():
            for _ in range(calls):
                field(t, y0)

    seconds = interleave({"solve": solve, "floor": floor}, rounds, clock=CLOCKS[clock])
    ratio = median_ratio(seconds["solve"], seconds["floor"])
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return [
        kind.__name__,
        engine,
        str(batch),
        str(calls),
        f"{1e3 * medians['solve']:.2f}",
        f"{1e3 * medians['floor']:.2f}",
        f"{ratio:.2f}",
        f"{1 - 1 / ratio:.0%}",
    ]


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options = parser.parse_args()
    torch.set_default_dtype(getattr(torch, options.dtype))
    print(f"Tsit5, rtol = atol = 1e-5, {options.dtype}, no gradients")
    print(describe_machine(("torch", "numpy")))
    header = ("field", "engine", "B", "f calls", "solve ms", "floor ms", "ratio", "solver's share")
    rows = [
        measure(kind, batch, options.rounds, options.clock, engine)
        for kind in (VanDerPol, Network)
        for engine in ("plain", "compiled")
        for batch in options.batch
    ]
    print_table(header, rows)
    print(f"medians of {options.rounds} interleaved rounds; ratio is the median of their ratios")


if __name__ == "__main__":
    main()
