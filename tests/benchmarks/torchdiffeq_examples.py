"""torchdiffeq's own examples, small: what they do with the module they are given, and their losses.

ODE demo (a spiral learned from short pieces), bouncing ball (times of bounces and their gradients),
CNF (density by the trace of a Jacobian, continuous adjoint), latent ODE (encoder, ODE, decoder),
learning physics (gravity and restitution from a trajectory). Everything in float64, seeded.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

F64 = torch.float64


class Spiral(nn.Module):
    """A network in the cubes of the state, as the ODE demo has it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, 50, dtype=F64), nn.Tanh(), nn.Linear(50, 2, dtype=F64)
        )

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        return self.net(y**3)


def ode_demo(module: ModuleType, iterations: int = 3, interface: str = "odeint") -> list[float]:
    """Return the losses of learning a spiral from pieces of its trajectory."""
    torch.manual_seed(0)
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], dtype=F64)
    times = torch.linspace(0.0, 25.0, 200, dtype=F64)
    with torch.no_grad():
        start = torch.tensor([[2.0, 0.0]], dtype=F64)
        true = module.odeint(lambda t, y: y**3 @ matrix, start, times, method="dopri5")
    func = Spiral()
    optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-3)
    losses = []
    for _ in range(iterations):
        begin = torch.randperm(190)[:20]
        target = torch.stack([true[begin + i] for i in range(10)])
        optimizer.zero_grad()
        found = getattr(module, interface)(func, true[begin], times[:10])
        loss = (found - target).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Ball(nn.Module):
    """A ball over the ground, whose radius is part of the state so that it has its gradient."""

    def __init__(self, height: float = 10.0) -> None:
        super().__init__()
        self.gravity = nn.Parameter(torch.tensor([9.8], dtype=F64))
        self.log_radius = nn.Parameter(torch.tensor([0.2], dtype=F64).log())
        self.height = nn.Parameter(torch.tensor([height], dtype=F64))
        self.absorption = nn.Parameter(torch.tensor([0.2], dtype=F64))

    def forward(self, t: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        _, speed, radius = state
        return speed, -self.gravity, torch.zeros_like(radius)

    def above_ground(self, t: Tensor, state: tuple[Tensor, ...]) -> Tensor:
        return state[0] - state[2].exp()

    def bounces(self, module: ModuleType, count: int, interface: str = "odeint") -> list[Tensor]:
        """Return the times of the first bounces."""
        t = torch.zeros(1, dtype=F64)
        state = (self.height, torch.zeros(1, dtype=F64), self.log_radius)
        found = []
        for _ in range(count):
            t, solution = module.odeint_event(
                self, state, t, event_fn=self.above_ground, atol=1e-8, rtol=1e-8,
                odeint_interface=getattr(module, interface),
            )  # fmt: skip
            found.append(t)
            place, speed, radius = (part[-1] for part in solution)
            state = (place + 1e-7, -speed * (1 - self.absorption), radius)
        return found


def bouncing_ball(module: ModuleType, count: int = 4, interface: str = "odeint") -> list[float]:
    """Return the time of the last bounce and its derivatives."""
    ball = Ball()
    last = ball.bounces(module, count, interface)[-1]
    last.sum().backward()
    slopes = [p.grad.item() for p in ball.parameters() if p.grad is not None]
    return [last.item(), *slopes]


class Flow(nn.Module):
    """dz/dt of a network and d log p/dt, minus the trace of its Jacobian."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 32, dtype=F64), nn.Linear(32, 2, dtype=F64)

    def forward(self, t: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        z = state[0]
        with torch.enable_grad():
            z = z.requires_grad_(True)
            hidden = torch.tanh(self.inner(torch.cat([z, t.expand(len(z), 1)], dim=1)))
            slope = self.outer(hidden)
            trace = torch.zeros(len(z), dtype=F64)
            for i in range(2):
                row = torch.autograd.grad(slope[:, i].sum(), z, create_graph=True)[0]
                trace = trace + row[:, i]
        return slope, -trace[:, None]


def cnf(module: ModuleType, iterations: int = 2, batch: int = 64) -> list[float]:
    """Return the losses of fitting a normalising flow to a ring."""
    torch.manual_seed(1)
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    losses = []
    for _ in range(iterations):
        angle = torch.rand(batch, dtype=F64) * 6.283185307179586
        points = torch.stack([angle.cos(), angle.sin()], dim=1)
        optimizer.zero_grad()
        z, log_p = module.odeint_adjoint(
            flow, (points, torch.zeros(batch, 1, dtype=F64)),
            torch.tensor([1.0, 0.0], dtype=F64), atol=1e-5, rtol=1e-5, method="dopri5",
        )  # fmt: skip
        loss = (z[-1].square().sum(dim=1) / 2 + log_p[-1][:, 0]).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class LatentField(nn.Module):
    """The field of the hidden state."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 20, dtype=F64), nn.ELU(), nn.Linear(20, 4, dtype=F64))

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        return self.net(y)


def latent_ode(module: ModuleType, iterations: int = 3, batch: int = 16) -> list[float]:
    """Return the losses of a recurrent encoder, an ODE of the hidden state and a decoder."""
    torch.manual_seed(2)
    times = torch.linspace(0.0, 2.0, 30, dtype=F64)
    phase = torch.rand(batch, 1, dtype=F64) * 6.283185307179586
    series = torch.stack([(times + phase).cos(), (times + phase).sin()], dim=-1)
    encoder, decoder = nn.GRU(2, 8, batch_first=True, dtype=F64), nn.Linear(4, 2, dtype=F64)
    to_latent, field = nn.Linear(8, 8, dtype=F64), LatentField()
    parts = nn.ModuleList([encoder, decoder, to_latent, field])
    optimizer = torch.optim.Adam(parts.parameters(), lr=1e-2)
    losses = []
    for _ in range(iterations):
        optimizer.zero_grad()
        mean, spread = to_latent(encoder(series.flip(1))[1][0]).chunk(2, dim=1)
        z0 = mean + torch.randn(mean.shape, dtype=F64) * (spread / 2).exp()
        decoded = decoder(module.odeint(field, z0, times)).transpose(0, 1)
        divergence = (spread.exp() + mean.square() - 1 - spread).sum(dim=1).mean() / 2
        loss = (decoded - series).square().mean() + 1e-2 * divergence
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def learn_physics(module: ModuleType, iterations: int = 2) -> list[float]:
    """Return the losses of learning gravity and absorption from the times of three bounces."""
    with torch.no_grad():
        target = torch.stack([t.reshape(()) for t in Ball().bounces(module, 3)])
    ball = Ball()
    with torch.no_grad():
        ball.gravity.mul_(0.8)
        ball.absorption.mul_(1.5)
    optimizer = torch.optim.Adam(ball.parameters(), lr=0.05)
    losses = []
    for _ in range(iterations):
        optimizer.zero_grad()
        found = torch.stack([t.reshape(()) for t in ball.bounces(module, 3)])
        loss = (found - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


EXAMPLES: dict[str, Callable[[Any], list[float]]] = {
    "ode_demo": ode_demo,
    "bouncing_ball": bouncing_ball,
    "cnf": cnf,
    "latent_ode": latent_ode,
    "learn_physics": learn_physics,
}
