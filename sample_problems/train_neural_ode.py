"""Train the spiral of `neural_ode`: `python -m sample_problems.train_neural_ode`, some seconds."""

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor, nn

from sample_problems.neural_ode import WEIGHTS
from solver.solve import solve_ivp

HIDDEN = 32
SPIRAL = ((-0.1, 2.0), (-2.0, -0.1))  # d/dt (x, y) = (x^3, y^3) A, Chen et al. (2018)


class Network(nn.Module):
    """W2 tanh(W1 y^3 + b1) + b2."""

    def __init__(self, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        """Return dy/dt, `(B, 2)`."""
        return self.layers(y**3)


def spiral(t: Tensor, y: Tensor) -> Tensor:
    """Return the true field, `(B, 2)`."""
    return y**3 @ torch.tensor(SPIRAL, dtype=y.dtype)


def train(iterations: int = 400, seed: int = 0) -> tuple[Network, float]:
    """Fit short pieces of true trajectories that start all over the disc of radius 2.2.

    Returns:
        The network, and the mean distance of its last batch from the truth.
    """
    torch.manual_seed(seed)
    network = Network()
    optimiser = torch.optim.Adam(network.parameters(), lr=2e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
    times = torch.linspace(0.0, 0.25, 6)
    distance = float("nan")
    for _ in range(iterations):
        angle, radius = 2 * torch.pi * torch.rand(128), 2.2 * torch.rand(128).sqrt()
        y0 = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
        with torch.no_grad():
            truth = solve_ivp(spiral, y0, times, method="bosh3").ys
        found = solve_ivp(network, y0, times, method="bosh3", rtol=1e-3, atol=1e-3).ys
        loss = (found - truth).abs().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        distance = loss.item()
    return network, distance


def store(network: Network, distance: float, path: Path = WEIGHTS) -> None:
    """Write the weights as JSON, rounded to six digits."""

    def rounded(values: Tensor) -> list:
        return [float(f"{v:.6g}") if v.ndim == 0 else rounded(v) for v in values.detach()]

    first, last = network.layers[0], network.layers[2]
    assert isinstance(first, nn.Linear)
    assert isinstance(last, nn.Linear)
    stored = {
        "made_by": "python -m sample_problems.train_neural_ode",
        "mean_distance": float(f"{distance:.3g}"),
        "w1": rounded(first.weight.T),
        "b1": rounded(first.bias),
        "w2": rounded(last.weight.T),
        "b2": rounded(last.bias),
    }
    path.write_text(json.dumps(stored, indent=None) + "\n", "utf-8")


def main() -> None:
    """Train and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=WEIGHTS)
    asked = parser.parse_args()
    network, distance = train(asked.iterations, asked.seed)
    store(network, distance, asked.output)
    print(f"mean distance {distance:.2e}; weights in {asked.output}")


if __name__ == "__main__":
    main()
