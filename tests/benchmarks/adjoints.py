"""Gradient modes against each other and against torchdiffeq: memory, time, evaluations.

Everything is a ratio within one run, rounds interleaved. Memory is what the allocator held at its
peak over the start, forward and backward together.
"""

import argparse
from collections.abc import Callable

import torch
from common import describe_machine, interleave, median_ratio, print_table, version_of

from solver import ACA, CheckpointSteps, Continuous, Hook, Joint, Symplectic, solve_ivp
from solver.adjoints.measure import allocator_peak

MODES = {
    "backprop": "backprop",
    "checkpoint_steps": CheckpointSteps(),
    "aca": ACA(),
    "symplectic one": Symplectic(),
    "symplectic graphs": Symplectic(keep="graphs"),
    "symplectic values": Symplectic(keep="values"),
    "symplectic steps": Symplectic(keep="steps"),
    "continuous": Continuous(),
    "joint": Joint(),
    "joint, full norm": Joint(seminorm=False),
}


def network(hidden: int, dim: int) -> torch.nn.Module:
    """Return an MLP with two hidden layers, the same every time."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(dim, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, hidden)]
    return torch.nn.Sequential(*layers, torch.nn.Tanh(), torch.nn.Linear(hidden, dim))


def gradient(net: torch.nn.Module, batch: int, dim: int, mode: object, **options: object):
    """Return a function that solves and goes back once."""
    y0 = torch.linspace(-1, 1, batch * dim).reshape(batch, dim)

    def run() -> None:
        sol = solve_ivp(lambda t, y: net(y), y0, t0=0.0, t1=1.0, adjoint=mode, **options)  # pyright: ignore[reportArgumentType]
        sol.ys.square().sum().backward()
        for parameter in net.parameters():
            parameter.grad = None

    return run


def fixed(steps: int) -> dict[str, object]:
    """Return options for that many steps of dopri5."""
    return {"method": "dopri5", "controller": "fixed", "dt0": 1.0 / steps}


def memory(steps: int, hidden_sizes: list[int]) -> None:
    """Print peaks of the allocator at `steps` steps, B=32, D=8, float32."""
    rows = []
    for hidden in hidden_sizes:
        net, peaks = network(hidden, 8), {}
        for name in ("backprop", "checkpoint_steps", "aca", "symplectic one", "symplectic graphs"):
            run = gradient(net, 32, 8, MODES[name], **fixed(steps))
            gradient(net, 32, 8, MODES[name], **fixed(2))()
            peaks[name] = allocator_peak(run, torch.device("cpu"))
        less = gradient(net, 32, 8, MODES["symplectic one"], **fixed(steps // 2))
        growth = peaks["symplectic one"] - allocator_peak(less, torch.device("cpu"))
        state = 32 * 8 * 4
        for name, peak in peaks.items():
            ratio = f"{peaks['backprop'] / peak:.1f}"
            law = f"{growth / (steps - steps // 2) / state:.2f}" if name == "symplectic one" else ""
            rows.append([f"H={hidden} {name}", f"{peak / 1024:.0f}", ratio, law])
    header = ["peak memory", "KiB", "ratio backprop/mode", "bytes a step / (B D w)"]
    print_table(header, rows)


def times(rounds: int, sizes: list[tuple[int, int, int]]) -> None:
    """Print medians of times, forward and backward, at equal fixed steps."""
    rows = []
    for hidden, batch, steps in sizes:
        net = network(hidden, 8)
        runs = {n: gradient(net, batch, 8, m, **fixed(steps)) for n, m in MODES.items()}
        seconds = interleave(runs, rounds)
        others = ("backprop", "continuous", "joint, full norm")
        rows += [
            [
                f"H={hidden} B={batch} N={steps} {name}",
                f"{1e3 * sorted(seconds[name])[rounds // 2]:.1f}",
                *(f"{median_ratio(seconds[name], seconds[other]):.2f}" for other in others),
            ]
            for name in MODES
        ]
    print_table(["time", "ms", "ratio to backprop", "to continuous", "to joint, full norm"], rows)


def against_torchdiffeq(rounds: int) -> None:
    """Print times against torchdiffeq's adjoint, 32 rows at rtol 1e-7, float64."""
    if version_of("torchdiffeq") is None:
        print("torchdiffeq is missing")
        return
    from torchdiffeq import odeint_adjoint

    net = network(64, 8).double()
    y0 = torch.linspace(-1, 1, 256, dtype=torch.float64).reshape(32, 8)
    span = torch.tensor([0.0, 5.0], dtype=torch.float64)

    class Peer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.net(y)

    peer = Peer()

    def theirs() -> None:
        ys = odeint_adjoint(peer, y0, span, rtol=1e-7, atol=1e-7, method="dopri5")
        ys[-1].square().sum().backward()

    def ours(mode: object) -> Callable[[], None]:
        def run() -> None:
            sol = solve_ivp(
                lambda t, y: net(y), y0, t0=0.0, t1=5.0, method="dopri5", rtol=1e-7, atol=1e-7,
                adjoint=mode,  # pyright: ignore[reportArgumentType]
            )  # fmt: skip
            sol.ys.square().sum().backward()

        return run

    names = ("symplectic one", "symplectic graphs", "symplectic values", "continuous", "joint")
    runs = {"torchdiffeq": theirs, **{name: ours(MODES[name]) for name in names}}
    seconds = interleave(runs, rounds)
    print_table(
        ["rtol 1e-7, float64", "ms", "ratio to torchdiffeq adjoint"],
        [
            [name, f"{1e3 * sorted(seconds[name])[rounds // 2]:.0f}",
             f"{median_ratio(seconds[name], seconds['torchdiffeq']):.2f}"]
            for name in runs
        ],
    )  # fmt: skip


class Silent(Hook):
    """Takes records of backward passes and nothing else."""

    block_size = 100_000


def counting(rounds: int, steps: int) -> None:
    """Print what counting memory live costs the symplectic mode."""
    net = network(64, 8)
    mode = Symplectic()
    runs = {
        "counted": gradient(net, 32, 8, mode, hooks=[Silent()], **fixed(steps)),
        "not counted": gradient(net, 32, 8, mode, **fixed(steps)),
    }
    seconds = interleave(runs, rounds)
    ratio = median_ratio(seconds["counted"], seconds["not counted"])
    print_table(["live counting", "ratio"], [["symplectic, hook / no hook", f"{ratio:.3f}"]])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="steps of the memory table")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", action="store_true", help="smallest sizes only")
    chosen = parser.parse_args()
    print(describe_machine(["torch", "torchdiffeq"]))
    memory(chosen.steps, [16] if chosen.small else [64, 256])
    times(chosen.rounds, [(16, 4, 10)] if chosen.small else [(64, 32, 100), (256, 512, 10)])
    if not chosen.small:
        against_torchdiffeq(chosen.rounds)
    counting(chosen.rounds, 10 if chosen.small else 100)


if __name__ == "__main__":
    main()
